// The best that a fabric could do for a workload: what completion times are compared with. No run can be faster.
//
// Over all links: the least time in which the link can pass on what must cross it (wire bytes, each packet once), when
// nothing gets there before the fastest path from its sender has brought it, and each packet has the rest of the
// fastest path still to go, and its acknowledgement the fastest path back to the sender (link_schedule.h). And not less
// than any flow needs that has the fabric for itself. Where all pairs have one round trip and all packets one size that
// is wire bytes over capacity, plus the base round trip, minus one packet time.
//
// Links that do the same are one, as if it sent parts of packets side by side: a host's up (down) links, all uplinks
// (downlinks) of the ToRs of the same hosts, of a pod; for what is bound to a NIC, that NIC's links, those of its ToR,
// those of its pod. With dependent flows, the longest chain of delays and of flows that each have the fabric for
// themselves; links carry the flows that one trigger waits for, and all flows of the run, from the time on when each
// can start, until they have been received.
//
// Thread rule: pure functions. Times are picoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
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
  sim::Picos FlowIdeal(const Flow& flow) const { return LeastTimes(flow).sent; }
  // Of the whole workload, from time 0. Nothing when a link that is needed has no capacity left.
  std::optional<CriticalPath> WorkloadIdeal(const Workload& workload) const;
  // With windows of messages: when the last source can be over if its flows, each alone, go through its window. Nothing
  // without one.
  std::optional<sim::Picos> WindowsBusyUntil(const Workload& workload) const;

 private:
  // Packets of one size of a message: the full ones, or the shorter one at its end.
  struct Part {
    uint64_t bytes = 0;         // of all of them on the wire
    uint32_t packet_bytes = 0;  // of each
    sim::Picos sent_after = 0;  // the flow's start
  };
  // A part of the fabric with links to the rest.
  struct Subtree {
    double up = 0;    // bits per second out of it
    double down = 0;  // into it
  };
  // Parts of one size, which together are all: each host, the hosts of each ToR, each pod; or, for flows that are bound
  // to a NIC, each NIC, those of each ToR, those of each pod.
  struct Level {
    bool of_nics = false;
    uint32_t links_below = 0;  // on the path from a NIC to the links between a part and the rest; of a tree
    std::vector<Subtree> subtrees;
    std::vector<uint32_t> subtree_of;  // by host, or by NIC
  };
  // What a packet needs before and behind the links that leave its source's part and those that enter its
  // destination's: until its first bit can be sent there, and from its last bit there until it has been received.
  struct Passage {
    sim::Picos before_up = 0, after_up = 0;
    sim::Picos before_down = 0, after_down = 0;
    sim::Picos first_to_last = 0;  // of its bytes on the mean, from the source's link to the destination's
  };
  // The end of what is bounded: the last packet at its receiver, or its acknowledgement at the sender.
  enum class End { kReceived, kSent };

  void AddLevels(bool of_nics);
  std::optional<sim::Picos> Independent(const Workload& workload) const;
  std::optional<CriticalPath> Dependent(const Workload& workload) const;
  // What a flow takes from its start when it is alone.
  FlowCost LeastTimes(const Flow& flow) const;
  // When the last of these flows can be over if but one link at a time is short; none starts before its time in
  // `starts` (by flow of the workload). Nothing when a link that is needed has no capacity left.
  std::optional<sim::Picos> LinksBusyUntil(const Workload& workload, const std::vector<uint32_t>& flows,
                                           const std::vector<sim::Picos>& starts, End end) const;
  // The same, of the hosts' links in both directions together.
  sim::Picos HostsBusyUntil(const Workload& workload, const std::vector<uint32_t>& flows,
                            const std::vector<sim::Picos>& starts, End end) const;
  absl::InlinedVector<Part, 2> PartsOf(const Flow& flow) const;
  // The least of each over the NICs that the flow may use. `links_below`: of the level.
  Passage PassageOf(const Flow& flow, uint32_t packet_bytes, uint32_t links_below) const;
  Passage PassageBetween(uint32_t from, uint32_t to, uint32_t packet_bytes, uint32_t links_below) const;
  // No path of a packet from NIC to NIC is faster.
  std::vector<uint32_t> FastestPath(uint32_t from, uint32_t to, uint32_t packet_bytes) const;
  sim::Picos TimeOver(std::span<const uint32_t> path, uint32_t packet_bytes) const;
  // Of a packet of the flow, and of an acknowledgement back to its source.
  sim::Picos LeastOneWay(const Flow& flow, uint32_t packet_bytes) const;
  sim::Picos AcknowledgementTime(const Flow& flow) const;
  // Numbers of the NICs that the flow may use at both ends; one, where all are alike.
  std::pair<uint32_t, uint32_t> NicsOf(const Flow& flow) const;  // first and end
  // It is bound to one, and that works at both ends and has links to get there.
  bool KeepsToItsNic(const Flow& flow) const;
  // Bits per second that the flow can use of a host, without damage.
  double HostRate(const Flow& flow, uint32_t host) const;
  double Rate(uint32_t port) const;  // bits per second, what damage leaves
  // The subtrees of the flow's ends, by host or by the NIC that it is bound to.
  std::pair<uint32_t, uint32_t> SubtreesOf(const Level& level, const Flow& flow) const;

  const sim::Topology& topology_;
  const uint32_t mtu_bytes_;
  const uint32_t header_bytes_;
  const std::vector<double> link_fraction_;
  std::vector<Level> levels_;
};

// What the faults that never end leave of each port's rate; empty when no fault takes any.
std::vector<double> LastingLinkFractions(const sim::FabricConfig& config, const sim::Topology& topology);

}  // namespace paceline::tools
