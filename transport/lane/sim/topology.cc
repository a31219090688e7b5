#include "transport/lane/sim/topology.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paceline::sim {
namespace {

// Uplinks of a switch with `down_ports` downlinks at the given oversubscription; refused unless it is a whole number.
absl::StatusOr<uint32_t> UplinksFor(uint32_t down_ports, double oversubscription, const std::string& tier) {
  if (!(oversubscription > 0)) {
    return absl::InvalidArgumentError("fabric.oversubscription must be above 0");
  }
  const double exact = down_ports / oversubscription;
  const double rounded = std::round(exact);
  if (rounded < 1 || std::fabs(exact - rounded) > 1e-9 || rounded > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.oversubscription ", oversubscription, " leaves ", exact,
                                                   " uplinks for the ", down_ports, " downlinks of a ", tier,
                                                   " switch: it must divide them into a whole number of at least 1"));
  }
  return static_cast<uint32_t>(rounded);
}

// One ratio per tier of switches that has uplinks, from the ToR upwards.
absl::StatusOr<std::vector<double>> RatiosPerTier(const std::vector<double>& given, size_t tiers) {
  if (given.size() == tiers) return given;
  if (given.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.oversubscription has ", given.size(),
                                                   " entries: give one number, or a list of ", tiers,
                                                   " (one per tier of switches below the top)"));
  }
  std::vector<double> ratios(tiers, 1.0);
  if (!given.empty()) ratios.back() = given[0];
  return ratios;
}

absl::Status MustDivide(std::string part_key, uint32_t part, std::string whole_key, uint32_t whole) {
  if (part > 0 && whole % part == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("fabric.", part_key, " = ", part, " must divide fabric.", whole_key, " = ", whole));
}

}  // namespace

std::string_view TierName(Tier tier) {
  switch (tier) {
    case Tier::kHost:
      return "host";
    case Tier::kTor:
      return "tor";
    case Tier::kAgg:
      return "agg";
    case Tier::kCore:
      return "core";
  }
  return "";
}

absl::StatusOr<Topology> Topology::Create(const TopologyConfig& config) {
  Topology topology(config);
  if (absl::Status status = topology.Build(); !status.ok()) return status;
  return topology;
}

absl::Status Topology::Check() const {
  if (config_.hosts < 2 || config_.hosts > 65536) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.hosts = ", config_.hosts, " must be 2 to 65536"));
  }
  if (config_.nics_per_host < 1 || config_.nics_per_host > 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric.nics_per_host = ", config_.nics_per_host, " must be 1 to 8"));
  }
  if (uint64_t{config_.hosts} * config_.nics_per_host > 65536) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.hosts = ", config_.hosts, " times fabric.nics_per_host = ",
                                                   config_.nics_per_host, " must be at most 65536"));
  }
  if (!(config_.link_gbps >= 0.001) || config_.link_gbps > 10000) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric.link_gbps = ", config_.link_gbps, " must be 0.001 to 10000"));
  }
  if (config_.link_delay_ns < 0 || config_.switch_delay_ns < 0 || config_.nic_delay_ns < 0) {
    return absl::InvalidArgumentError("fabric.link_delay_ns, switch_delay_ns and nic_delay_ns must not be negative");
  }
  if (config_.kind == TopologyKind::kGraph && config_.planes != 1) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.planes = ", config_.planes,
                                                   " goes with no topology from a file: its links say what is joined"));
  }
  absl::Status status = MustDivide("planes", config_.planes, "nics_per_host", config_.nics_per_host);
  if (status.ok() && config_.kind == TopologyKind::kDragonfly) return CheckDragonfly();
  if (!is_tree() || !status.ok()) return status;
  if (tiers() != 2 && tiers() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.tiers = ", tiers(), " must be 2 or 3"));
  }
  status = MustDivide("tor_radix", config_.tor_radix, tiers() == 3 ? "pod_size" : "hosts", pod_hosts());
  if (status.ok() && tiers() == 3) status = MustDivide("pod_size", config_.pod_size, "hosts", config_.hosts);
  return status;
}

// Plane by plane; in a plane host by host, on rails pod by pod, there NIC number by NIC number.
void Topology::NumberSlots() {
  slot_of_nic_.resize(nics_);
  nic_of_slot_.resize(nics_);
  const uint32_t nics = nics_per_plane();
  for (uint32_t nic = 0; nic < nics_; ++nic) {
    const uint32_t host = host_of(nic);
    const uint32_t number = nic % config_.nics_per_host / config_.planes;  // among the host's in this plane
    uint32_t slot = host * nics + number;
    if (config_.kind == TopologyKind::kRailOptimized) {
      const uint32_t pod = host / pod_hosts();
      slot = (pod * nics + number) * pod_hosts() + host % pod_hosts();
    }
    slot += first_slot_of_plane(plane_of(nic));
    slot_of_nic_[nic] = slot;
    nic_of_slot_[slot] = nic;
  }
}

absl::Status Topology::Build() {
  if (absl::Status status = Check(); !status.ok()) return status;
  nics_ = config_.hosts * config_.nics_per_host;
  links_.resize(nics_);
  NumberSlots();
  farthest_[1] = (config_.hosts - 1) * config_.nics_per_host;
  if (config_.kind == TopologyKind::kGraph) return BuildGraph();
  for (uint32_t plane = 0; plane < config_.planes; ++plane) {
    absl::Status status;
    if (is_tree()) {
      status = BuildTree(plane);
    } else if (config_.kind == TopologyKind::kDumbbell) {
      status = BuildDumbbell(plane);
    } else if (config_.kind == TopologyKind::kDragonfly) {
      BuildDragonfly(plane);
    } else {
      BuildSingleSwitch(plane);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Topology::BuildSingleSwitch(uint32_t plane) {
  const uint32_t first = first_slot_of_plane(plane), end = first_slot_of_plane(plane + 1);
  JoinNics(AddSwitch({.tier = Tier::kTor,
                      .index = plane,
                      .first_slot = first,
                      .end_slot = end,
                      .down_ports = end - first,
                      .end_host = config_.hosts}));
}

absl::Status Topology::BuildDumbbell(uint32_t plane) {
  if (config_.hosts % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.hosts = ", config_.hosts, " must be even for a dumbbell"));
  }
  if (config_.oversubscription.size() > 1) {
    return absl::InvalidArgumentError("fabric.oversubscription of a dumbbell is one number");
  }
  const uint32_t half_hosts = config_.hosts / 2;
  const uint32_t half = half_hosts * nics_per_plane();
  const double ratio = core_oversubscription();
  if (!(ratio > 0)) return absl::InvalidArgumentError("fabric.oversubscription must be above 0");
  uint32_t sides[2];
  for (uint32_t side = 0; side < 2; ++side) {
    const uint32_t first = first_slot_of_plane(plane) + side * half;
    sides[side] = AddSwitch({.tier = Tier::kTor,
                             .index = plane * 2 + side,
                             .first_slot = first,
                             .end_slot = first + half,
                             .down_ports = half,
                             .up_ports = 1,
                             .first_host = side * half_hosts,
                             .end_host = (side + 1) * half_hosts});
    JoinNics(sides[side]);
  }
  Join(sides[0], switch_of_node(sides[0]).first_up_port, sides[1], switch_of_node(sides[1]).first_up_port,
       half * config_.link_gbps / ratio);
  return absl::OkStatus();
}

absl::Status Topology::BuildTree(uint32_t plane) {
  absl::StatusOr<std::vector<double>> ratios = RatiosPerTier(config_.oversubscription, tiers() - 1);
  if (!ratios.ok()) return ratios.status();
  const uint32_t radix = config_.tor_radix;
  const uint32_t rails = config_.kind == TopologyKind::kRailOptimized ? nics_per_plane() : 1;
  const uint32_t tor_nics = radix * nics_per_plane() / rails;
  const absl::StatusOr<uint32_t> tor_ups = UplinksFor(tor_nics, (*ratios)[0], "ToR");
  if (!tor_ups.ok()) return tor_ups.status();
  const uint32_t pods = config_.hosts / pod_hosts();
  const uint32_t groups = pod_hosts() / radix;  // of hosts that share ToRs
  const uint32_t pod_tors = groups * rails;
  const uint32_t pod_nics = pod_tors * tor_nics;
  const uint32_t first_slot = first_slot_of_plane(plane);
  std::vector<uint32_t> tor_nodes, agg_nodes;
  for (uint32_t t = 0; t < pods * pod_tors; ++t) {
    const uint32_t pod = t / pod_tors;
    const uint32_t first_host = pod * pod_hosts() + t % pod_tors % groups * radix;
    tor_nodes.push_back(AddSwitch({.tier = Tier::kTor,
                                   .index = plane * pods * pod_tors + t,
                                   .pod = pod,
                                   .first_slot = first_slot + t * tor_nics,
                                   .end_slot = first_slot + (t + 1) * tor_nics,
                                   .down_ports = tor_nics,
                                   .up_ports = *tor_ups,
                                   .first_host = first_host,
                                   .end_host = first_host + radix}));
    JoinNics(tor_nodes.back());
  }
  // The next tier: in each pod (or, with two tiers, in the whole plane) one switch per uplink of a ToR.
  uint32_t agg_ups = 0;
  if (tiers() == 3) {
    const absl::StatusOr<uint32_t> ups = UplinksFor(pod_tors, (*ratios)[1], "aggregation");
    if (!ups.ok()) return ups.status();
    agg_ups = *ups;
  }
  for (uint32_t pod = 0; pod < pods; ++pod) {
    for (uint32_t a = 0; a < *tor_ups; ++a) {
      agg_nodes.push_back(AddSwitch({.tier = tiers() == 3 ? Tier::kAgg : Tier::kCore,
                                     .index = (plane * pods + pod) * *tor_ups + a,
                                     .pod = pod,
                                     .first_slot = first_slot + pod * pod_nics,
                                     .end_slot = first_slot + (pod + 1) * pod_nics,
                                     .down_ports = pod_tors,
                                     .up_ports = agg_ups,
                                     .first_host = pod * pod_hosts(),
                                     .end_host = (pod + 1) * pod_hosts()}));
      for (uint32_t t = 0; t < pod_tors; ++t) {
        const uint32_t tor = tor_nodes[pod * pod_tors + t];
        Join(tor, switch_of_node(tor).first_up_port + a, agg_nodes.back(),
             switch_of_node(agg_nodes.back()).first_down_port + t, config_.link_gbps);
      }
    }
  }
  for (uint32_t group = 0; tiers() == 3 && group < *tor_ups; ++group) {
    for (uint32_t k = 0; k < agg_ups; ++k) {
      const uint32_t core = AddSwitch({.tier = Tier::kCore,
                                       .index = (plane * *tor_ups + group) * agg_ups + k,
                                       .first_slot = first_slot,
                                       .end_slot = first_slot + pods * pod_nics,
                                       .down_ports = pods,
                                       .end_host = config_.hosts});
      for (uint32_t pod = 0; pod < pods; ++pod) {
        const uint32_t agg = agg_nodes[pod * *tor_ups + group];
        Join(agg, switch_of_node(agg).first_up_port + k, core, switch_of_node(core).first_down_port + pod,
             config_.link_gbps);
      }
    }
  }
  return absl::OkStatus();
}

uint32_t Topology::AddSwitch(SwitchInfo s) {
  s.nics_per_down_port = (s.end_slot - s.first_slot) / s.down_ports;
  if (s.nics_per_down_port > 1) {
    // Exact for offsets and divisors below 2^16.
    s.down_reciprocal = static_cast<uint32_t>(((uint64_t{1} << 32) + s.nics_per_down_port - 1) / s.nics_per_down_port);
  }
  s.first_down_port = static_cast<uint32_t>(links_.size());
  s.first_up_port = s.first_down_port + s.down_ports;
  s.hash_shift = s.tier == Tier::kTor ? 0 : 16;
  links_.resize(links_.size() + s.down_ports + s.up_ports);
  switches_.push_back(s);
  return nics_ + static_cast<uint32_t>(switches_.size()) - 1;
}

void Topology::JoinNics(uint32_t tor_node) {
  const SwitchInfo s = switch_of_node(tor_node);
  for (uint32_t slot = s.first_slot; slot < s.end_slot; ++slot) {
    const uint32_t nic = nic_of_slot_[slot];
    Join(nic, nic, tor_node, s.first_down_port + (slot - s.first_slot), config_.link_gbps);
  }
}

void Topology::Join(uint32_t lower_node, uint32_t up_port, uint32_t upper_node, uint32_t down_port, double gbps) {
  LinkInfo up;
  up.from = lower_node;
  up.to = upper_node;
  up.from_tier = TierOf(lower_node);
  up.to_tier = TierOf(upper_node);
  up.reverse = down_port;
  up.bits_per_second = static_cast<uint64_t>(std::llround(gbps * 1e9));
  const int64_t nic = up.from_tier == Tier::kHost ? config_.nic_delay_ns : 0;
  up.delay = (config_.link_delay_ns + config_.switch_delay_ns + nic) * kPicosPerNano;
  LinkInfo down = up;
  std::swap(down.from, down.to);
  std::swap(down.from_tier, down.to_tier);
  down.reverse = up_port;
  if (down.to_tier == Tier::kHost) down.delay -= config_.switch_delay_ns * kPicosPerNano;
  links_[up_port] = up;
  links_[down_port] = down;
}

double Topology::host_bits_per_second(uint32_t host) const {
  double sum = 0;
  for (uint32_t nic = 0; nic < config_.nics_per_host; ++nic) {
    sum += static_cast<double>(links_[host * config_.nics_per_host + nic].bits_per_second);
  }
  return sum;
}

double Topology::core_oversubscription() const {
  if (config_.kind == TopologyKind::kDragonfly) {
    return static_cast<double>(config_.pod_size * nics_per_plane()) / (routers_per_group() * global_links());
  }
  if (config_.kind == TopologyKind::kDumbbell && config_.oversubscription.empty()) {
    return config_.hosts / 2 * nics_per_plane();  // the link between is as fast as a host's
  }
  double ratio = 1;
  for (const double tier : config_.oversubscription) ratio *= tier;
  return ratio;
}

std::vector<uint32_t> Topology::Path(uint32_t source, uint32_t destination, uint32_t route_hash) const {
  std::vector<uint32_t> path = {source};
  while (links_[path.back()].to != destination) {
    path.push_back(Route(switch_of_node(links_[path.back()].to), slot_of(destination), route_hash));
  }
  return path;
}

std::vector<uint32_t> Topology::FastestPath(uint32_t source, uint32_t destination, uint32_t bytes) const {
  if (config_.kind == TopologyKind::kDragonfly) return ShortestDragonflyPath(source, destination);
  if (config_.kind == TopologyKind::kGraph) return FastestGraphPath(source, destination, bytes);
  return Path(source, destination, 0);
}

Picos Topology::BaseRtt(uint32_t source, uint32_t destination, uint32_t forward_bytes, uint32_t back_bytes) const {
  if (config_.kind == TopologyKind::kDragonfly) {
    return RttOver(ShortestDragonflyPath(source, destination), forward_bytes, back_bytes);
  }
  const bool graph = config_.kind == TopologyKind::kGraph;
  return RttOver(graph ? TypicalGraphPath(source, destination) : Path(source, destination, 0), forward_bytes,
                 back_bytes);
}

Picos Topology::RttOver(const std::vector<uint32_t>& path, uint32_t forward_bytes, uint32_t back_bytes) const {
  Picos total = 0;
  for (uint32_t port : path) {
    const LinkInfo& link = links_[port];
    const LinkInfo& back = links_[link.reverse];
    total += SerialisationPicos(forward_bytes, link.bits_per_second) + link.delay;
    total += SerialisationPicos(back_bytes, back.bits_per_second) + back.delay;
  }
  return total;
}

Picos Topology::LongestWayRtt(uint32_t source, uint32_t destination, uint32_t forward_bytes,
                              uint32_t back_bytes) const {
  if (config_.kind == TopologyKind::kGraph) return SlowestGraphRtt(source, destination, forward_bytes, back_bytes);
  const Picos shortest = BaseRtt(source, destination, forward_bytes, back_bytes);
  if (config_.kind != TopologyKind::kDragonfly) return shortest;
  // All links between routers are alike.
  const std::vector<uint32_t> path = ShortestDragonflyPath(source, destination);
  const LinkInfo& link = links_[switch_of_node(links_[source].to).first_up_port];
  const Picos each = SerialisationPicos(forward_bytes, link.bits_per_second) +
                     SerialisationPicos(back_bytes, link.bits_per_second) + 2 * link.delay;
  return shortest + static_cast<Picos>(LinksOfLongestWay(source, destination) - path.size()) * each;
}

Picos Topology::LongestBaseRtt(uint32_t forward_bytes, uint32_t back_bytes) const {
  // All but graphs and dragonflies are symmetric, and their first and last host lie in different subtrees of the top.
  // Traffic keeps to NICs of equal number.
  return BaseRtt(farthest_[0], farthest_[1], forward_bytes, back_bytes);
}

std::string Topology::PortName(uint32_t port) const {
  const LinkInfo& link = links_[port];
  if (link.from < nics_) {
    return absl::StrCat("host:", link.from / config_.nics_per_host, "/nic:", link.from % config_.nics_per_host);
  }
  const SwitchInfo& s = switch_of_node(link.from);
  const std::string name = absl::StrCat(std::string(TierName(s.tier)), ":", s.index);
  if (port >= s.first_up_port) return absl::StrCat(name, "/up:", port - s.first_up_port);
  return absl::StrCat(name, "/down:", port - s.first_down_port);
}

}  // namespace paceline::sim
