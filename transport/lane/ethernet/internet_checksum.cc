#include "transport/lane/ethernet/internet_checksum.h"

#include <bit>
#include <cstring>

namespace paceline {
namespace {

static_assert(std::endian::native == std::endian::little, "words are summed as they lie in memory");

uint16_t Swap(uint16_t value) { return static_cast<uint16_t>(value << 8 | value >> 8); }

// Ones' complement addition: a carry out of the top comes back in at the bottom (RFC 1071 section 2, C).
uint64_t AddWithCarry(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum + (sum < a ? 1 : 0);
}

// The sum of its four words: 33 bits, 18, 17 and 16 are left.
uint16_t Fold(uint64_t sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>((sum & 0xffff) + (sum >> 16));
}

template <typename Word>
Word Load(const uint8_t* at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// In steps of fixed lengths: headers are short, and a copy of what is left over would be a call.
uint64_t SumOf(std::span<const uint8_t> bytes) {
  uint64_t sum = 0;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); at += sizeof(uint64_t), left -= sizeof(uint64_t)) {
    sum = AddWithCarry(sum, Load<uint64_t>(at));
  }
  uint64_t rest = 0;
  if ((left & 4) != 0) {
    rest += Load<uint32_t>(at);
    at += 4;
  }
  if ((left & 2) != 0) {
    rest += Load<uint16_t>(at);
    at += 2;
  }
  if ((left & 1) != 0) rest += *at;
  return AddWithCarry(sum, rest);
}

}  // namespace

void InternetChecksum::Add(std::span<const uint8_t> bytes) {
  const uint16_t piece = Fold(SumOf(bytes));
  sum_ += odd_ ? Swap(piece) : piece;
  odd_ ^= bytes.size() % 2 != 0;
}

void InternetChecksum::AddWord(uint16_t value) { sum_ += Swap(value); }

uint16_t InternetChecksum::Sum() const { return Swap(Fold(sum_)); }

}  // namespace paceline
