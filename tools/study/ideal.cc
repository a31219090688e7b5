#include "tools/study/ideal.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "transport/base/random.h"
#include "transport/lane/sim/faults.h"

namespace paceline::tools {

using sim::Picos;

IdealModel::IdealModel(const sim::Topology& topology, uint32_t mtu_bytes, uint32_t header_bytes,
                       std::vector<double> link_fraction)
    : topology_(topology),
      mtu_bytes_(mtu_bytes),
      header_bytes_(header_bytes),
      link_fraction_(std::move(link_fraction)) {
  for (uint32_t nic = 0; nic < topology_.nics(); ++nic) {
    fastest_nic_ = std::max(fastest_nic_, topology_.links()[nic].bits_per_second);
  }
  AddLevels(/*of_nics=*/false);
  if (topology.config().nics_per_host > 1) AddLevels(/*of_nics=*/true);
}

void IdealModel::AddLevels(bool of_nics) {
  // By level, and there by the first member: NICs' uplinks, uplinks of the ToRs of the same members, then all uplinks
  // of a pod together.
  struct Members {
    uint32_t first = 0, end = 0;  // hosts or slots
    Subtree links;
  };
  std::vector<std::map<uint32_t, Members>> levels(3);
  const auto add = [&](size_t level, uint32_t first, uint32_t end, uint32_t port) {
    Members& members = levels[level][first];
    members.first = first;
    members.end = end;
    members.links.up += Rate(port);
    members.links.down += Rate(topology_.links()[port].reverse);
  };
  for (uint32_t nic = 0; nic < topology_.nics(); ++nic) {
    const uint32_t member = of_nics ? topology_.slot_of(nic) : topology_.host_of(nic);
    add(0, member, member + 1, nic);
  }
  for (const sim::SwitchInfo& s : topology_.switches()) {
    const uint32_t first = of_nics ? s.first_slot : s.first_host, end = of_nics ? s.end_slot : s.end_host;
    for (uint32_t port = s.first_up_port; port < s.first_up_port + s.up_ports; ++port) {
      add(s.tier == sim::Tier::kTor ? 1 : 2, first, end, port);
      const uint32_t to = topology_.links()[port].to;
      if (s.tier != sim::Tier::kTor || to < topology_.nics()) continue;
      const sim::SwitchInfo& other = topology_.switch_of_node(to);
      if (other.tier != sim::Tier::kTor || other.pod == s.pod) continue;
      // From group to group of a dragonfly. A group begins at a multiple of its size.
      const uint32_t group = topology_.config().pod_size * ((end - first) / (s.end_host - s.first_host));
      add(2, first / group * group, (first / group + 1) * group, port);
    }
  }
  for (const auto& level : levels) {
    if (level.empty()) continue;
    Level& added = levels_.emplace_back();
    added.of_nics = of_nics;
    std::vector<uint32_t> subtree_of(of_nics ? topology_.nics() : topology_.config().hosts);
    for (const auto& [first, members] : level) {
      for (uint32_t member = members.first; member < members.end; ++member) {
        subtree_of[member] = static_cast<uint32_t>(added.subtrees.size());
      }
      added.subtrees.push_back(members.links);
    }
    if (!of_nics) {
      added.subtree_of = std::move(subtree_of);
      continue;
    }
    for (uint32_t nic = 0; nic < topology_.nics(); ++nic) {
      added.subtree_of.push_back(subtree_of[topology_.slot_of(nic)]);
    }
  }
}

double IdealModel::Rate(uint32_t port) const {
  const auto rate = static_cast<double>(topology_.links()[port].bits_per_second);
  return link_fraction_.empty() ? rate : rate * link_fraction_[port];
}

uint64_t IdealModel::WireBytes(uint64_t bytes) const { return bytes + Packets(bytes) * header_bytes_; }

uint32_t IdealModel::LargestPacket(uint64_t bytes) const {
  return static_cast<uint32_t>(std::min<uint64_t>(WireBytes(bytes), mtu_bytes_ + header_bytes_));
}

uint32_t IdealModel::NicOf(const Flow& flow, uint32_t host) const {
  return host * topology_.config().nics_per_host + (flow.nic == kAllNics ? 0 : flow.nic);
}

bool IdealModel::KeepsToItsNic(const Flow& flow) const {
  return flow.nic != kAllNics && Rate(NicOf(flow, flow.source)) > 0 &&
         Rate(topology_.links()[NicOf(flow, flow.destination)].reverse) > 0;
}

// What the slower of its hosts can do, in bits per second; or of its NICs.
double IdealModel::Line(const Flow& flow) const {
  if (flow.nic != kAllNics) {
    const auto& links = topology_.links();
    return static_cast<double>(std::min(links[NicOf(flow, flow.source)].bits_per_second,
                                        links[NicOf(flow, flow.destination)].bits_per_second));
  }
  return std::min(topology_.host_bits_per_second(flow.source), topology_.host_bits_per_second(flow.destination));
}

uint64_t IdealModel::LeastWireBytes(const Flow& flow) const {
  const uint64_t wire = WireBytes(flow.bytes);
  const uint32_t full = LargestPacket(flow.bytes), last = LargestPacket(flow.bytes % mtu_bytes_);
  if (last == 0 || last == wire) return wire;
  // It starts behind all others, and gains on the first up to the last link, which both need.
  const uint32_t from = NicOf(flow, flow.source), to = NicOf(flow, flow.destination);
  const auto behind = static_cast<Picos>(static_cast<double>(wire - last) * 8e12 / Line(flow));
  const uint64_t last_link = topology_.links()[topology_.links()[to].reverse].bits_per_second;
  const Picos gained = topology_.BaseRtt(from, to, full, header_bytes_) -
                       topology_.BaseRtt(from, to, last, header_bytes_) -
                       sim::SerialisationPicos(full - last, last_link);
  return behind < gained ? wire - last : wire;
}

Picos IdealModel::FlowIdeal(const Flow& flow) const {
  const auto sending = static_cast<Picos>(static_cast<double>(LeastWireBytes(flow)) * 8e12 / Line(flow));
  const uint32_t packet = LargestPacket(flow.bytes);
  const uint32_t from = NicOf(flow, flow.source);
  return sending + topology_.BaseRtt(from, NicOf(flow, flow.destination), packet, header_bytes_) -
         sim::SerialisationPicos(packet, topology_.links()[from].bits_per_second);
}

FlowCost IdealModel::LeastTimes(const Flow& flow) const {
  const double line = Line(flow);
  const uint32_t from = NicOf(flow, flow.source), to = NicOf(flow, flow.destination);
  const uint64_t wire = LeastWireBytes(flow);
  const uint32_t packet = LargestPacket(flow.bytes);
  const auto rest = static_cast<Picos>(static_cast<double>(wire - packet) * 8e12 / line);
  const Picos round_trip = topology_.BaseRtt(from, to, packet, header_bytes_);
  const Picos back = topology_.BaseRtt(from, to, header_bytes_, header_bytes_) / 2;
  return {.sent = rest + round_trip, .received = rest + round_trip - back};
}

std::optional<Picos> IdealModel::LinksBusyUntil(const Workload& workload, const std::vector<uint32_t>& flows,
                                                const std::vector<Picos>& starts) const {
  struct Crossing {
    uint32_t link = 0;  // of the level: twice the subtree, and one for its way in
    Picos start = 0;
    uint64_t bytes = 0;
  };
  Picos until = 0;
  std::vector<Crossing> crossings;
  for (const Level& level : levels_) {
    crossings.clear();
    for (uint32_t index : flows) {
      const Flow& flow = workload.flows[index];
      if (level.of_nics && !KeepsToItsNic(flow)) continue;
      const uint32_t from = level.subtree_of[level.of_nics ? NicOf(flow, flow.source) : flow.source];
      const uint32_t to = level.subtree_of[level.of_nics ? NicOf(flow, flow.destination) : flow.destination];
      if (from == to) continue;
      const uint64_t bytes = WireBytes(flow.bytes);
      crossings.push_back({2 * from, starts[index], bytes});
      crossings.push_back({2 * to + 1, starts[index], bytes});
    }
    std::sort(crossings.begin(), crossings.end(), [](const Crossing& a, const Crossing& b) {
      return std::pair{a.link, -a.start} < std::pair{b.link, -b.start};
    });
    // All that starts at some time or later has to cross after it.
    uint64_t bytes = 0;
    for (size_t i = 0; i < crossings.size(); ++i) {
      const Crossing& crossing = crossings[i];
      const Subtree& subtree = level.subtrees[crossing.link / 2];
      const double rate = crossing.link % 2 == 0 ? subtree.up : subtree.down;
      if (rate <= 0 && level.of_nics) continue;  // the other NICs stand in
      if (rate <= 0) return std::nullopt;
      if (i == 0 || crossings[i - 1].link != crossing.link) bytes = 0;
      bytes += crossing.bytes;
      until = std::max(until, crossing.start + static_cast<Picos>(static_cast<double>(bytes) * 8e12 / rate));
    }
  }
  return until;
}

std::optional<Picos> IdealModel::Independent(const Workload& workload) const {
  if (workload.flows.empty()) return 0;
  std::vector<uint32_t> all(workload.flows.size());
  std::iota(all.begin(), all.end(), 0u);
  Picos first_start = workload.flows[0].start;
  uint64_t largest = 0;
  for (const Flow& flow : workload.flows) {
    first_start = std::min(first_start, flow.start);
    largest = std::max(largest, flow.bytes);
  }
  const std::vector<Picos> starts(all.size(), first_start);
  const std::optional<Picos> busy_until = LinksBusyUntil(workload, all, starts);
  if (!busy_until) return std::nullopt;
  const uint32_t packet = LargestPacket(largest);
  Picos total =
      *busy_until + topology_.LongestBaseRtt(packet, header_bytes_) - sim::SerialisationPicos(packet, fastest_nic_);
  for (const Flow& flow : workload.flows) {
    if (flow.start > first_start) total = std::max(total, flow.start + FlowIdeal(flow));
  }
  return total;
}

std::optional<CriticalPath> IdealModel::Dependent(const Workload& workload) const {
  const auto flow_cost = [this](const Flow& flow) { return LeastTimes(flow); };
  const auto together = [&](const std::vector<uint32_t>& flows, const std::vector<Picos>& starts) {
    std::optional<Picos> until = LinksBusyUntil(workload, flows, starts);
    Picos latency = sim::kNeverPicos;
    for (uint32_t index : flows) {
      const Flow& flow = workload.flows[index];
      const auto sending = static_cast<Picos>(static_cast<double>(WireBytes(flow.bytes)) * 8e12 / Line(flow));
      latency = std::min(latency, LeastTimes(flow).received - sending);
    }
    if (until) *until += latency;
    return until;
  };
  return FindCriticalPath(workload, {flow_cost, together});
}

std::optional<CriticalPath> IdealModel::WorkloadIdeal(const Workload& workload) const {
  // A trigger that starts its flows one at a time (a window) orders flows, but changes no bound.
  if (std::any_of(workload.triggers.begin(), workload.triggers.end(),
                  [](const Trigger& trigger) { return !trigger.one_at_a_time; })) {
    return Dependent(workload);
  }
  const std::optional<Picos> ideal = Independent(workload);
  if (!ideal) return std::nullopt;
  return CriticalPath{.flows = *ideal, .end = *ideal};
}

std::vector<double> LastingLinkFractions(const sim::FabricConfig& config, const sim::Topology& topology) {
  // The same random numbers as in the fabric, so the same random links.
  Random random(config.seed);
  random.Next();
  const auto plan = sim::FaultPlan::Create(config.faults, topology, random);
  if (!plan.ok()) return {};
  std::vector<double> fractions(topology.links().size(), 1.0);
  bool damaged = false;
  for (uint32_t port : plan->ports()) {
    // Late enough for everything that ends to have ended.
    const sim::LinkDamage damage = plan->DamageAt(port, sim::kNeverPicos - 1);
    fractions[port] = damage.down ? 0 : damage.fraction;
    damaged = damaged || fractions[port] < 1;
  }
  return damaged ? fractions : std::vector<double>();
}

}  // namespace paceline::tools
