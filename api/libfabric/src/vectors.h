// Memory in several pieces, as libfabric's vectors name it, for operations that take it in one.
//
// Thread rule: values and pure functions.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace paceline::libfabric {

using Vector = std::span<const iovec>;

inline size_t BytesOf(Vector vector) {
  size_t bytes = 0;
  for (const iovec& piece : vector) bytes += piece.iov_len;
  return bytes;
}

// Whether there is memory behind every piece that has a length.
inline bool IsMemory(Vector vector) {
  return std::ranges::none_of(vector,
                              [](const iovec& piece) { return piece.iov_base == nullptr && piece.iov_len > 0; });
}

inline void Gather(Vector from, uint8_t* to) {
  for (const iovec& piece : from) {
    if (piece.iov_len > 0) std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
}

inline void Scatter(const uint8_t* from, size_t bytes, Vector to) {
  for (const iovec& piece : to) {
    const size_t count = std::min(bytes, piece.iov_len);
    if (count > 0) std::memcpy(piece.iov_base, from, count);
    from += count;
    bytes -= count;
  }
}

// One piece of memory in the place of several, for the time of an operation.
struct Staging {
  std::unique_ptr<uint8_t[]> bytes;
  std::vector<iovec> to;  // what arrives goes here in the end
};

}  // namespace paceline::libfabric
