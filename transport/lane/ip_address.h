// IP addresses as frames have them.
//
// Thread rule: values.
#pragma once

#include <array>
#include <cstdint>

namespace paceline {

enum class IpVersion : uint8_t { kV4 = 4, kV6 = 6 };

// Network order; an IPv4 address has the first four bytes, and zeros behind them.
using IpAddress = std::array<uint8_t, 16>;

}  // namespace paceline
