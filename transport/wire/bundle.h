// Several sends in one packet: the payload of MessageKind::kBundle. Its header names the first message and its match
// sequence; those of the others count on from there. One record behind the other, each
//
//   0 data bytes (16), 1 at least   2 flags (8): 1 immediate   3 reserved (8)   4 tag (64)
//   12 immediate (64), with its flag   then the data
#pragma once

#include <cstdint>
#include <span>

namespace paceline::wire {

struct BundledSend {
  uint64_t tag = 0;
  bool has_immediate = false;
  uint64_t immediate = 0;
  std::span<const uint8_t> data;
};

// What a send of `data_bytes` takes in a bundle.
constexpr size_t BundledBytes(uint64_t data_bytes, bool has_immediate) {
  return 12 + (has_immediate ? 8 : 0) + data_bytes;
}

// Writes the record of `send`, whose data is 1 to 65535 bytes, and returns where the next one goes. `to` has room for
// BundledBytes.
uint8_t* WriteBundled(const BundledSend& send, uint8_t* to);

// The records of `bundle`, one by one; `send->data` is a part of it. False: there is no more, or what stands there is
// none, which leaves something in `bundle`.
bool ReadBundled(std::span<const uint8_t>& bundle, BundledSend* send);

// Whether it consists of records, of one at least.
bool IsBundle(std::span<const uint8_t> bundle);

}  // namespace paceline::wire
