// The headers of the frame that was written last: over IPv4 those of the next one of a burst are often the same, byte
// for byte, and copying them is cheaper than writing them. Over IPv6 the checksum depends on the payload, so nothing is
// kept.
//
// Thread rule: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/lane/ethernet/frame.h"

namespace paceline {

class BurstHeaders {
 public:
  // What headers depend on, beside what all frames of a lane have.
  struct Key {
    uint32_t peer = 0;
    uint32_t bytes = 0;  // of the payload
    uint16_t entropy = 0;
    bool ecn_capable = false;
    MacAddress destination;

    bool operator==(const Key&) const = default;
  };

  // At the start of each burst: a peer's number may stand for another one since.
  void Forget() { kept_ = false; }

  // Writes the headers of a frame with the same key to `out` and returns true, if it was the last one.
  bool Copy(const Key& key, uint8_t* out) const {
    if (!kept_ || !(key == key_)) return false;
    std::memcpy(out, headers_.data(), headers_.size());
    return true;
  }

  // `headers`: FrameHeaderBytes(version) of them.
  void Keep(const Key& key, IpVersion version, const uint8_t* headers) {
    kept_ = version == IpVersion::kV4;
    if (!kept_) return;
    key_ = key;
    std::memcpy(headers_.data(), headers, headers_.size());
  }

 private:
  bool kept_ = false;
  Key key_;
  std::array<uint8_t, kFrameHeaderBytesV4> headers_{};
};

}  // namespace paceline
