#include "transport/wire/checksum.h"

#include <isa-l/crc.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline::wire {
namespace {

#if defined(__x86_64__)
// The library's AVX versions return with the upper halves of the vector registers in use. The SSE code of everybody
// else would then pay for keeping them: 0.18 us a checksum, five times what that of a packet costs (docs/hot_path.md).
__attribute__((target("avx"))) void ReleaseUpperHalves() { _mm256_zeroupper(); }
#endif

}  // namespace

uint32_t Crc32c(std::span<const uint8_t> bytes) {
  // The library takes a pointer to non-const but only reads.
  const uint32_t crc = ~crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()), ~0u);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) ReleaseUpperHalves();
#endif
  return crc;
}

}  // namespace paceline::wire
