// CRC-32C (Castagnoli; RFC 3720 section 12.1), by Intel's ISA-L, which uses the processor's instruction where there is
// one. It guards against what the network and its cards break; it is no defence against people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::wire {

uint32_t Crc32c(std::span<const uint8_t> bytes);

// The same of a header that has its own checksum in it, which counts as zero: the four bytes at kHeaderChecksumAt,
// which must exist.
inline constexpr size_t kHeaderChecksumAt = 8;
uint32_t HeaderCrc32c(std::span<const uint8_t> header);

}  // namespace paceline::wire
