// The checksum of IP, UDP and ICMPv6: the ones' complement of a ones' complement sum of 16-bit words (RFC 1071).
//
// Thread rule: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

// Sums up pieces in the order in which they stand on the wire; a piece may have an odd length, and then the next one
// goes on in the middle of a word.
class InternetChecksum {
 public:
  void Add(std::span<const uint8_t> bytes);
  // A word by its value, not by its bytes in memory; only while an even number of bytes was added.
  void AddWord(uint16_t value);

  // The sum so far, by its value (on the wire the high byte comes first): zero's complement is 0xffff.
  uint16_t Sum() const;
  // What goes into a checksum field.
  uint16_t Checksum() const { return static_cast<uint16_t>(~Sum()); }

 private:
  uint64_t sum_ = 0;  // of words as the processor reads them, carries included
  bool odd_ = false;  // an odd number of bytes was added
};

}  // namespace paceline
