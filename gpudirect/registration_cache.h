// Registrations that are kept when their user lets go of them: registering memory with a card costs tens of
// microseconds and more, and collective libraries register the same buffers over and over.
//
// An entry is good as long as its memory is: device memory that was freed and allocated anew at the same address has
// another buffer id (MemoryInfo), and its old entry is dropped when it is met. Invalidate says so for a range that the
// user knows to be gone.
//
// Thread rule: one thread at a time. Ownership: owns what `Make` made until `Drop` has had it; entries in use are
// dropped when their last user lets go. At most `max_unused` unused entries are kept, the least recently used goes
// first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>

#include "absl/status/statusor.h"

namespace paceline::gpudirect {

class RegistrationCache {
 public:
  using Registration = uint64_t;  // whatever Make makes
  using Make = std::function<absl::StatusOr<Registration>(uintptr_t base, size_t bytes)>;
  using Drop = std::function<void(Registration registration)>;

  RegistrationCache(Make make, Drop drop, size_t max_unused)
      : make_(std::move(make)), drop_(std::move(drop)), max_unused_(max_unused) {}
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  struct Entry {
    uintptr_t base = 0;
    size_t bytes = 0;
    uint64_t buffer_id = 0;
    Registration registration = 0;
    uint32_t users = 0;
    bool valid = true;
    std::list<Entry*>::iterator unused{};  // while nobody uses it
  };

  // A registration that holds [base, base + bytes): one that is there, or a new one. `buffer_id`: of the memory now, 0
  // for ordinary memory. Release it as often as it was acquired.
  absl::StatusOr<Entry*> Acquire(uintptr_t base, size_t bytes, uint64_t buffer_id);
  void Release(Entry* entry);
  // Memory in [base, base + bytes) is gone: no entry that touches it is given out again.
  void Invalidate(uintptr_t base, size_t bytes);

  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }
  size_t size() const { return entries_.size(); }

 private:
  void Retire(Entry* entry);  // not given out again; dropped now if nobody uses it
  void Erase(Entry* entry);

  const Make make_;
  const Drop drop_;
  const size_t max_unused_;
  std::multimap<uintptr_t, Entry> entries_;  // by base
  std::list<Entry*> unused_;                 // least recently used first
  uint64_t hits_ = 0, misses_ = 0;
};

}  // namespace paceline::gpudirect
