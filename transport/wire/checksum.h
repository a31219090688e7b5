// CRC-32C (Castagnoli; RFC 3720 section 12.1), by Intel's ISA-L, which uses the processor's instruction where there is
// one. It guards against what the network and its cards break; it is no defence against people.
#pragma once

#include <cstdint>
#include <span>

namespace paceline::wire {

uint32_t Crc32c(std::span<const uint8_t> bytes);

}  // namespace paceline::wire
