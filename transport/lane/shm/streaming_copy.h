// A copy that passes the caches by, for memory that another processor reads next and this one does not. A plain store
// first fetches its line, from the other processor's cache where that has read it; this one does not, and where the two
// share no cache that is most of what a copy takes (docs/lanes/shm.md, "Where the processors share no cache").
//
// Thread rule: one writer of the memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

// Alignment of `to` in StreamingCopy.
inline constexpr size_t kStreamedLineBytes = 64;

// As memcpy. Who sees what this thread stores later, with release order, sees the copy. Processors without such stores
// get a plain copy.
void StreamingCopy(uint8_t* to, const uint8_t* from, size_t count);

}  // namespace paceline
