#include "transport/wire/checksum.h"

#include <isa-l/crc.h>

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline::wire {
namespace {

#if defined(__x86_64__)
// The library's AVX versions return with the upper halves of the vector registers in use. The SSE code of everybody
// else would then pay for keeping them: 0.18 us a checksum, five times what that of a packet costs (docs/hot_path.md).
__attribute__((target("avx"))) void ReleaseUpperHalves() { _mm256_zeroupper(); }

// One instruction for eight bytes: of a few of them that is less than what the library's call takes to begin. Of a
// header (kHeader) the checksum counts as zero.
template <bool kHeader>
__attribute__((target("sse4.2"))) uint32_t ByInstruction(std::span<const uint8_t> bytes) {
  const uint8_t* at = bytes.data();
  const auto word = [](const uint8_t* from) {
    uint64_t value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  };
  static_assert(kHeaderChecksumAt == 8);
  uint64_t crc = 0xffffffff;
  size_t left = bytes.size();
  if constexpr (kHeader) {
    crc = _mm_crc32_u64(crc, word(at));
    if (left >= 16) {
      crc = _mm_crc32_u64(crc, word(at + 8) & 0xffffffff00000000);
      at += 16;
      left -= 16;
    } else {
      crc = _mm_crc32_u32(static_cast<uint32_t>(crc), 0);
      at += 12;
      left -= 12;
    }
  }
  for (; left >= 16; at += 16, left -= 16) crc = _mm_crc32_u64(_mm_crc32_u64(crc, word(at)), word(at + 8));
  if (left >= 8) {
    crc = _mm_crc32_u64(crc, word(at));
    at += 8;
    left -= 8;
  }
  auto rest = static_cast<uint32_t>(crc);
  for (; left > 0; ++at, --left) rest = _mm_crc32_u8(rest, *at);
  return ~rest;
}
#endif

// The library takes a pointer to non-const but only reads.
uint32_t Onwards(uint32_t crc, const uint8_t* bytes, size_t count) {
  return crc32_iscsi(const_cast<unsigned char*>(bytes), static_cast<int>(count), crc);
}

[[gnu::noinline]] uint32_t ByLibrary(std::span<const uint8_t> header) {
  constexpr std::array<uint8_t, 4> kZeros{};
  constexpr size_t kBehind = kHeaderChecksumAt + kZeros.size();
  uint32_t crc = Onwards(~0u, header.data(), kHeaderChecksumAt);
  crc = Onwards(crc, kZeros.data(), kZeros.size());
  return ~Onwards(crc, header.data() + kBehind, header.size() - kBehind);
}

}  // namespace

uint32_t Crc32c(std::span<const uint8_t> bytes) {
#if defined(__x86_64__)
  constexpr size_t kFew = 128;
  if (bytes.size() <= kFew && __builtin_cpu_supports("sse4.2")) return ByInstruction<false>(bytes);
#endif
  const uint32_t crc = ~Onwards(~0u, bytes.data(), bytes.size());
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) ReleaseUpperHalves();
#endif
  return crc;
}

uint32_t HeaderCrc32c(std::span<const uint8_t> header) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ByInstruction<true>(header);
#endif
  return ByLibrary(header);
}

}  // namespace paceline::wire
