// What several endpoints of a process have given of the credit for one port of the network. Each looks at the others
// before it gives more, so that together they give what one would: what stands in the port's queue in an incast is one
// budget, not one for each. What its flows get of its part remains each one's own matter. (The receiver of `tita` heeds
// what the others have out, docs/cc/tita.md; those that pull heed how many of them do, pull_receiver.h.)
//
// Thread rule: each member tells from its own thread; all may look at any time. What is seen of others may be a moment
// old: they may together exceed the bound by what they give in that moment.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace paceline {

class CreditPool {
 public:
  static constexpr size_t kMostMembers = 16;

  struct Others {
    uint64_t bytes = 0;   // of credit that is out
    double caps = 0;      // of their senders that want more, wire bytes per second
    uint32_t active = 0;  // of them have credit out, or senders that want some
  };
  Others OthersOf(uint32_t member) const {
    Others others;
    for (uint32_t i = 0; i < kMostMembers; ++i) {
      const uint64_t bytes = accounts_[i].bytes.load(std::memory_order_relaxed);
      const double caps = accounts_[i].caps.load(std::memory_order_relaxed);
      if (i == member || (bytes == 0 && caps == 0)) continue;
      others.bytes += bytes;
      others.caps += caps;
      ++others.active;
    }
    return others;
  }

  // What `member` has out, and wants, from now on.
  void Tell(uint32_t member, uint64_t bytes, double caps) {
    accounts_[member].bytes.store(bytes, std::memory_order_relaxed);
    accounts_[member].caps.store(caps, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Account {
    std::atomic<uint64_t> bytes{0};
    std::atomic<double> caps{0};
  };
  std::array<Account, kMostMembers> accounts_;
};

// One of those that share a port; a pool of null is that of a port which is nobody else's. Holds nothing once it is
// gone. Thread rule: one owner.
class CreditPoolMember {
 public:
  CreditPoolMember(CreditPool* pool, uint32_t number) : pool_(pool), number_(number) {}
  ~CreditPoolMember() { Tell(0, 0); }
  CreditPoolMember(const CreditPoolMember&) = delete;
  CreditPoolMember& operator=(const CreditPoolMember&) = delete;

  bool has_others() const { return pool_ != nullptr; }
  CreditPool::Others others() const { return has_others() ? pool_->OthersOf(number_) : CreditPool::Others(); }
  void Tell(uint64_t bytes, double caps) {
    if (has_others()) pool_->Tell(number_, bytes, caps);
  }

 private:
  CreditPool* const pool_;
  const uint32_t number_;
};

}  // namespace paceline
