// All counters of an engine in one order: the endpoint's, then for each port the lane's and, where the lane is impaired
// on purpose, what the impairment did. The shared page and the snapshot both use it.
//
// Thread rule: the engine's thread.
#pragma once

#include <string>
#include <vector>

#include "paceline/counters.h"
#include "transport/core/counters.h"
#include "transport/engine/engine.h"
#include "transport/lane/impair/impair_lane.h"

namespace paceline::api {

// X(field, unit, meaning), of LaneCounters.
#define PACELINE_LANE_COUNTERS(X)                                                                            \
  X(tx_packets, "packets", "packets handed to the network")                                                  \
  X(tx_bytes, "bytes", "their bytes, Paceline headers and payload")                                          \
  X(tx_calls, "calls", "system calls that sent them")                                                        \
  X(tx_drops, "packets", "packets taken from the core that could not be sent")                               \
  X(rx_packets, "packets", "packets that arrived")                                                           \
  X(rx_bytes, "bytes", "their bytes, Paceline headers and payload")                                          \
  X(rx_calls, "calls", "system calls that received something")                                               \
  X(rx_drops, "packets", "packets that the port or the kernel dropped for want of buffer, and damaged ones") \
  X(tx_in_place, "packets", "of those sent, over dpdk: their payload was read where it lay, not copied by the lane")

// X(field, unit, meaning), of ImpairCounters.
#define PACELINE_IMPAIR_COUNTERS(X)                                        \
  X(lost_packets, "packets", "packets dropped on purpose")                 \
  X(lost_bytes, "bytes", "their bytes, headers and payload")               \
  X(duplicated_packets, "packets", "packets delivered twice on purpose")   \
  X(reordered_packets, "packets", "packets delivered late on purpose")     \
  X(corrupted_packets, "packets", "packets with a bit flipped on purpose") \
  X(corrupted_bytes, "bytes", "their bytes, headers and payload")

// Calls visit(value) for each counter, in the order of ListCounters.
template <typename Visit>
void ForEachCounterValue(Engine& engine, const std::vector<const ImpairLane*>& impaired, Visit&& visit) {
#define PACELINE_VISIT(name, unit, meaning) visit(counters.name);
  {
    const EndpointCounters& counters = engine.endpoint().counters();
    PACELINE_ENDPOINT_COUNTERS(PACELINE_VISIT)
  }
  const auto lanes = engine.lanes();
  for (size_t port = 0; port < lanes.size(); ++port) {
    {
      const LaneCounters& counters = lanes[port]->counters();
      PACELINE_LANE_COUNTERS(PACELINE_VISIT)
    }
    if (!impaired.empty()) {
      const ImpairCounters& counters = impaired[port]->impair_counters();
      PACELINE_IMPAIR_COUNTERS(PACELINE_VISIT)
    }
  }
#undef PACELINE_VISIT
}

// `impaired`: by port, or empty. `first_port`: by which number the first port is named.
std::vector<Counter> ListCounters(Engine& engine, const std::vector<const ImpairLane*>& impaired,
                                  size_t first_port = 0);

}  // namespace paceline::api
