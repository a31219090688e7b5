// What must hold of the receives that connections of one host share: each takes what it may take and in the order that
// was promised, is told of once, and is left alone when it has ended; a look finds what is next, and what it claims
// goes to nobody else. It posts the receives and is told of their completions.
//
// A send meets the first receive, in posting order, that is open to its source and tag. Which connection's send comes
// first nobody knows, but sends of one connection keep their order. So of two sends of one connection the later one
// never has a receive that was posted earlier and was open to both, and a receive that a send has passed over must have
// met another before.
//
// Thread rule: one thread. The host must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/oracle.h"
#include "tests/simulation/scenario.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/test_host.h"
#include "transport/base/random.h"

namespace paceline::simulation {

class SharedReceives {
 public:
  // `number` among all of the run.
  SharedReceives(const Scenario& scenario, uint32_t number, support::TestHost* host, Findings* findings,
                 Random* random);
  SharedReceives(const SharedReceives&) = delete;
  SharedReceives& operator=(const SharedReceives&) = delete;

  // How a connection to this host begins that shares these receives; `name` is what its peer is called, now or later.
  ConnectionSetup NewSetup(Source name);
  // The connection with that setup is up: `side` is ours. One after the other.
  void Join(Side* side);
  // Of completions that are told to this one.
  static bool IsOurs(uint64_t user_data) { return user_data >> kNumberBits != 0; }
  bool Owns(uint64_t user_data) const { return user_data >> kNumberBits == number_ + 1; }
  support::TestHost* host() const { return host_; }

  // The peer of `side` sends with this tag.
  void Want(Side* side, uint64_t tag) {
    if (!side->closed() && !gone_) wanted_.push_back({side, tag});
  }
  bool wanted() const { return !wanted_.empty(); }
  // Posts one more receive, and perhaps looks for what waits or gives a name first; false: told to try again.
  bool PostNext();
  void CancelSome();
  // Everything that is still to come meets a receive: of any source and tag, if no other.
  void TakeTheRest();
  // Nothing comes any more.
  void CancelLeftovers();
  // The end of all connections that share it.
  void Delete();
  // Takes back the registered buffer of a receive under way; connections of this host may end.
  void DeregisterSome();

  void OnCompletion(const Completion& completion);
  void OnClosed(Side* side);

  size_t pending() const { return pending_; }
  // Completions beyond one for each receive posted: buffers for many have several.
  uint64_t further_completions() const { return further_completions_; }
  // When all is done.
  void CheckAtEnd();

 private:
  static constexpr int kNumberBits = 32;  // of user data: the receive's number, below the queue's
  struct Member {
    Side* side = nullptr;
    Source name = kAnySource;
    bool named = false;
    uint64_t named_from = 0;           // sends of the peer from this number on come when the name is known
    std::map<uint64_t, bool> claimed;  // numbers of sends
  };
  struct Wanted {
    Side* side = nullptr;
    uint64_t tag = 0;
  };
  struct Claim {
    uint64_t claim = 0;
    Side* side = nullptr;
    uint64_t message = 0;
  };
  struct Posted {
    OperationId id = 0;
    uint64_t number = 0;  // in posting order
    ReceiveRequest request;
    Claim claimed;
    RegionId region = kUnregistered;
    bool cancelled = false;       // by us: it will say so
    bool told_cancelled = false;  // it has said so
    bool done = false;            // its buffer is ours again
    bool any_failed = false;      // a part of it ended with its connection
    uint64_t completions = 0;
    std::string passed_over;             // by which send; it takes no more
    std::map<uint64_t, uint64_t> parts;  // offset to length
    std::unique_ptr<support::GuardedBuffer> buffer;
  };
  // A receive has taken a message, or a look has seen it.
  struct Match {
    uint64_t receive = 0;  // its number; of a look the one that it would have had
    uint64_t offset = 0;
    Member* member = nullptr;
    uint64_t message = 0;
    const Posted* posted = nullptr;  // null: a look
    ReceiveRequest request;
  };

  std::string Name(const Posted& posted) const;
  void Finding(const Posted& posted, const std::string& what) { findings_->Note(Name(posted) + ": " + what); }
  Member* MemberOf(const Side* side);
  Member* MemberOf(ConnectionId connection);
  void GiveName(Member& member);
  void Look();
  // False: told to try again.
  bool Post(const ReceiveRequest& request, size_t bytes, const Claim& claimed);
  bool PostClaimed();
  void Cancel(Posted& posted);
  static bool TagAgrees(const ReceiveRequest& request, uint64_t tag) {
    return ((request.tag ^ tag) & ~request.ignore) == 0;
  }
  // That a receive would surely take this message if it stood first.
  static bool IsOpenTo(const ReceiveRequest& request, const Member& member, uint64_t message, uint64_t tag);
  void PassOver(Member& member, uint64_t message, uint64_t before);
  void TakePart(Posted& posted, const Completion& completion);
  void GiveBack(Posted& posted);
  void CheckFailure(Posted& posted, const Completion& completion);
  void CheckOrder();

  const Scenario& scenario_;
  const uint32_t number_;
  support::TestHost* host_;
  Findings* findings_;
  Random* random_;
  ReceiveQueueId queue_ = kNoReceiveQueue;

  std::vector<std::unique_ptr<Member>> members_;
  std::optional<Member> next_member_;  // its connection is not up yet
  std::vector<Wanted> wanted_;
  std::vector<Claim> claims_;          // what is to be received by name
  std::map<uint64_t, Posted> posted_;  // by number
  std::vector<Match> matches_;
  uint64_t next_number_ = 1;
  size_t pending_ = 0;
  uint64_t further_completions_ = 0;
  bool gone_ = false;               // the queue was deleted
  bool receives_may_fail_ = false;  // by what was taken back
  std::vector<Source> failed_names_;
};

}  // namespace paceline::simulation
