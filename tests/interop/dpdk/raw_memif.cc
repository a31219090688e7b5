#include "tests/interop/dpdk/raw_memif.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "transport/lane/dpdk/dpdk_eal.h"

namespace paceline::interop {

RawMemif::RawMemif(const std::string& device) {
  const auto parsed = ParseDpdkDevice(device);
  absl::Status status = parsed.status();
  if (status.ok()) status = StartDpdkEal({}, "");
  if (status.ok()) {
    auto port = DpdkPort::Open(*parsed, 0);
    status = port.status();
    if (port.ok()) port_ = *std::move(port);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    std::exit(1);
  }
  JoinDpdk();
  // A client that connects while its server is still being set up is turned away, and comes again.
  for (int i = 0; i < 100 && port_->traits().is_memif_client && !LinkUp(); ++i) {
    for (int j = 0; j < 100 && !LinkUp(); ++j) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!LinkUp()) port_->Restart();
  }
}

uint32_t RawMemif::SendBurst(uint32_t bytes, uint32_t count) {
  std::array<rte_mbuf*, 32> frames;
  if (rte_pktmbuf_alloc_bulk(port_->pool(), frames.data(), count) != 0) return 0;
  for (uint32_t i = 0; i < count; ++i) {
    frames[i]->data_len = static_cast<uint16_t>(bytes);
    frames[i]->pkt_len = bytes;
  }
  const uint16_t sent = rte_eth_tx_burst(port_->id(), 0, frames.data(), static_cast<uint16_t>(count));
  rte_pktmbuf_free_bulk(&frames[sent], count - sent);
  return sent;
}

uint32_t RawMemif::ReceiveBurst() {
  std::array<rte_mbuf*, 64> frames;
  const uint16_t count = rte_eth_rx_burst(port_->id(), 0, frames.data(), frames.size());
  rte_pktmbuf_free_bulk(frames.data(), count);
  return count;
}

}  // namespace paceline::interop
