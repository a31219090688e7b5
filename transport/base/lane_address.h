// An address on a lane, opaque to everybody but lanes of the same kind; short enough for a connection handle. It lies
// in base because handshake packets carry it. UDP: family, port, address, scope. Comparable, hashable by its bytes.
//
// Thread rule: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace paceline {

struct LaneAddress {
  static constexpr size_t kMaxBytes = 24;
  uint8_t size = 0;
  std::array<uint8_t, kMaxBytes> bytes{};

  std::span<const uint8_t> view() const { return {bytes.data(), size}; }
  bool operator==(const LaneAddress& other) const {
    return size == other.size && std::memcmp(bytes.data(), other.bytes.data(), size) == 0;
  }
};

}  // namespace paceline
