#include "gpudirect/registration_cache.h"

#include <vector>

namespace paceline::gpudirect {

RegistrationCache::~RegistrationCache() {
  for (const auto& [base, entry] : entries_) drop_(entry.registration);
}

absl::StatusOr<RegistrationCache::Entry*> RegistrationCache::Acquire(uintptr_t base, size_t bytes, uint64_t buffer_id) {
  std::vector<Entry*> stale;
  Entry* found = nullptr;
  for (auto at = entries_.begin(); at != entries_.end() && at->first <= base && found == nullptr; ++at) {
    Entry& entry = at->second;
    if (!entry.valid || base - entry.base >= entry.bytes) continue;
    if (entry.buffer_id != buffer_id) {
      stale.push_back(&entry);
    } else if (bytes <= entry.bytes - (base - entry.base)) {
      found = &entry;
    }
  }
  for (Entry* entry : stale) Retire(entry);
  if (found != nullptr) {
    ++hits_;
    if (found->users++ == 0) unused_.erase(found->unused);
    return found;
  }
  ++misses_;
  const absl::StatusOr<Registration> made = make_(base, bytes);
  if (!made.ok()) return made.status();
  return &entries_
              .emplace(base,
                       Entry{.base = base, .bytes = bytes, .buffer_id = buffer_id, .registration = *made, .users = 1})
              ->second;
}

void RegistrationCache::Release(Entry* entry) {
  if (--entry->users > 0) return;
  if (!entry->valid) return Erase(entry);
  entry->unused = unused_.insert(unused_.end(), entry);
  if (unused_.size() > max_unused_) Retire(unused_.front());
}

void RegistrationCache::Invalidate(uintptr_t base, size_t bytes) {
  std::vector<Entry*> gone;
  for (auto& [first, entry] : entries_) {
    if (entry.valid && entry.base < base + bytes && base < entry.base + entry.bytes) gone.push_back(&entry);
  }
  for (Entry* entry : gone) Retire(entry);
}

void RegistrationCache::Retire(Entry* entry) {
  entry->valid = false;
  if (entry->users > 0) return;
  unused_.erase(entry->unused);
  Erase(entry);
}

void RegistrationCache::Erase(Entry* entry) {
  drop_(entry->registration);
  const auto [first, last] = entries_.equal_range(entry->base);
  for (auto at = first; at != last; ++at) {
    if (&at->second != entry) continue;
    entries_.erase(at);
    return;
  }
}

}  // namespace paceline::gpudirect
