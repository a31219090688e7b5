#include "tools/study/ideal.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "tools/study/link_schedule.h"
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
  for (uint32_t links_below = 0; links_below < levels.size(); ++links_below) {
    const auto& level = levels[links_below];
    if (level.empty()) continue;
    Level& added = levels_.emplace_back();
    added.of_nics = of_nics;
    added.links_below = links_below;
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

std::pair<uint32_t, uint32_t> IdealModel::SubtreesOf(const Level& level, const Flow& flow) const {
  if (!level.of_nics) return {level.subtree_of[flow.source], level.subtree_of[flow.destination]};
  const uint32_t nics = topology_.config().nics_per_host;
  return {level.subtree_of[flow.source * nics + flow.nic], level.subtree_of[flow.destination * nics + flow.nic]};
}

bool IdealModel::KeepsToItsNic(const Flow& flow) const {
  if (flow.nic == kAllNics) return false;
  return std::none_of(levels_.begin(), levels_.end(), [&](const Level& level) {
    if (!level.of_nics) return false;
    const auto [from, to] = SubtreesOf(level, flow);
    return from != to && (level.subtrees[from].up <= 0 || level.subtrees[to].down <= 0);
  });
}

std::pair<uint32_t, uint32_t> IdealModel::NicsOf(const Flow& flow) const {
  if (topology_.config().nics_per_host == 1) return {0, 1};
  if (KeepsToItsNic(flow)) return {flow.nic, flow.nic + 1};
  return {0, topology_.config().kind == sim::TopologyKind::kGraph ? topology_.config().nics_per_host : 1};
}

double IdealModel::HostRate(const Flow& flow, uint32_t host) const {
  if (topology_.config().nics_per_host == 1 || !KeepsToItsNic(flow)) return topology_.host_bits_per_second(host);
  const uint32_t nic = host * topology_.config().nics_per_host + flow.nic;
  return static_cast<double>(topology_.links()[nic].bits_per_second);
}

absl::InlinedVector<IdealModel::Part, 2> IdealModel::PartsOf(const Flow& flow) const {
  const uint64_t last = flow.bytes % mtu_bytes_, full = flow.bytes - last;
  absl::InlinedVector<Part, 2> parts;
  if (full > 0) parts.push_back({.bytes = WireBytes(full), .packet_bytes = mtu_bytes_ + header_bytes_});
  if (last == 0 && full > 0) return parts;
  Part& end = parts.emplace_back();
  end.bytes = WireBytes(last);
  end.packet_bytes = static_cast<uint32_t>(end.bytes);
  // One NIC sends in order; of several, another may have nothing else to send.
  if (topology_.config().nics_per_host == 1 || KeepsToItsNic(flow)) {
    end.sent_after =
        static_cast<Picos>(static_cast<double>(full == 0 ? 0 : parts[0].bytes) * 8e12 / HostRate(flow, flow.source));
  }
  return parts;
}

std::vector<uint32_t> IdealModel::FastestPath(uint32_t from, uint32_t to, uint32_t packet_bytes) const {
  std::vector<uint32_t> path = topology_.FastestPath(from, to, packet_bytes);
  const sim::TopologyConfig& config = topology_.config();
  if (config.kind == sim::TopologyKind::kDragonfly && config.routing != sim::DragonflyRouting::kMinimal) {
    // Over a third group it may take no more than the two global links. All links between routers are alike.
    constexpr size_t kOverAThirdGroup = 4;
    if (path.size() > kOverAThirdGroup) path.erase(path.begin() + 1, path.end() - (kOverAThirdGroup - 1));
  }
  return path;
}

Picos IdealModel::TimeOver(std::span<const uint32_t> path, uint32_t packet_bytes) const {
  Picos total = 0;
  for (uint32_t port : path) {
    const sim::LinkInfo& link = topology_.links()[port];
    total += sim::SerialisationPicos(packet_bytes, link.bits_per_second) + link.delay;
  }
  return total;
}

Picos IdealModel::LeastOneWay(const Flow& flow, uint32_t packet_bytes) const {
  const uint32_t nics = topology_.config().nics_per_host;
  const auto [first, end] = NicsOf(flow);
  Picos least = sim::kNeverPicos;
  for (uint32_t nic = first; nic < end; ++nic) {
    const auto path = FastestPath(flow.source * nics + nic, flow.destination * nics + nic, packet_bytes);
    least = std::min(least, TimeOver(path, packet_bytes));
  }
  return least;
}

Picos IdealModel::AcknowledgementTime(const Flow& flow) const {
  return LeastOneWay({.source = flow.destination, .destination = flow.source, .nic = flow.nic}, header_bytes_);
}

IdealModel::Passage IdealModel::PassageBetween(uint32_t from, uint32_t to, uint32_t packet_bytes,
                                               uint32_t links_below) const {
  const std::vector<uint32_t> path = FastestPath(from, to, packet_bytes);
  // How many links come before those that leave the source's part, and how many behind.
  size_t near = links_below, far = path.size() - 1 - links_below;
  if (topology_.config().kind == sim::TopologyKind::kDragonfly && links_below == 2) {
    // A router without a global link to the other group needs a link more. On a path of four links that is one of the
    // two ends, and equally fast paths differ in which.
    near = far = (path.size() - 1) / 2;
  }
  const std::span<const uint32_t> all(path);
  const Picos nic_time = sim::SerialisationPicos(packet_bytes, topology_.links()[from].bits_per_second);
  const Picos last_time = sim::SerialisationPicos(packet_bytes, topology_.links()[path.back()].bits_per_second);
  const auto after = [&](size_t crossed, size_t left) {
    const sim::LinkInfo& link = topology_.links()[path[crossed]];
    // Of the base round trip one packet time is not counted twice: the NIC's, where this link is faster.
    const Picos spared = std::max<Picos>(0, nic_time - sim::SerialisationPicos(packet_bytes, link.bits_per_second));
    return link.delay + TimeOver(all.last(left), packet_bytes) - spared;
  };
  return {.before_up = TimeOver(all.first(near), packet_bytes),
          .after_up = after(near, far),
          .before_down = TimeOver(all.first(far), packet_bytes),
          .after_down = after(far, near),
          .first_to_last = TimeOver(all.first(all.size() - 1), packet_bytes) + (last_time - nic_time) / 2};
}

IdealModel::Passage IdealModel::PassageOf(const Flow& flow, uint32_t packet_bytes, uint32_t links_below) const {
  const uint32_t nics = topology_.config().nics_per_host;
  const auto [first, end] = NicsOf(flow);
  const auto between = [&](uint32_t nic) {
    return PassageBetween(flow.source * nics + nic, flow.destination * nics + nic, packet_bytes, links_below);
  };
  Passage least = between(first);
  for (uint32_t nic = first + 1; nic < end; ++nic) {
    const Passage other = between(nic);
    least = {.before_up = std::min(least.before_up, other.before_up),
             .after_up = std::min(least.after_up, other.after_up),
             .before_down = std::min(least.before_down, other.before_down),
             .after_down = std::min(least.after_down, other.after_down),
             .first_to_last = std::min(least.first_to_last, other.first_to_last)};
  }
  return least;
}

FlowCost IdealModel::LeastTimes(const Flow& flow) const {
  const double up_rate = HostRate(flow, flow.source), down_rate = HostRate(flow, flow.destination);
  std::vector<Transmission> up, down;
  Picos received = 0;
  for (const Part& part : PartsOf(flow)) {
    const Passage passage = PassageOf(flow, part.packet_bytes, 0);
    const auto bits = static_cast<double>(part.bytes) * 8e12;
    up.push_back({part.sent_after + passage.before_up, bits / up_rate, passage.after_up});
    down.push_back({part.sent_after + passage.before_down, bits / down_rate, passage.after_down});
    received = std::max(received, LeastOneWay(flow, part.packet_bytes));  // however many NICs there are
  }
  for (std::vector<Transmission>* link : {&up, &down}) {
    std::sort(link->begin(), link->end(), [](const Transmission& a, const Transmission& b) { return a.head < b.head; });
    received = std::max(received, EarliestEnd(*link));
  }
  return {.sent = received + AcknowledgementTime(flow), .received = received};
}

std::optional<Picos> IdealModel::LinksBusyUntil(const Workload& workload, const std::vector<uint32_t>& flows,
                                                const std::vector<Picos>& starts, End end) const {
  struct Crossing {
    uint32_t link = 0;  // of the level: twice the subtree, and one for its way in
    Picos head = 0, tail = 0;
    uint64_t bytes = 0;
  };
  const auto place = [](const Crossing& crossing) { return std::tuple(crossing.link, crossing.head, crossing.tail); };
  Picos until = 0;
  std::vector<Crossing> crossings;
  std::vector<Transmission> transmissions;
  for (const Level& level : levels_) {
    crossings.clear();
    for (uint32_t index : flows) {
      const Flow& flow = workload.flows[index];
      if (level.of_nics && !KeepsToItsNic(flow)) continue;
      const auto [from, to] = SubtreesOf(level, flow);
      if (from == to) continue;
      if (level.subtrees[from].up <= 0 || level.subtrees[to].down <= 0) return std::nullopt;
      const Picos back = end == End::kSent ? AcknowledgementTime(flow) : 0;
      for (const Part& part : PartsOf(flow)) {
        const Passage passage = PassageOf(flow, part.packet_bytes, level.links_below);
        const Picos at = starts[index] + part.sent_after;
        crossings.push_back({2 * from, at + passage.before_up, passage.after_up + back, part.bytes});
        crossings.push_back({2 * to + 1, at + passage.before_down, passage.after_down + back, part.bytes});
      }
    }
    std::sort(crossings.begin(), crossings.end(),
              [&](const Crossing& a, const Crossing& b) { return place(a) < place(b); });
    for (size_t i = 0; i < crossings.size();) {
      const uint32_t link = crossings[i].link;
      const Subtree& subtree = level.subtrees[link / 2];
      const double rate = link % 2 == 0 ? subtree.up : subtree.down;
      transmissions.clear();
      while (i < crossings.size() && crossings[i].link == link) {
        const Crossing& first = crossings[i];
        uint64_t bytes = 0;
        for (; i < crossings.size() && place(crossings[i]) == place(first); ++i) bytes += crossings[i].bytes;
        transmissions.push_back({first.head, static_cast<double>(bytes) * 8e12 / rate, first.tail});
      }
      until = std::max(until, EarliestEnd(transmissions));
    }
  }
  return std::max(until, HostsBusyUntil(workload, flows, starts, end));
}

// Let each host's links out, of rate r, carry `out` bytes in all and begin at b, and its links in carry `in` bytes and
// be done no later than at T - a. The times at which bytes leave their hosts then add up to at least
// out * b + out^2 / 2r, over all hosts; those at which they enter hosts to at most in * (T - a) - in^2 / 2r. For every
// byte the two are at least its passage apart, which leaves a bound on T.
Picos IdealModel::HostsBusyUntil(const Workload& workload, const std::vector<uint32_t>& flows,
                                 const std::vector<Picos>& starts, End end) const {
  struct Way {
    double bytes = 0;
    Picos least = sim::kNeverPicos;  // the first start, or the shortest time behind the link
  };
  const Level& hosts = levels_.front();
  std::vector<Way> out(hosts.subtrees.size()), in(hosts.subtrees.size());
  double bytes = 0, sum = 0;  // of bytes times picoseconds
  for (uint32_t index : flows) {
    const Flow& flow = workload.flows[index];
    const Picos back = end == End::kSent ? AcknowledgementTime(flow) : 0;
    for (const Part& part : PartsOf(flow)) {
      const Passage passage = PassageOf(flow, part.packet_bytes, 0);
      const auto weight = static_cast<double>(part.bytes);
      Way& from = out[flow.source];
      Way& to = in[flow.destination];
      from.bytes += weight;
      from.least = std::min(from.least, starts[index]);
      to.bytes += weight;
      to.least = std::min(to.least, passage.after_down + back);
      bytes += weight;
      sum += weight * static_cast<double>(passage.first_to_last);
    }
  }
  if (bytes <= 0) return 0;
  for (size_t host = 0; host < out.size(); ++host) {
    for (const auto& [way, rate] :
         {std::pair{out[host], hosts.subtrees[host].up}, {in[host], hosts.subtrees[host].down}}) {
      if (way.bytes > 0) sum += way.bytes * (static_cast<double>(way.least) + way.bytes * 4e12 / rate);
    }
  }
  return static_cast<Picos>(sum / bytes);
}

std::optional<Picos> IdealModel::Independent(const Workload& workload) const {
  std::vector<uint32_t> all(workload.flows.size());
  std::iota(all.begin(), all.end(), 0u);
  std::vector<Picos> starts;
  Picos alone = 0;
  for (const Flow& flow : workload.flows) {
    starts.push_back(flow.start);
    alone = std::max(alone, flow.start + FlowIdeal(flow));
  }
  const std::optional<Picos> busy_until = LinksBusyUntil(workload, all, starts, End::kSent);
  return busy_until ? std::optional(std::max(*busy_until, alone)) : std::nullopt;
}

std::optional<CriticalPath> IdealModel::Dependent(const Workload& workload) const {
  const auto flow_cost = [this](const Flow& flow) { return LeastTimes(flow); };
  const auto together = [&](const std::vector<uint32_t>& flows, const std::vector<Picos>& starts) {
    return LinksBusyUntil(workload, flows, starts, End::kReceived);
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

std::optional<Picos> IdealModel::WindowsBusyUntil(const Workload& workload) const {
  struct Source {
    Picos start = sim::kNeverPicos;
    int64_t window = 0;
    Picos alone = 0;  // all of its flows, one after the other
  };
  std::vector<Source> sources(workload.triggers.size());
  for (const Flow& flow : workload.flows) {
    if (flow.fires_when_sent == kNoTrigger || !workload.triggers[flow.fires_when_sent].one_at_a_time) continue;
    Source& source = sources[flow.fires_when_sent];
    source.start = std::min(source.start, flow.start);
    source.window += flow.trigger == kNoTrigger ? 1 : 0;
    source.alone += FlowIdeal(flow);
  }
  std::optional<Picos> until;
  for (const Source& source : sources) {
    if (source.window > 0) until = std::max(until.value_or(0), source.start + source.alone / source.window);
  }
  return until;
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
