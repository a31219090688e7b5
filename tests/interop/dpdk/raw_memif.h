// A net_memif port without a lane: what DPDK alone does, for comparison.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/lane/dpdk/dpdk_port.h"

struct rte_mbuf;

namespace paceline::interop {

class RawMemif {
 public:
  // `device` as for ParseDpdkDevice. Ends the process where the port does not open; a client waits for its server.
  explicit RawMemif(const std::string& device);

  // To be asked until it says so: a memif's ends find each other meanwhile.
  bool LinkUp() {
    port_->Attend();
    return port_->LinkUp();
  }
  // Sends `count` frames (at most 32) of `bytes`, or as many as there is room for; returns how many.
  uint32_t SendBurst(uint32_t bytes, uint32_t count);
  // Takes what has come, up to 64 frames; returns how many.
  uint32_t ReceiveBurst();

 private:
  std::unique_ptr<DpdkPort> port_;
};

}  // namespace paceline::interop
