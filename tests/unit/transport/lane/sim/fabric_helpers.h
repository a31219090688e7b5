// What the fabric's tests share: a small switch, a burst at it, its longest queues.
// Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/unit/transport/lane/sim/window_host.h"
#include "transport/lane/sim/fabric.h"

namespace paceline::sim {

inline FabricConfig SmallSwitch(uint32_t hosts = 4) {
  FabricConfig config;
  config.topology.hosts = hosts;
  return config;
}

inline std::unique_ptr<Fabric> Build(const FabricConfig& config) {
  auto fabric = Fabric::Create(config);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return *std::move(fabric);
}

inline TxSegment Segment(const std::vector<uint8_t>& header, uint32_t nic,
                         const std::vector<uint8_t>* payload = nullptr) {
  TxSegment segment;
  segment.header = header.data();
  segment.header_bytes = static_cast<uint16_t>(header.size());
  segment.peer = SimLane::PeerOf(nic);
  if (payload != nullptr) {
    segment.payload = payload->data();
    segment.payload_bytes = static_cast<uint32_t>(payload->size());
  }
  return segment;
}

// Sends `packets` full packets from each of the hosts 1.. to host 0 at once.
inline std::unique_ptr<Fabric> Blast(const FabricConfig& config, uint32_t packets,
                                     std::vector<std::unique_ptr<WindowHost>>& hosts) {
  auto fabric = Build(config);
  hosts.push_back(std::make_unique<WindowHost>(*fabric, 0, std::vector<uint32_t>{1}, 0, 1));
  for (uint32_t host = 1; host < fabric->hosts(); ++host) {
    hosts.push_back(std::make_unique<WindowHost>(*fabric, host, std::vector<uint32_t>{0}, packets, packets));
  }
  fabric->Run(Time::Never());
  return fabric;
}

inline uint32_t QueueMax(const Fabric& fabric, bool last_hop_only) {
  uint32_t largest = 0;
  for (uint32_t port = fabric.first_switch_port(); port < fabric.end_port(); ++port) {
    if (fabric.IsLastHop(port) || !last_hop_only) largest = std::max(largest, fabric.QueueMaxBytes(port));
  }
  return largest;
}

inline uint32_t QueueQuantile(const Fabric& fabric, double quantile) {
  uint32_t largest = 0;
  for (uint32_t port = fabric.first_switch_port(); port < fabric.end_port(); ++port) {
    largest = std::max(largest, fabric.QueueQuantileBytes(port, quantile));
  }
  return largest;
}

}  // namespace paceline::sim
