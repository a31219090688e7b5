#include "transport/lane/sim/faults.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace paceline::sim {
namespace {

constexpr char kTargetHelp[] =
    "it may be host:N, host:N/nic:N, tor:N/up:N, agg:N/up:N, core:N/down:N, switch:TIER:N, random:N:TIER-TIER, hosts "
    "or all";

absl::Status BadTarget(std::string_view target, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("fault.target \"", std::string(target), "\": ", why));
}

std::optional<Tier> ParseTier(const std::string& name, const Topology& topology) {
  for (Tier tier : {Tier::kHost, Tier::kTor, Tier::kAgg, Tier::kCore}) {
    if (name == TierName(tier)) return tier;
  }
  const bool two_tiers = std::none_of(topology.switches().begin(), topology.switches().end(),
                                      [](const SwitchInfo& s) { return s.tier == Tier::kAgg; });
  if (two_tiers && name == "leaf") return Tier::kTor;
  if (two_tiers && name == "spine") return Tier::kCore;
  return std::nullopt;
}

// "name:number"
bool ParseNumbered(const std::string& text, std::string* name, uint32_t* number) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 2) return false;
  *name = parts[0];
  return absl::SimpleAtoi(parts[1], number);
}

const SwitchInfo* FindSwitch(const Topology& topology, Tier tier, uint32_t index) {
  for (const SwitchInfo& s : topology.switches()) {
    if (s.tier == tier && s.index == index) return &s;
  }
  return nullptr;
}

template <typename T>
void SortUnique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::vector<uint32_t> BothDirections(const Topology& topology, const std::vector<uint32_t>& ports) {
  std::vector<uint32_t> both;
  for (uint32_t port : ports) {
    both.push_back(port);
    both.push_back(topology.links()[port].reverse);
  }
  SortUnique(both);
  return both;
}

absl::StatusOr<std::vector<uint32_t>> RandomLinks(std::string_view target, const std::vector<std::string>& parts,
                                                  const Topology& topology, Random& random) {
  uint32_t wanted = 0;
  const std::vector<std::string> names = absl::StrSplit(parts[2], '-');
  if (!absl::SimpleAtoi(parts[1], &wanted) || wanted == 0 || names.size() != 2) return BadTarget(target, kTargetHelp);
  const std::optional<Tier> a = ParseTier(names[0], topology), b = ParseTier(names[1], topology);
  if (!a || !b) return BadTarget(target, "this fabric has no such tier");
  // Candidates by the pod (or, without pods, the switch) that they leave.
  std::map<uint32_t, std::vector<uint32_t>> by_place;
  uint32_t found = 0;
  for (uint32_t port = 0; port < topology.links().size(); ++port) {
    const LinkInfo& link = topology.links()[port];
    if (link.from_tier != std::min(*a, *b) || link.to_tier != std::max(*a, *b)) continue;
    if (*a == *b && port > link.reverse) continue;  // each link once
    const uint32_t upper = link.from_tier == Tier::kHost ? link.to : link.from;
    const SwitchInfo& s = topology.switch_of_node(upper);
    by_place[topology.tiers() == 3 ? s.pod : s.index].push_back(port);
    ++found;
  }
  if (found < wanted) {
    return BadTarget(target, absl::StrCat("there are ", found, " links between these tiers"));
  }
  std::vector<std::vector<uint32_t>> places;
  for (auto& [place, ports] : by_place) places.push_back(std::move(ports));
  for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random.Below(i)]);
  std::vector<uint32_t> chosen;
  for (size_t i = 0; chosen.size() < wanted; i = (i + 1) % places.size()) {
    if (places[i].empty()) continue;
    const size_t pick = random.Below(places[i].size());
    chosen.push_back(places[i][pick]);
    places[i].erase(places[i].begin() + static_cast<ptrdiff_t>(pick));
  }
  return BothDirections(topology, chosen);
}

absl::Status CheckTarget(const Fault& fault, const Topology& topology, const std::vector<uint32_t>& ports) {
  if (fault.kind == FaultKind::kSwitchReboot) {
    if (fault.target.rfind("switch:", 0) != 0) return BadTarget(fault.target, "a switch_reboot takes switch:TIER:N");
    if (fault.until == kNeverPicos) {
      return absl::InvalidArgumentError("fault.until_us is missing: when the switch is back");
    }
  }
  if (fault.kind == FaultKind::kHostSlow) {
    for (uint32_t port : ports) {
      const LinkInfo& link = topology.links()[port];
      if (link.from_tier == Tier::kHost || link.to_tier == Tier::kHost) continue;
      return BadTarget(fault.target, "a host_slow takes host:N or hosts");
    }
    if (fault.delay <= 0) return absl::InvalidArgumentError("fault.delay_us of a host_slow must be above 0");
  }
  return absl::OkStatus();
}

// Of all links of one switch, those that leave it. `ports` has both directions.
std::vector<uint32_t> PortsOfTheSwitch(const Topology& topology, const std::vector<uint32_t>& ports) {
  std::map<uint32_t, std::vector<uint32_t>> by_node;
  for (uint32_t port : ports) {
    if (port >= topology.nics()) by_node[topology.links()[port].from].push_back(port);
  }
  return std::max_element(by_node.begin(), by_node.end(),
                          [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); })
      ->second;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> ResolveTarget(std::string_view target, const Topology& topology, Random& random) {
  std::vector<uint32_t> ports;
  const auto port_count = static_cast<uint32_t>(topology.links().size());
  if (target == "all" || target == "hosts") {
    for (uint32_t port = 0; port < (target == "all" ? port_count : topology.nics()); ++port) ports.push_back(port);
    return BothDirections(topology, ports);
  }
  const std::string text(target);
  const std::vector<std::string> by_colon = absl::StrSplit(text, ':');
  if (by_colon[0] == "random" && by_colon.size() == 3) return RandomLinks(target, by_colon, topology, random);
  if (by_colon[0] == "switch" && by_colon.size() == 3) {
    const std::optional<Tier> tier = ParseTier(by_colon[1], topology);
    uint32_t index = 0;
    if (!tier || !absl::SimpleAtoi(by_colon[2], &index)) return BadTarget(target, kTargetHelp);
    const SwitchInfo* s = FindSwitch(topology, *tier, index);
    if (s == nullptr) return BadTarget(target, "this fabric has no such switch");
    for (uint32_t i = 0; i < s->down_ports + s->up_ports; ++i) ports.push_back(s->first_down_port + i);
    return BothDirections(topology, ports);
  }
  const std::vector<std::string> by_slash = absl::StrSplit(text, '/');
  std::string name, port_name = "nic";
  uint32_t index = 0, number = 0;
  if (by_slash.size() > 2 || !ParseNumbered(by_slash[0], &name, &index) ||
      (by_slash.size() == 2 && !ParseNumbered(by_slash[1], &port_name, &number))) {
    return BadTarget(target, kTargetHelp);
  }
  const std::optional<Tier> tier = ParseTier(name, topology);
  if (!tier) return BadTarget(target, kTargetHelp);
  if (*tier == Tier::kHost) {
    if (port_name != "nic") return BadTarget(target, kTargetHelp);
    if (index >= topology.config().hosts || number >= topology.config().nics_per_host) {
      return BadTarget(target, "this fabric has no such host or NIC");
    }
    const uint32_t nics = topology.config().nics_per_host;
    for (uint32_t nic = 0; nic < nics; ++nic) {
      if (by_slash.size() == 1 || nic == number) ports.push_back(index * nics + nic);
    }
    return BothDirections(topology, ports);
  }
  if (by_slash.size() != 2 || (port_name != "up" && port_name != "down")) return BadTarget(target, kTargetHelp);
  const SwitchInfo* s = FindSwitch(topology, *tier, index);
  if (s == nullptr) return BadTarget(target, "this fabric has no such switch");
  if (number >= (port_name == "up" ? s->up_ports : s->down_ports)) {
    return BadTarget(target, "this switch has no such port");
  }
  ports.push_back((port_name == "up" ? s->first_up_port : s->first_down_port) + number);
  return BothDirections(topology, ports);
}

absl::StatusOr<FaultPlan> FaultPlan::Create(const std::vector<Fault>& faults, const Topology& topology,
                                            Random& random) {
  FaultPlan plan;
  for (const Fault& fault : faults) {
    if (fault.probability < 0 || fault.probability > 1) {
      return absl::InvalidArgumentError("fault.probability must be 0 to 1");
    }
    if (!(fault.fraction > 0) || fault.fraction > 1) {
      return absl::InvalidArgumentError("fault.fraction must be above 0 and at most 1");
    }
    if (fault.at < 0 || fault.until <= fault.at) {
      return absl::InvalidArgumentError("fault.until_us must lie after fault.at_us, which must not be negative");
    }
    absl::StatusOr<std::vector<uint32_t>> ports = ResolveTarget(fault.target, topology, random);
    if (!ports.ok()) return ports.status();
    if (absl::Status status = CheckTarget(fault, topology, *ports); !status.ok()) return status;
    plan.ports_.insert(plan.ports_.end(), ports->begin(), ports->end());
    plan.changes_.push_back(fault.at);
    if (fault.until != kNeverPicos) plan.changes_.push_back(fault.until);
    std::vector<uint32_t> emptied;
    if (fault.kind == FaultKind::kSwitchReboot) emptied = PortsOfTheSwitch(topology, *ports);
    plan.faults_.push_back({fault, *std::move(ports), std::move(emptied)});
  }
  SortUnique(plan.ports_);
  SortUnique(plan.changes_);
  return plan;
}

LinkDamage FaultPlan::DamageAt(uint32_t port, Picos time) const {
  LinkDamage damage;
  // Independent causes of loss and the like add up as probabilities do.
  const auto also = [](double p, double q) { return 1 - (1 - p) * (1 - q); };
  for (const Resolved& resolved : faults_) {
    const Fault& fault = resolved.fault;
    if (time < fault.at || time >= fault.until) continue;
    if (!std::binary_search(resolved.ports.begin(), resolved.ports.end(), port)) continue;
    switch (fault.kind) {
      case FaultKind::kLoss:
        damage.loss = also(damage.loss, fault.probability);
        break;
      case FaultKind::kDuplicate:
        damage.duplicate = also(damage.duplicate, fault.probability);
        break;
      case FaultKind::kReorder:
        damage.reorder = also(damage.reorder, fault.probability);
        damage.reorder_delay = std::max(damage.reorder_delay, fault.delay);
        break;
      case FaultKind::kCorrupt:
        damage.corrupt = also(damage.corrupt, fault.probability);
        break;
      case FaultKind::kLinkDown:
      case FaultKind::kNicDown:
        damage.down = true;
        break;
      case FaultKind::kSwitchReboot:
        damage.down = true;
        damage.emptied = damage.emptied || std::binary_search(resolved.emptied.begin(), resolved.emptied.end(), port);
        break;
      case FaultKind::kHostSlow:
        damage.host_delay = std::max(damage.host_delay, fault.delay);
        break;
      case FaultKind::kLinkSlow:
        damage.fraction = std::min(damage.fraction, fault.fraction);
        break;
    }
  }
  return damage;
}

}  // namespace paceline::sim
