#include "transport/lane/shm/streaming_copy.h"

#include <cstring>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace paceline {

#ifdef __x86_64__
void StreamingCopy(uint8_t* to, const uint8_t* from, size_t count) {
  const size_t lines = count / kStreamedLineBytes * kStreamedLineBytes;
  for (size_t at = 0; at < lines; at += kStreamedLineBytes) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const line = reinterpret_cast<__m128i*>(to + at);
    const __m128i first = _mm_loadu_si128(source), second = _mm_loadu_si128(source + 1),
                  third = _mm_loadu_si128(source + 2), fourth = _mm_loadu_si128(source + 3);
    // In a row, so that the line leaves as one.
    _mm_stream_si128(line, first);
    _mm_stream_si128(line + 1, second);
    _mm_stream_si128(line + 2, third);
    _mm_stream_si128(line + 3, fourth);
  }
  if (lines < count) std::memcpy(to + lines, from + lines, count - lines);
  _mm_sfence();  // such stores keep no order by themselves, not even with a release (Intel SDM volume 1, 10.4.6.2)
}
#else
void StreamingCopy(uint8_t* to, const uint8_t* from, size_t count) { std::memcpy(to, from, count); }
#endif

}  // namespace paceline
