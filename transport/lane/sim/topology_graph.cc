// A fabric of the user's own: nodes and links as given, routes by shortest paths (in links), all of them that are
// equally short shared by hash.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/lane/sim/topology.h"

namespace paceline::sim {
namespace {

constexpr uint32_t kMostNics = 1024;  // of a graph: its routes are a table of switches by NICs
constexpr uint32_t kUnreached = 0xffffffff;
constexpr size_t kMostChoices = 255;
constexpr uint32_t kTypicalBytes = 4096;  // of a packet, where a faster way is told from a slower one

absl::Status Wrong(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("fabric.topology_file: ", what));
}

// What one switch has.
struct Neighbour {
  uint32_t node = 0;  // of the graph
  uint32_t link = 0;
};

class Nodes {
 public:
  explicit Nodes(const Graph& graph) : graph_(graph), of_(graph.hosts.size() + graph.switches.size()) {
    for (uint32_t i = 0; i < graph.links.size(); ++i) {
      of_[graph.links[i].a].push_back({graph.links[i].b, i});
      of_[graph.links[i].b].push_back({graph.links[i].a, i});
    }
  }
  uint32_t hosts() const { return static_cast<uint32_t>(graph_.hosts.size()); }
  uint32_t size() const { return static_cast<uint32_t>(of_.size()); }
  const std::vector<Neighbour>& of(uint32_t node) const { return of_[node]; }
  const std::string& name(uint32_t node) const {
    return node < hosts() ? graph_.hosts[node] : graph_.switches[node - hosts()];
  }
  // Links between each switch and the nearest of `from`, over switches.
  std::vector<uint32_t> Distances(const std::vector<uint32_t>& from) const {
    std::vector<uint32_t> distance(size(), kUnreached), queue = from;
    for (uint32_t node : from) distance[node] = 0;
    for (size_t next = 0; next < queue.size(); ++next) {
      for (const Neighbour& neighbour : of_[queue[next]]) {
        if (neighbour.node < hosts() || distance[neighbour.node] != kUnreached) continue;
        distance[neighbour.node] = distance[queue[next]] + 1;
        queue.push_back(neighbour.node);
      }
    }
    return distance;
  }

 private:
  const Graph& graph_;
  std::vector<std::vector<Neighbour>> of_;  // by node
};

// Every host has as many links as the first, all to switches.
absl::Status CheckHosts(const Nodes& nodes, uint32_t nics_per_host) {
  for (uint32_t host = 0; host < nodes.hosts(); ++host) {
    if (nodes.of(host).size() != nics_per_host) {
      return Wrong(absl::StrCat("host \"", nodes.name(host), "\" has ", nodes.of(host).size(),
                                " links and the first host ", nics_per_host, ": all must have as many"));
    }
    for (const Neighbour& neighbour : nodes.of(host)) {
      if (neighbour.node >= nodes.hosts()) continue;
      return Wrong(absl::StrCat("hosts \"", nodes.name(host), "\" and \"", nodes.name(neighbour.node),
                                "\" are joined without a switch"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

uint32_t Topology::NicsPerHost(const Graph& graph) {
  uint32_t links = 0;
  for (const GraphLink& link : graph.links) links += (link.a == 0 ? 1 : 0) + (link.b == 0 ? 1 : 0);
  return links;
}

absl::Status Topology::BuildGraph() {
  const Graph& graph = *config_.graph;
  const Nodes nodes(graph);
  if (graph.switches.empty()) return Wrong("there must be a switch");
  if (nics_ > kMostNics) return Wrong(absl::StrCat("there are ", nics_, " NICs: at most ", kMostNics));
  if (absl::Status status = CheckHosts(nodes, config_.nics_per_host); !status.ok()) return status;

  // Tiers by distance from the hosts: 1, 2, more; where nothing is farther than 2, that is the core.
  std::vector<uint32_t> hosts(nodes.hosts());
  for (uint32_t host = 0; host < nodes.hosts(); ++host) hosts[host] = host;
  const std::vector<uint32_t> tier = nodes.Distances(hosts);
  uint32_t farthest = 0;
  for (uint32_t node = nodes.hosts(); node < nodes.size(); ++node) {
    if (tier[node] == kUnreached) return Wrong(absl::StrCat("switch \"", nodes.name(node), "\" is out of reach"));
    farthest = std::max(farthest, tier[node]);
  }
  std::map<Tier, uint32_t> in_tier;
  for (uint32_t node = nodes.hosts(); node < nodes.size(); ++node) {
    SwitchInfo s;
    s.tier = tier[node] == 1 ? Tier::kTor : tier[node] == 2 && farthest > 2 ? Tier::kAgg : Tier::kCore;
    s.index = in_tier[s.tier]++;
    s.end_host = config_.hosts;
    for (const Neighbour& neighbour : nodes.of(node)) ++(tier[neighbour.node] < tier[node] ? s.down_ports : s.up_ports);
    s.first_down_port = static_cast<uint32_t>(links_.size());
    s.first_up_port = s.first_down_port + s.down_ports;
    s.routing = Routing::kTable;
    s.table_row = static_cast<uint32_t>(switches_.size()) * nics_;
    links_.resize(links_.size() + s.down_ports + s.up_ports);
    switches_.push_back(s);
  }

  // Both ends of each link, in the order of the file.
  std::vector<uint32_t> used_nics(nodes.hosts()), used_down(switches_.size()), used_up(switches_.size());
  const auto take_port = [&](uint32_t node, uint32_t other) {
    if (node < nodes.hosts()) return node * config_.nics_per_host + used_nics[node]++;
    const uint32_t number = node - nodes.hosts();
    const SwitchInfo& s = switches_[number];
    return tier[other] < tier[node] ? s.first_down_port + used_down[number]++ : s.first_up_port + used_up[number]++;
  };
  for (const GraphLink& link : graph.links) {
    const bool a_below = tier[link.a] <= tier[link.b];
    const uint32_t lower = a_below ? link.a : link.b, upper = a_below ? link.b : link.a;
    const uint32_t up_port = take_port(lower, upper), down_port = take_port(upper, lower);
    Join(lower < nodes.hosts() ? up_port : nics_ + lower - nodes.hosts(), up_port, nics_ + upper - nodes.hosts(),
         down_port, link.gbps);
    const Picos more = (link.delay_ns - config_.link_delay_ns) * kPicosPerNano;
    links_[up_port].delay += more;
    links_[down_port].delay += more;
  }
  return BuildRoutes();
}

absl::Status Topology::BuildRoutes() {
  const Nodes nodes(*config_.graph);
  table_.assign(switches_.size() * nics_, 0);
  std::map<std::vector<uint32_t>, uint32_t> known;  // choices, and where they stand
  const auto entry_of = [&](std::vector<uint32_t> ports) {
    ports.resize(std::min(ports.size(), kMostChoices));
    const auto [found, added] = known.try_emplace(ports, static_cast<uint32_t>(choices_.size()));
    if (added) choices_.insert(choices_.end(), ports.begin(), ports.end());
    return found->second << 8 | static_cast<uint32_t>(ports.size());
  };
  std::map<uint32_t, std::vector<uint32_t>> nics_at;  // by switch
  for (uint32_t nic = 0; nic < nics_; ++nic) nics_at[links_[nic].to - nics_].push_back(nic);
  for (const auto& [target, nics] : nics_at) {
    const std::vector<uint32_t> distance = nodes.Distances({nodes.hosts() + target});
    std::vector<uint32_t> by_distance(switches_.size());
    std::iota(by_distance.begin(), by_distance.end(), 0u);
    std::stable_sort(by_distance.begin(), by_distance.end(),
                     [&](uint32_t a, uint32_t b) { return distance[nodes.hosts() + a] < distance[nodes.hosts() + b]; });
    std::vector<Picos> fastest(switches_.size());  // from there to the target
    const auto over = [&](uint32_t port) {
      const LinkInfo& link = links_[port];
      return SerialisationPicos(kTypicalBytes, link.bits_per_second) + link.delay + fastest[link.to - nics_];
    };
    for (uint32_t number : by_distance) {
      const SwitchInfo& s = switches_[number];
      const uint32_t here = distance[nodes.hosts() + number];
      if (here == kUnreached) break;
      std::vector<uint32_t> ports;
      for (uint32_t port = s.first_down_port; port < s.first_up_port + s.up_ports; ++port) {
        const uint32_t to = links_[port].to;
        if (to >= nics_ && distance[nodes.hosts() + to - nics_] + 1 == here) ports.push_back(port);
      }
      std::stable_sort(ports.begin(), ports.end(), [&](uint32_t a, uint32_t b) { return over(a) < over(b); });
      if (!ports.empty()) fastest[number] = over(ports[0]);
      const uint32_t entry = number == target ? 0 : entry_of(std::move(ports));
      for (uint32_t nic : nics) table_[s.table_row + nic] = number == target ? entry_of({links_[nic].reverse}) : entry;
    }
  }
  // NICs of equal number talk to each other.
  Picos longest = -1;
  for (uint32_t a = 0; a < nics_; ++a) {
    const SwitchInfo& s = switch_of_node(links_[a].to);
    for (uint32_t b = a % config_.nics_per_host; b < nics_; b += config_.nics_per_host) {
      if (a == b) continue;
      if ((table_[s.table_row + b] & 0xff) == 0) {
        return Wrong(absl::StrCat("there is no path from ", PortName(a), " to ", PortName(b)));
      }
      const Picos rtt = BaseRtt(a, b, kTypicalBytes, 0);
      if (rtt <= longest) continue;
      longest = rtt;
      farthest_[0] = a;
      farthest_[1] = b;
    }
  }
  return absl::OkStatus();
}

// The ports of a choice stand in the order of the fastest way behind each.
std::vector<uint32_t> Topology::TypicalGraphPath(uint32_t source, uint32_t destination) const {
  std::vector<uint32_t> path = {source};
  while (links_[path.back()].to != destination) {
    const SwitchInfo& s = switch_of_node(links_[path.back()].to);
    path.push_back(choices_[table_[s.table_row + slot_of(destination)] >> 8]);
  }
  return path;
}

std::vector<uint32_t> Topology::FastestGraphPath(uint32_t source, uint32_t destination, uint32_t bytes) const {
  struct Way {
    Picos time = -1;    // from the switch to the destination; -1: not known yet
    uint32_t port = 0;  // to take there
  };
  std::vector<Way> ways(switches_.size());
  const std::function<Picos(uint32_t)> over = [&](uint32_t port) -> Picos {
    const LinkInfo& link = links_[port];
    const Picos here = SerialisationPicos(bytes, link.bits_per_second) + link.delay;
    if (link.to == destination) return here;
    Way& best = ways[link.to - nics_];
    if (best.time < 0) {
      const uint32_t entry = table_[switch_of_node(link.to).table_row + slot_of(destination)];
      for (uint32_t i = 0; i < (entry & 0xff); ++i) {
        const uint32_t choice = choices_[(entry >> 8) + i];
        const Picos time = over(choice);
        if (best.time < 0 || time < best.time) best = {time, choice};
      }
    }
    return here + best.time;
  };
  over(source);
  std::vector<uint32_t> path = {source};
  while (links_[path.back()].to != destination) path.push_back(ways[links_[path.back()].to - nics_].port);
  return path;
}

Picos Topology::SlowestGraphRtt(uint32_t source, uint32_t destination, uint32_t forward_bytes,
                                uint32_t back_bytes) const {
  std::vector<Picos> behind(switches_.size(), -1);  // by switch: over the slowest way from there; -1: not known yet
  const std::function<Picos(uint32_t)> over = [&](uint32_t port) -> Picos {
    const Picos here = RttOver({port}, forward_bytes, back_bytes);
    const uint32_t to = links_[port].to;
    if (to == destination) return here;
    Picos& most = behind[to - nics_];
    if (most < 0) {
      const uint32_t entry = table_[switch_of_node(to).table_row + slot_of(destination)];
      for (uint32_t i = 0; i < (entry & 0xff); ++i) most = std::max(most, over(choices_[(entry >> 8) + i]));
    }
    return here + most;
  };
  return over(source);
}

}  // namespace paceline::sim
