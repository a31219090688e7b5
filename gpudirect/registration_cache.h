// Registrations of device memory that several users share: registering it with a card takes the kernel and the driver
// of the GPU far longer than a look here, room on the card is bounded, and collective libraries register the same
// buffer for every connection that uses it.
//
// What nobody uses any more is not kept: a registration holds the GPU's memory also when the program has freed it.
// While it is kept it is given out only for the allocation that it was made for. Memory that was freed without a word
// and allocated anew at the same address has another buffer id (MemoryInfo), and the old entry is not given out again.
//
// Thread rule: one thread at a time. Ownership: owns what was added, until `Drop` has had it, with its last user or at
// the cache's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace paceline::gpudirect {

class RegistrationCache {
 public:
  using Registration = uint64_t;  // whatever a card's user has for it
  using Drop = std::function<void(Registration registration)>;

  explicit RegistrationCache(Drop drop) : drop_(std::move(drop)) {}
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  struct Entry {
    uintptr_t base = 0;
    size_t bytes = 0;
    uint64_t buffer_id = 0;
    Registration registration = 0;
    uint32_t users = 1;
    bool valid = true;  // its memory is still what it was made for, as far as is known
  };

  // One that holds [base, base + bytes), with one more user; nullptr: none does. `buffer_id`: of the memory now, not 0.
  Entry* Find(uintptr_t base, size_t bytes, uint64_t buffer_id);
  // What was made for that memory, with its first user.
  Entry* Add(uintptr_t base, size_t bytes, uint64_t buffer_id, Registration registration);
  // By each user, once.
  void Release(Entry* entry);

  size_t size() const { return entries_.size(); }

 private:
  Drop drop_;
  std::multimap<uintptr_t, Entry> entries_;  // by base
};

}  // namespace paceline::gpudirect
