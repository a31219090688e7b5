// A NIC of the simulated fabric as a Lane. It states ECN, in-band telemetry, receive timestamps, the fabric's entropies
// and link rate, and trimming when the fabric does it. Payloads may be phantom (TxSegment::payload null): they have a
// length and no bytes.
//
// The send queue is short (FabricConfig::nic_queue_packets), control first, so that the protocol above keeps control of
// what leaves when; a host that filled it is polled again once half of it is free.
//
// Thread rule: the fabric's thread. Owned by Fabric. An address is the NIC's number in four bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/lane/lane.h"
#include "transport/lane/sim/sim_time.h"

namespace paceline::sim {

class Fabric;

class SimLane : public Lane {
 public:
  SimLane(Fabric& fabric, uint32_t nic);

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return address_; }
  LaneStatus status() const override { return status_; }
  const LaneCounters& counters() const override { return counters_; }

  // 0 for an address that is no NIC of this plane of the fabric; else PeerOf its number.
  uint32_t OpenPeer(const LaneAddress& address) override;
  void ClosePeer(uint32_t) override {}
  size_t room() const override;
  size_t Send(std::span<const TxSegment> segments) override;
  size_t Receive(std::span<RxSegment> out, Time now) override;

  static constexpr uint32_t NicOf(uint32_t peer) { return peer - 1; }
  static constexpr uint32_t PeerOf(uint32_t nic) { return nic + 1; }
  static LaneAddress AddressOf(uint32_t nic);

 private:
  friend class Fabric;
  struct Arrival {
    uint32_t packet;
    Picos time;
  };

  void SendOne(const TxSegment& segment);
  // From the fabric: a packet arrived; a waiting packet left the send queue (true: poll the host); the link changed.
  void Deliver(uint32_t packet, Picos time);
  bool OnDequeued();
  void OnLinkChange(bool up);

  Fabric& fabric_;
  const uint32_t nic_;
  std::string name_;
  LaneCapabilities capabilities_;
  LaneAddress address_;
  LaneStatus status_;
  LaneCounters counters_;
  uint32_t waiting_ = 0;          // packets in the send queue beside the one being sent
  bool full_ = false;             // the queue was filled: tell the host when half of it is free
  std::vector<Arrival> arrived_;  // a ring, a power of two
  size_t first_ = 0;
  size_t count_ = 0;
  std::vector<uint32_t> lent_;  // packets whose bytes the last Receive handed out
};

}  // namespace paceline::sim
