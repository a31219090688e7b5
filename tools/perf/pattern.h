// The bytes that verification sends: a function of a stream number and the offset, so that a message in the wrong
// buffer, a part at the wrong place or an old copy does not pass for the right one.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::tools {

// The stream number of message `index` from `sender` to `receiver`.
inline uint64_t PatternStream(uint32_t sender, uint32_t receiver, uint64_t index) {
  return (uint64_t{sender} << 48) ^ (uint64_t{receiver} << 32) ^ (index * 0x9e3779b97f4a7c15);
}

void FillPattern(uint8_t* data, size_t bytes, uint64_t stream);

// True if every byte is as FillPattern leaves it.
bool CheckPattern(const uint8_t* data, size_t bytes, uint64_t stream);

}  // namespace paceline::tools
