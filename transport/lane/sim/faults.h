// What can go wrong in the simulated fabric, when, and where.
//
// Targets name links, always both directions:
//   "host:3/nic:0"        a host's link                "tor:2/up:1", "agg:5/up:0", "core:1/down:3"   a switch's link
//   "host:3"              all links of a host
//   "switch:core:1"       all links of a switch        "random:4:agg-core"   links between two tiers, chosen by the
//   seed, "hosts"               all hosts' links                                   in different pods as far as they go
//   "all"                 every link
// Tiers are host, tor, agg, core; in a fabric of two tiers "leaf" and "spine" mean tor and core.
//
// Thread rule: values; resolved once before a run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/random.h"
#include "transport/lane/sim/sim_time.h"
#include "transport/lane/sim/topology.h"

namespace paceline::sim {

enum class FaultKind : uint8_t {
  kLoss,          // each packet that crosses a link is lost with `probability`
  kDuplicate,     // ... arrives twice
  kReorder,       // ... arrives up to `delay` later, so that others overtake it
  kCorrupt,       // ... has a bit turned over (FabricConfig::deliver_corrupted) or is dropped for its checksum
  kLinkDown,      // nothing gets through, packets on the wire included
  kLinkSlow,      // the link runs at `fraction` of its rate
  kNicDown,       // as kLinkDown for a host's link
  kSwitchReboot,  // a switch forgets what waits in it, and until the end all its links are down
  kHostSlow,      // a host's software sees everything `delay` late, with all that came meanwhile
};

struct Fault {
  FaultKind kind = FaultKind::kLoss;
  Picos at = 0;
  Picos until = kNeverPicos;
  double probability = 0;  // kLoss, kDuplicate, kReorder, kCorrupt
  double fraction = 1;     // kLinkSlow, in (0, 1]
  Picos delay = 0;         // kReorder, kHostSlow
  std::string target = "all";
};

// Ports (both directions) that a target names in this fabric; refused with the reason when there is no such thing.
absl::StatusOr<std::vector<uint32_t>> ResolveTarget(std::string_view target, const Topology& topology, Random& random);

// What is wrong with one directed link at this moment.
struct LinkDamage {
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  Picos reorder_delay = 0;
  double fraction = 1;
  Picos host_delay = 0;  // of a NIC's link: of its host's software
  bool down = false;
  bool emptied = false;  // the switch that it leaves forgets what waits for it

  bool disturbs() const { return down || loss > 0 || duplicate > 0 || reorder > 0 || corrupt > 0; }
};

// All faults of a run with their targets resolved, and the damage that those active at a time add up to.
class FaultPlan {
 public:
  static absl::StatusOr<FaultPlan> Create(const std::vector<Fault>& faults, const Topology& topology, Random& random);

  bool empty() const { return faults_.empty(); }
  // Times at which the damage changes, ascending.
  const std::vector<Picos>& changes() const { return changes_; }
  // Ports that any fault touches, ascending.
  const std::vector<uint32_t>& ports() const { return ports_; }
  LinkDamage DamageAt(uint32_t port, Picos time) const;

 private:
  struct Resolved {
    Fault fault;
    std::vector<uint32_t> ports;    // ascending
    std::vector<uint32_t> emptied;  // of these, those that leave a switch that reboots
  };
  std::vector<Resolved> faults_;
  std::vector<Picos> changes_;
  std::vector<uint32_t> ports_;
};

}  // namespace paceline::sim
