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

absl::Status Topology::Build() {
  if (config_.hosts < 2 || config_.hosts > 65536) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.hosts = ", config_.hosts, " must be 2 to 65536"));
  }
  if (config_.nics_per_host != 1) {
    return absl::UnimplementedError("fabric.nics_per_host must be 1: several NICs a host are planned, not built yet");
  }
  if (!(config_.link_gbps >= 0.001) || config_.link_gbps > 10000) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric.link_gbps = ", config_.link_gbps, " must be 0.001 to 10000"));
  }
  if (config_.link_delay_ns < 0 || config_.switch_delay_ns < 0 || config_.nic_delay_ns < 0) {
    return absl::InvalidArgumentError("fabric.link_delay_ns, switch_delay_ns and nic_delay_ns must not be negative");
  }
  nics_ = config_.hosts * config_.nics_per_host;
  links_.resize(nics_);
  switch (config_.kind) {
    case TopologyKind::kSingleSwitch:
      BuildSingleSwitch();
      return absl::OkStatus();
    case TopologyKind::kDumbbell:
      return BuildDumbbell();
    case TopologyKind::kLeafSpine:
    case TopologyKind::kFatTree:
      return BuildTree();
  }
  return absl::InternalError("unknown topology");
}

void Topology::BuildSingleSwitch() {
  const uint32_t node = AddSwitch(Tier::kTor, 0, 0, 0, nics_, nics_, 0);
  for (uint32_t nic = 0; nic < nics_; ++nic) {
    Join(nic, nic, node, switch_of_node(node).first_down_port + nic, config_.link_gbps);
  }
}

absl::Status Topology::BuildDumbbell() {
  if (nics_ % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.hosts = ", config_.hosts, " must be even for a dumbbell"));
  }
  if (config_.oversubscription.size() > 1) {
    return absl::InvalidArgumentError("fabric.oversubscription of a dumbbell is one number");
  }
  const uint32_t half = nics_ / 2;
  const double ratio = config_.oversubscription.empty() ? half : config_.oversubscription[0];
  if (!(ratio > 0)) return absl::InvalidArgumentError("fabric.oversubscription must be above 0");
  const uint32_t left = AddSwitch(Tier::kTor, 0, 0, 0, half, half, 1);
  const uint32_t right = AddSwitch(Tier::kTor, 1, 0, half, nics_, half, 1);
  for (uint32_t nic = 0; nic < nics_; ++nic) {
    const uint32_t node = nic < half ? left : right;
    const SwitchInfo& s = switch_of_node(node);
    Join(nic, nic, node, s.first_down_port + (nic - s.first_nic), config_.link_gbps);
  }
  Join(left, switch_of_node(left).first_up_port, right, switch_of_node(right).first_up_port,
       half * config_.link_gbps / ratio);
  return absl::OkStatus();
}

absl::Status Topology::BuildTree() {
  const uint32_t tiers = config_.kind == TopologyKind::kLeafSpine ? 2 : config_.tiers;
  if (tiers != 2 && tiers != 3) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.tiers = ", tiers, " must be 2 or 3"));
  }
  const uint32_t radix = config_.tor_radix;
  absl::Status status =
      MustDivide("tor_radix", radix, tiers == 3 ? "pod_size" : "hosts", tiers == 3 ? config_.pod_size : config_.hosts);
  if (status.ok() && tiers == 3) status = MustDivide("pod_size", config_.pod_size, "hosts", config_.hosts);
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<double>> ratios = RatiosPerTier(config_.oversubscription, tiers - 1);
  if (!ratios.ok()) return ratios.status();

  const uint32_t tors = nics_ / radix;
  const absl::StatusOr<uint32_t> tor_ups = UplinksFor(radix, (*ratios)[0], "ToR");
  if (!tor_ups.ok()) return tor_ups.status();
  std::vector<uint32_t> tor_nodes, agg_nodes;
  const uint32_t tors_per_pod = tiers == 3 ? config_.pod_size / radix : tors;
  for (uint32_t t = 0; t < tors; ++t) {
    tor_nodes.push_back(
        AddSwitch(Tier::kTor, t, tiers == 3 ? t / tors_per_pod : 0, t * radix, (t + 1) * radix, radix, *tor_ups));
    const SwitchInfo& tor = switches_.back();
    for (uint32_t i = 0; i < radix; ++i) {
      Join(tor.first_nic + i, tor.first_nic + i, tor_nodes.back(), tor.first_down_port + i, config_.link_gbps);
    }
  }
  // The next tier: in each pod (or, with two tiers, in the whole fabric) one switch per uplink of a ToR.
  const uint32_t pods = tors / tors_per_pod;
  uint32_t agg_ups = 0;
  if (tiers == 3) {
    const absl::StatusOr<uint32_t> ups = UplinksFor(tors_per_pod, (*ratios)[1], "aggregation");
    if (!ups.ok()) return ups.status();
    agg_ups = *ups;
  }
  const Tier second = tiers == 3 ? Tier::kAgg : Tier::kCore;
  for (uint32_t pod = 0; pod < pods; ++pod) {
    const uint32_t first = pod * tors_per_pod * radix;
    for (uint32_t a = 0; a < *tor_ups; ++a) {
      agg_nodes.push_back(
          AddSwitch(second, pod * *tor_ups + a, pod, first, first + tors_per_pod * radix, tors_per_pod, agg_ups));
      for (uint32_t t = 0; t < tors_per_pod; ++t) {
        const uint32_t tor = tor_nodes[pod * tors_per_pod + t];
        Join(tor, switch_of_node(tor).first_up_port + a, agg_nodes.back(),
             switch_of_node(agg_nodes.back()).first_down_port + t, config_.link_gbps);
      }
    }
  }
  for (uint32_t group = 0; tiers == 3 && group < *tor_ups; ++group) {
    for (uint32_t k = 0; k < agg_ups; ++k) {
      const uint32_t core = AddSwitch(Tier::kCore, group * agg_ups + k, 0, 0, nics_, pods, 0);
      for (uint32_t pod = 0; pod < pods; ++pod) {
        const uint32_t agg = agg_nodes[pod * *tor_ups + group];
        Join(agg, switch_of_node(agg).first_up_port + k, core, switch_of_node(core).first_down_port + pod,
             config_.link_gbps);
      }
    }
  }
  return absl::OkStatus();
}

uint32_t Topology::AddSwitch(Tier tier, uint32_t index, uint32_t pod, uint32_t first_nic, uint32_t end_nic,
                             uint32_t down_ports, uint32_t up_ports) {
  SwitchInfo s;
  s.tier = tier;
  s.index = index;
  s.pod = pod;
  s.first_nic = first_nic;
  s.end_nic = end_nic;
  s.nics_per_down_port = (end_nic - first_nic) / down_ports;
  if (s.nics_per_down_port > 1) {
    // Exact for offsets and divisors below 2^16.
    s.down_reciprocal = static_cast<uint32_t>(((uint64_t{1} << 32) + s.nics_per_down_port - 1) / s.nics_per_down_port);
  }
  s.first_down_port = static_cast<uint32_t>(links_.size());
  s.down_ports = down_ports;
  s.first_up_port = s.first_down_port + down_ports;
  s.up_ports = up_ports;
  s.hash_shift = tier == Tier::kTor ? 0 : 16;
  links_.resize(links_.size() + down_ports + up_ports);
  switches_.push_back(s);
  return nics_ + static_cast<uint32_t>(switches_.size()) - 1;
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

std::vector<uint32_t> Topology::Path(uint32_t source, uint32_t destination, uint32_t route_hash) const {
  std::vector<uint32_t> path = {source};
  while (links_[path.back()].to != destination) {
    path.push_back(Route(switch_of_node(links_[path.back()].to), destination, route_hash));
  }
  return path;
}

Picos Topology::BaseRtt(uint32_t source, uint32_t destination, uint32_t forward_bytes, uint32_t back_bytes) const {
  Picos total = 0;
  for (uint32_t port : Path(source, destination, 0)) {
    const LinkInfo& link = links_[port];
    const LinkInfo& back = links_[link.reverse];
    total += SerialisationPicos(forward_bytes, link.bits_per_second) + link.delay;
    total += SerialisationPicos(back_bytes, back.bits_per_second) + back.delay;
  }
  return total;
}

Picos Topology::LongestBaseRtt(uint32_t forward_bytes, uint32_t back_bytes) const {
  // Every topology here is symmetric, and its first and last NIC lie in different subtrees of the top.
  return BaseRtt(0, nics_ - 1, forward_bytes, back_bytes);
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
