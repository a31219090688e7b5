#include "gpudirect/registration_cache.h"

#include <algorithm>

namespace paceline::gpudirect {

RegistrationCache::~RegistrationCache() {
  for (const auto& [base, entry] : entries_) drop_(entry.registration);
}

RegistrationCache::Entry* RegistrationCache::Find(uintptr_t base, size_t bytes, uint64_t buffer_id) {
  for (auto at = entries_.begin(); at != entries_.end() && at->first <= base; ++at) {
    Entry& entry = at->second;
    if (!entry.valid || base - entry.base >= entry.bytes) continue;
    if (entry.buffer_id != buffer_id) {
      entry.valid = false;
    } else if (bytes <= entry.bytes - (base - entry.base)) {
      ++entry.users;
      return &entry;
    }
  }
  return nullptr;
}

RegistrationCache::Entry* RegistrationCache::Add(uintptr_t base, size_t bytes, uint64_t buffer_id,
                                                 Registration registration) {
  return &entries_
              .emplace(base, Entry{.base = base, .bytes = bytes, .buffer_id = buffer_id, .registration = registration})
              ->second;
}

void RegistrationCache::Release(Entry* entry) {
  if (--entry->users > 0) return;
  drop_(entry->registration);
  const auto [first, last] = entries_.equal_range(entry->base);
  entries_.erase(std::find_if(first, last, [entry](const auto& one) { return &one.second == entry; }));
}

}  // namespace paceline::gpudirect
