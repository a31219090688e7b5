// Payloads that cannot be sent from where they are, and so are put together or copied, for the packets of one burst.
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
  // Most that one packet needs; to be called once, before the first Next.
  void SetPacketBytes(size_t most) { packet_bytes_ = most; }

  // A burst begins: what stands here is no longer read.
  void BeginBurst() { used_ = 0; }
  // Where the payload of one more packet of the burst has room. It stays free unless Use takes it. There is nothing of
  // this memory until somebody asks for it, and of its pages only what bursts have used.
  uint8_t* Next() {
    if (bytes_ == nullptr) bytes_ = std::make_unique_for_overwrite<uint8_t[]>(TxBurst::kSegments * packet_bytes_);
    return bytes_.get() + used_;
  }
  void Use(size_t bytes) { used_ += bytes; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t packet_bytes_ = 0;
  size_t used_ = 0;
};

}  // namespace paceline
