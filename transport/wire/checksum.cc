#include "transport/wire/checksum.h"

#include <isa-l/crc.h>

namespace paceline::wire {

uint32_t Crc32c(std::span<const uint8_t> bytes) {
  // The library takes a pointer to non-const but only reads.
  return ~crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()), ~0u);
}

}  // namespace paceline::wire
