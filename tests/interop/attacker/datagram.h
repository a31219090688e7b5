// A UDP packet over IPv4 with what is around it.
//
// Thread rule: a value.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace paceline::interop {

struct Datagram {
  std::array<uint8_t, 6> source_mac{}, destination_mac{};
  uint32_t source = 0, destination = 0;  // IPv4, host order
  uint16_t source_port = 0, destination_port = 0;
  std::vector<uint8_t> payload;
};

}  // namespace paceline::interop
