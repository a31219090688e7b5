// Payloads that cannot be sent from where they are, but are put together, copied or encrypted for the packets of one
// burst.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/core/endpoint.h"

namespace paceline {

class BurstMemory {
 public:
  // The longest payload, in bytes; to be called once, before the first Next.
  void SetMostPayload(size_t bytes) { most_payload_ = bytes; }

  // A burst begins: what stands here is no longer read.
  void BeginBurst() { used_ = 0; }
  // Where one more payload has room, at most kPerPacket for each packet of the burst. It stays free unless Use takes
  // it. There is nothing of this memory until somebody asks for it, and of its pages only what bursts have used.
  uint8_t* Next() {
    if (bytes_ == nullptr) {
      bytes_ = std::make_unique_for_overwrite<uint8_t[]>(TxBurst::kSegments * kPerPacket * most_payload_);
    }
    return bytes_.get() + used_;
  }
  void Use(size_t bytes) { used_ += bytes; }

 private:
  static constexpr size_t kPerPacket = 2;  // put together or copied, and then encrypted
  std::unique_ptr<uint8_t[]> bytes_;
  size_t most_payload_ = 0;
  size_t used_ = 0;
};

}  // namespace paceline
