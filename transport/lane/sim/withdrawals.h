// The links that the switches' routing has withdrawn, and the port that a packet takes without them: what a routing
// protocol does some time after a link died, and again after it came back.
//
// A withdrawn link is used in neither direction. A switch leaves out its own withdrawn links and those next hops from
// which the destination cannot be reached any more; packets that the hash sends another way keep it. Where no way is
// left the hash decides as if nothing were withdrawn, and the packets are lost at the dead link. Routes stay those of
// the topology: a tree goes up, then down; a graph takes its shortest ways; a dragonfly goes over as many groups as
// its routing allows.
//
// Thread rule: owned by Fabric, one thread. Times are picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/lane/sim/sim_time.h"
#include "transport/lane/sim/topology.h"

namespace paceline::sim {

class Withdrawals {
 public:
  // A change of a link's state takes effect once it has lasted `delay`. 0: nothing is ever withdrawn.
  Withdrawals(const Topology& topology, Picos delay) : topology_(topology), delay_(delay) {}

  // A directed link went down or came back. Returns when Update is to be called; kNeverPicos: not for this.
  Picos OnLinkChange(uint32_t port, bool down, Picos now);
  void Update(Picos now);

  // Some link is withdrawn: only then may the following be asked.
  bool any() const { return any_; }
  // Output port of switch `s` for a packet to the NIC in slot `destination`.
  uint32_t Route(const SwitchInfo& s, uint32_t destination, uint32_t route_hash);
  // The link of `port` is in use, and from its other end the destination can be reached. Not of a dragonfly.
  bool Leads(uint32_t port, uint32_t destination);

 private:
  struct Link {
    bool down = false;
    Picos since = 0;
  };
  bool Reaches(uint32_t node, uint32_t destination);

  const Topology& topology_;
  const Picos delay_;
  std::vector<Link> links_;         // by port; empty until the first change
  std::vector<uint8_t> withdrawn_;  // by port, both directions of a link alike
  bool any_ = false;
  // By switch and destination, those that were asked for since the last change.
  absl::flat_hash_map<uint64_t, bool> reaches_;
};

}  // namespace paceline::sim
