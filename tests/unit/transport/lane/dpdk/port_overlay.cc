#include "tests/unit/transport/lane/dpdk/port_overlay.h"

// The linker takes these for DPDK's.
extern "C" {

int rte_eth_dev_info_get(uint16_t port, rte_eth_dev_info* info) {
  static auto* const dpdk = paceline::BehindDpdk<decltype(rte_eth_dev_info_get)>("rte_eth_dev_info_get");
  const int result = dpdk(port, info);
  if (const auto* overlay = paceline::PortOverlay::current()) overlay->OnInfo(*info);
  return result;
}

int rte_eth_dev_configure(uint16_t port, uint16_t receive_queues, uint16_t send_queues, const rte_eth_conf* conf) {
  static auto* const dpdk = paceline::BehindDpdk<decltype(rte_eth_dev_configure)>("rte_eth_dev_configure");
  rte_eth_conf taken = *conf;
  if (auto* overlay = paceline::PortOverlay::current()) overlay->OnConfigure(taken);
  return dpdk(port, receive_queues, send_queues, &taken);
}

}  // extern "C"
