// The best that a fabric could do for a workload: what completion times are compared with.
//
// ideal = over all links, the largest of (wire bytes that must cross it, each packet once, spread as evenly as the
// parallel links allow) / capacity, plus the base round trip of the longest pair, minus one packet time, both of the
// largest packet that there is. Links that do the same are one: a host's up (down) links, all uplinks (downlinks) of
// the ToRs of the same hosts, of a pod; for what is bound to a NIC, that NIC's links, those of its ToR, those of its
// pod. Flows that start late count from their start. With dependent flows, the longest chain of delays and of flows
// that each have the fabric for themselves; links carry the flows that one trigger waits for, and all flows of the run,
// one after the other from the time on when each can start.
//
// Thread rule: pure functions. Times are picoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/study/critical_path.h"
#include "tools/study/workload.h"
#include "transport/lane/sim/fabric.h"
#include "transport/lane/sim/topology.h"

namespace paceline::tools {

class IdealModel {
 public:
  // `link_fraction`: what is left of each port's rate, by port; empty: all of it.
  IdealModel(const sim::Topology& topology, uint32_t mtu_bytes, uint32_t header_bytes,
             std::vector<double> link_fraction = {});

  // Wire bytes and data packets of a message.
  uint64_t WireBytes(uint64_t bytes) const;
  uint64_t Packets(uint64_t bytes) const { return (bytes + mtu_bytes_ - 1) / mtu_bytes_; }

  // Of one flow alone: at line rate, with its pair's own round trip, from its start.
  sim::Picos FlowIdeal(const Flow& flow) const;
  // Of the whole workload, from time 0. Nothing when a link that is needed has no capacity left.
  std::optional<CriticalPath> WorkloadIdeal(const Workload& workload) const;

 private:
  std::optional<sim::Picos> Independent(const Workload& workload) const;
  std::optional<CriticalPath> Dependent(const Workload& workload) const;
  // What a flow takes from its start when it is alone.
  FlowCost LeastTimes(const Flow& flow) const;
  // When the last link has passed on what must cross it of these flows, none of which starts before its time in
  // `starts` (by flow of the workload). Nothing when a link that is needed has no capacity left.
  std::optional<sim::Picos> LinksBusyUntil(const Workload& workload, const std::vector<uint32_t>& flows,
                                           const std::vector<sim::Picos>& starts) const;
  // The largest packet of a message, on the wire.
  uint32_t LargestPacket(uint64_t bytes) const;
  // Wire bytes of a flow that is alone, without a last packet that another way may bring ahead of the first.
  uint64_t LeastWireBytes(const Flow& flow) const;
  double Line(const Flow& flow) const;
  // The NIC of `host` by which the flow goes; its first where that is any.
  uint32_t NicOf(const Flow& flow, uint32_t host) const;
  // It is bound to one, and that works at both ends.
  bool KeepsToItsNic(const Flow& flow) const;
  double Rate(uint32_t port) const;  // bits per second

  const sim::Topology& topology_;
  const uint32_t mtu_bytes_;
  const uint32_t header_bytes_;
  const std::vector<double> link_fraction_;
  uint64_t fastest_nic_ = 0;  // bits per second
  // A part of the fabric with links to the rest.
  struct Subtree {
    double up = 0;    // bits per second out of it
    double down = 0;  // into it
  };
  // Parts of one size, which together are all: each host, the hosts of each ToR, each pod; or, for flows that are bound
  // to a NIC, each NIC, those of each ToR, those of each pod.
  struct Level {
    bool of_nics = false;
    std::vector<Subtree> subtrees;
    std::vector<uint32_t> subtree_of;  // by host, or by NIC
  };
  void AddLevels(bool of_nics);
  std::vector<Level> levels_;
};

// What the faults that never end leave of each port's rate; empty when no fault takes any.
std::vector<double> LastingLinkFractions(const sim::FabricConfig& config, const sim::Topology& topology);

}  // namespace paceline::tools
