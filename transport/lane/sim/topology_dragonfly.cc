// A dragonfly (Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008): routers in
// groups, any two routers of a group joined, any two groups joined by as many global links.
//
// Global ports of a group are numbered router by router. Port q of group g leads to the group q mod (groups - 1) + 1
// places further round, and is number q / (groups - 1) of the links between the two: every group looks alike.
//
// A packet goes to a group over one of the links there, chosen by its hash and the group that it is in: at most one
// link inside the group, the global link, one link inside the next. Straight that is all; over a third group (Valiant),
// which the hash chooses too, it is done twice. No router needs to know where the packet came from: in the third group
// and in the last one the rule is to go straight.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/lane/sim/topology.h"

namespace paceline::sim {
namespace {

// Every bit of the result depends on every bit of both.
uint32_t Mixed(uint32_t hash, uint32_t with) {
  hash ^= (with + 1) * 0x9e3779b1u;
  hash = (hash ^ hash >> 16) * 0x7feb352du;
  hash = (hash ^ hash >> 15) * 0x846ca68bu;
  return hash ^ hash >> 16;
}

// One of `count`, by the upper half of the hash.
uint32_t Choice(uint32_t hash, uint32_t count) { return ((hash >> 16) * count) >> 16; }

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError("fabric." + what); }

}  // namespace

absl::Status Topology::CheckDragonfly() const {
  if (config_.tor_radix == 0 || config_.pod_size % config_.tor_radix != 0) {
    return Wrong(absl::StrCat("tor_radix = ", config_.tor_radix, " must divide fabric.pod_size = ", config_.pod_size,
                              ", the hosts of a group"));
  }
  if (config_.pod_size == 0 || config_.hosts % config_.pod_size != 0 || groups() < 2) {
    return Wrong(absl::StrCat("pod_size = ", config_.pod_size, " must divide fabric.hosts = ", config_.hosts,
                              " into at least two groups"));
  }
  if (!config_.oversubscription.empty()) {
    return Wrong("oversubscription goes with no dragonfly: fabric.global_links says how many links leave a group");
  }
  const uint32_t others = groups() - 1, routers = routers_per_group();
  const std::string wanted =
      absl::StrCat(routers, " routers of a group must have as many links to each of the ", others,
                   " other groups: fabric.global_links times ", routers, " a multiple of ", others);
  if (config_.global_links == 0 && others % routers != 0) {
    return Wrong(absl::StrCat("global_links is missing: one link between any two groups does not do, the ", wanted));
  }
  if (config_.global_links > 1024 || uint64_t{routers} * global_links() % others != 0) {
    return Wrong(absl::StrCat("global_links = ", config_.global_links, " must be at most 1024, and the ", wanted));
  }
  if (routers > 1024) return Wrong(absl::StrCat("pod_size: ", routers, " routers are in a group, at most 1024 may be"));
  return absl::OkStatus();
}

void Topology::BuildDragonfly(uint32_t plane) {
  const uint32_t routers = routers_per_group(), nics = config_.tor_radix * nics_per_plane();
  const uint32_t first_slot = first_slot_of_plane(plane);
  const auto first = static_cast<uint32_t>(switches_.size());
  for (uint32_t router = 0; router < groups() * routers; ++router) {
    const uint32_t node = AddSwitch({.tier = Tier::kTor,
                                     .index = plane * groups() * routers + router,
                                     .pod = router / routers,
                                     .first_slot = first_slot + router * nics,
                                     .end_slot = first_slot + (router + 1) * nics,
                                     .down_ports = nics,
                                     .up_ports = routers - 1 + global_links(),
                                     .first_host = router * config_.tor_radix,
                                     .end_host = (router + 1) * config_.tor_radix,
                                     .routing = Routing::kDragonfly});
    JoinNics(node);
  }
  const auto join = [&](uint32_t a, uint32_t port_a, uint32_t b, uint32_t port_b) {
    Join(nics_ + first + a, port_a, nics_ + first + b, port_b, config_.link_gbps);
  };
  for (uint32_t a = 0; a < groups() * routers; ++a) {
    for (uint32_t b = a + 1; b / routers == a / routers; ++b) {
      join(a, PortToRouter(switches_[first + a], b % routers), b, PortToRouter(switches_[first + b], a % routers));
    }
  }
  for (uint32_t from = 0; from < groups(); ++from) {
    for (uint32_t to = from + 1; to < groups(); ++to) {
      for (uint32_t copy = 0; copy < links_per_group_pair(); ++copy) {
        const auto router_of = [&](uint32_t group, uint32_t other) {
          const uint32_t way = (other + groups() - group) % groups() - 1;
          return group * routers + (copy * (groups() - 1) + way) / global_links();
        };
        const uint32_t a = router_of(from, to), b = router_of(to, from);
        join(a, PortToGroup(switches_[first + a], to, copy), b, PortToGroup(switches_[first + b], from, copy));
      }
    }
  }
  if (plane == 0) FindFarthestInDragonfly();
}

// Groups look alike, so one end may be in the first.
void Topology::FindFarthestInDragonfly() {
  size_t longest = 0;
  const uint32_t nics_per_router = config_.tor_radix * config_.nics_per_host;
  for (uint32_t a = 0; a < config_.pod_size * config_.nics_per_host; a += nics_per_router) {
    for (uint32_t b = a + nics_per_router; b < nics_; b += nics_per_router) {
      const size_t links = ShortestDragonflyPath(a, b).size();
      if (links <= longest) continue;
      longest = links;
      farthest_[0] = a;
      farthest_[1] = b;
    }
  }
}

uint32_t Topology::PortToRouter(const SwitchInfo& s, uint32_t position) const {
  return s.first_up_port + (position < s.index % routers_per_group() ? position : position - 1);
}

uint32_t Topology::PortToGroup(const SwitchInfo& s, uint32_t group, uint32_t copy) const {
  const uint32_t way = (group + groups() - s.pod) % groups() - 1;
  const uint32_t global = copy * (groups() - 1) + way;
  const uint32_t position = global / global_links();
  if (position != s.index % routers_per_group()) return PortToRouter(s, position);
  return s.first_up_port + routers_per_group() - 1 + global % global_links();
}

uint32_t Topology::FirstGroup(uint32_t group, uint32_t route_hash) const {
  const uint32_t detour = Mixed(route_hash, UINT32_MAX - 1);
  const bool may_turn = config_.routing == DragonflyRouting::kValiant ||
                        (config_.routing == DragonflyRouting::kBoth && (detour & 1) != 0);
  return may_turn ? Choice(detour, groups()) : group;
}

uint32_t Topology::RouteInDragonfly(const SwitchInfo& s, uint32_t destination, uint32_t route_hash) const {
  if (destination - s.first_slot < s.end_slot - s.first_slot) return s.first_down_port + (destination - s.first_slot);
  const uint32_t router = RouterOf(destination);
  const uint32_t group = router / routers_per_group();
  if (group == s.pod) return PortToRouter(s, router % routers_per_group());
  const uint32_t first = FirstGroup(group, route_hash);
  return PortToGroup(s, first == s.pod ? group : first, Choice(Mixed(route_hash, s.pod), links_per_group_pair()));
}

// The groups that a packet may go to first stand in a ring from the hash's choice on, the links to each in one from the
// hash's choice on: all routers of a group see the same order, so one that the packet passes has the chosen way, or an
// earlier one, and no packet goes round in a circle. The same holds in the third group, whose own place in the ring
// means straight.
std::optional<uint32_t> Topology::RouteInDragonflyWithout(const std::vector<uint8_t>& withdrawn, const SwitchInfo& s,
                                                          uint32_t destination, uint32_t route_hash) const {
  const uint32_t group = RouterOf(destination) / routers_per_group();
  if (group == s.pod) {
    const uint32_t port = RouteInDragonfly(s, destination, route_hash);
    return withdrawn[port] == 0 ? std::optional(port) : std::nullopt;
  }
  const uint32_t first = FirstGroup(group, route_hash);
  const uint32_t ways = config_.routing == DragonflyRouting::kMinimal ? 1 : groups();
  for (uint32_t i = 0; i < ways; ++i) {
    const uint32_t next = (first + i) % groups();
    const auto port = OpenPortToGroup(withdrawn, s, next == s.pod ? group : next, destination, route_hash);
    if (port) return port;
  }
  return std::nullopt;
}

std::optional<uint32_t> Topology::OpenPortToGroup(const std::vector<uint8_t>& withdrawn, const SwitchInfo& s,
                                                  uint32_t group, uint32_t destination, uint32_t route_hash) const {
  const uint32_t router = RouterOf(destination);
  const uint32_t last_group = router / routers_per_group();
  const uint32_t hashed = Choice(Mixed(route_hash, s.pod), links_per_group_pair());
  for (uint32_t i = 0; i < links_per_group_pair(); ++i) {
    const uint32_t copy = (hashed + i) % links_per_group_pair();
    const uint32_t port = PortToGroup(s, group, copy);
    if (withdrawn[port] != 0) continue;
    const SwitchInfo* there = &switch_of_node(links_[port].to);
    if (there->pod == s.pod) {
      const uint32_t global = PortToGroup(*there, group, copy);
      if (withdrawn[global] != 0) continue;
      there = &switch_of_node(links_[global].to);
    }
    if (group != last_group) {
      if (OpenPortToGroup(withdrawn, *there, last_group, destination, route_hash)) return port;
      continue;
    }
    const bool is_last = destination - there->first_slot < there->end_slot - there->first_slot;
    if (is_last || withdrawn[PortToRouter(*there, router % routers_per_group())] == 0) return port;
  }
  return std::nullopt;
}

std::vector<uint32_t> Topology::StraightPath(uint32_t source, uint32_t destination, uint32_t copy) const {
  std::vector<uint32_t> path = {source};
  const uint32_t last_group = switch_of_node(links_[destination].to).pod;
  while (links_[path.back()].to != destination) {
    const SwitchInfo& s = switch_of_node(links_[path.back()].to);
    path.push_back(s.pod != last_group ? PortToGroup(s, last_group, copy) : Route(s, slot_of(destination), 0));
  }
  return path;
}

std::vector<uint32_t> Topology::ShortestDragonflyPath(uint32_t source, uint32_t destination) const {
  std::vector<uint32_t> shortest = StraightPath(source, destination, 0);
  for (uint32_t copy = 1; copy < links_per_group_pair(); ++copy) {
    std::vector<uint32_t> path = StraightPath(source, destination, copy);
    if (path.size() < shortest.size()) shortest = std::move(path);
  }
  return shortest;
}

uint32_t Topology::LinksOfLongestWay(uint32_t source, uint32_t destination) const {
  constexpr size_t kOverAThirdGroup = 7;  // up, then in each group one link and between them two, down
  const bool same_group = switch_of_node(links_[source].to).pod == switch_of_node(links_[destination].to).pod;
  if (!same_group && config_.routing != DragonflyRouting::kMinimal) return kOverAThirdGroup;
  size_t longest = 0;
  for (uint32_t copy = 0; copy < links_per_group_pair(); ++copy) {
    longest = std::max(longest, StraightPath(source, destination, copy).size());
  }
  return static_cast<uint32_t>(longest);
}

}  // namespace paceline::sim
