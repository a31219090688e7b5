// An address on a lane, opaque to everybody but lanes of the same kind; short enough for a connection handle. It lies
// in base because handshake packets carry it. UDP: family (1 byte), port (2), address (4 or 16), scope (IPv6: 4).
// Comparable, hashable by its bytes.
#pragma once

#include <algorithm>
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

// True if two UDP addresses have the same IP address; their ports and scopes may differ.
inline bool SameUdpHost(const LaneAddress& a, const LaneAddress& b) {
  constexpr size_t kAddressAt = 3, kIpv4End = 7, kIpv6End = 19;
  if (a.size != b.size || a.size < kIpv4End || a.bytes[0] != b.bytes[0]) return false;
  const size_t end = a.size == kIpv4End ? kIpv4End : kIpv6End;
  return std::equal(a.bytes.begin() + kAddressAt, a.bytes.begin() + end, b.bytes.begin() + kAddressAt);
}

}  // namespace paceline
