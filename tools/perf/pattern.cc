#include "tools/perf/pattern.h"

#include <cstring>

namespace paceline::tools {
namespace {

// splitmix64 of the stream and the word's number.
uint64_t Word(uint64_t stream, size_t number) {
  uint64_t z = stream + (number + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

void FillPattern(uint8_t* data, size_t bytes, uint64_t stream) {
  size_t at = 0;
  for (size_t number = 0; at + 8 <= bytes; ++number, at += 8) {
    const uint64_t word = Word(stream, number);
    std::memcpy(data + at, &word, 8);
  }
  const uint64_t last = Word(stream, at / 8);
  std::memcpy(data + at, &last, bytes - at);
}

bool CheckPattern(const uint8_t* data, size_t bytes, uint64_t stream) {
  size_t at = 0;
  for (size_t number = 0; at + 8 <= bytes; ++number, at += 8) {
    const uint64_t word = Word(stream, number);
    if (std::memcmp(data + at, &word, 8) != 0) return false;
  }
  const uint64_t last = Word(stream, at / 8);
  return std::memcmp(data + at, &last, bytes - at) == 0;
}

}  // namespace paceline::tools
