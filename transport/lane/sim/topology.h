// The shape of a simulated fabric: hosts with their NICs, switches in tiers, and directed links, each of which is the
// output port of the node it leaves.
//
//   single_switch  every host on one switch
//   dumbbell       two switches with half of the hosts each, one link between them
//   leaf_spine     leaves with `tor_radix` hosts each, every leaf linked to every spine
//   fat_tree       2 tiers: the same. 3 tiers: pods of `pod_size` hosts; in a pod every ToR is linked to every
//                  aggregation switch, and aggregation switch j of every pod to the same group j of core switches
//   rail_optimized a fat tree (of 2 tiers unless 3 are asked for) whose ToRs take NICs of equal number from `tor_radix`
//                  hosts: traffic between them that keeps to its rail crosses one switch
//
//   dragonfly      groups of `pod_size` hosts; in a group routers with `tor_radix` hosts each, every one linked to
//   every
//                  other and, by `global_links`, to other groups, each pair of groups by as many links
//                  (topology_dragonfly.cc)
//   graph          nodes and links as given; routes by all shortest paths (in links), shared by hash
//
// `planes` are disjoint copies of the fabric: NIC i of every host is in plane i mod `planes`, and no packet changes its
// plane. In all shapes but rail_optimized a host's NICs of one plane share a ToR.
//
// `oversubscription` is downlinks to uplinks of a tier of switches: one number is that of the topmost tier that has
// uplinks (1 below it); a list has one number per tier of switches below the top, from the ToR upwards. In a dumbbell
// it is the hosts of one side to the link between (by default that link is as fast as a host's).
//
// NICs are numbered host * nics_per_host + nic; NIC n's uplink is port n, switches' ports follow, downlinks first.
// Routes go by *slot*: NICs counted in the order in which they hang on the fabric, so that what is below a switch is
// one range of slots. Thread rule: built once, then read from anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/lane/sim/sim_time.h"

namespace paceline::sim {

enum class TopologyKind : uint8_t {
  kSingleSwitch,
  kDumbbell,
  kGraph,
  kDragonfly,
  kLeafSpine,
  kFatTree,
  kRailOptimized
};
// Which way packets take from group to group of a dragonfly: straight, over a third group, or half of the entropies
// each.
enum class DragonflyRouting : uint8_t { kMinimal, kValiant, kBoth };
enum class Tier : uint8_t { kHost, kTor, kAgg, kCore };

std::string_view TierName(Tier tier);  // "host", "tor", "agg", "core"

// A fabric as its user draws it. Nodes are hosts, then switches; a host's links are its NICs, in this order.
struct GraphLink {
  uint32_t a = 0, b = 0;  // nodes
  double gbps = 100;
  int64_t delay_ns = 1000;
};
struct Graph {
  std::vector<std::string> hosts, switches;
  std::vector<GraphLink> links;
};

struct TopologyConfig {
  TopologyKind kind = TopologyKind::kSingleSwitch;
  uint32_t hosts = 16;
  uint32_t nics_per_host = 1;
  uint32_t planes = 1;        // must divide nics_per_host
  uint32_t tiers = 3;         // fat_tree and rail_optimized
  uint32_t pod_size = 16;     // hosts; with 3 tiers, and of a group of a dragonfly
  uint32_t tor_radix = 4;     // hosts per ToR (or router); fat_tree, leaf_spine, rail_optimized, dragonfly
  uint32_t global_links = 0;  // per router of a dragonfly; 0: one link between any two groups
  DragonflyRouting routing = DragonflyRouting::kMinimal;
  std::vector<double> oversubscription;  // see above; empty: none
  double link_gbps = 100;
  int64_t link_delay_ns = 1000;
  int64_t switch_delay_ns = 0;         // from full reception to the output queue
  int64_t nic_delay_ns = 0;            // in each direction
  std::shared_ptr<const Graph> graph;  // `hosts` and `nics_per_host` are those of the graph
};

struct LinkInfo {
  uint32_t from = 0;  // node: NICs first, then switches
  uint32_t to = 0;
  Tier from_tier = Tier::kHost;
  Tier to_tier = Tier::kHost;
  uint32_t reverse = 0;  // the port of the opposite direction
  uint64_t bits_per_second = 0;
  Picos delay = 0;  // after the last bit left, until the next node may queue the packet
};

// kTree: down to what is below, else up by hash.
enum class Routing : uint8_t { kTree, kTable, kDragonfly };

struct SwitchInfo {
  Tier tier = Tier::kTor;
  uint32_t index = 0;       // within its tier
  uint32_t pod = 0;         // ToR and aggregation switches of a fat tree with 3 tiers; group of a dragonfly's router
  uint32_t first_slot = 0;  // NICs below: [first_slot, end_slot)
  uint32_t end_slot = 0;
  uint32_t nics_per_down_port = 1;
  uint32_t down_reciprocal = 0;  // ceil(2^32 / nics_per_down_port); 0 when that is 1
  uint32_t first_down_port = 0;
  uint32_t down_ports = 0;
  uint32_t first_up_port = 0;
  uint32_t up_ports = 0;
  uint32_t hash_shift = 0;  // which 16 bits of Packet::route_hash choose the uplink here
  uint32_t first_host = 0;  // hosts with a NIC below: [first_host, end_host)
  uint32_t end_host = 0;
  Routing routing = Routing::kTree;
  uint32_t table_row = 0;  // kTable: where its routes stand
};

class Topology {
 public:
  // Refuses what cannot be built, naming the key and what it may be.
  static absl::StatusOr<Topology> Create(const TopologyConfig& config);

  const TopologyConfig& config() const { return config_; }
  uint32_t nics() const { return nics_; }
  uint32_t nodes() const { return nics_ + static_cast<uint32_t>(switches_.size()); }
  const std::vector<SwitchInfo>& switches() const { return switches_; }
  const std::vector<LinkInfo>& links() const { return links_; }  // by port number
  const SwitchInfo& switch_of_node(uint32_t node) const { return switches_[node - nics_]; }
  double host_bits_per_second(uint32_t host) const;  // all NICs together
  // What the hosts of a part that shares its links to the rest can send, over what these links carry: of a pod or
  // group, of the hosts of a ToR where there are none, of a side of a dumbbell. 1: as much, or nobody knows (a graph).
  double core_oversubscription() const;
  // What the first host of the graph has.
  static uint32_t NicsPerHost(const Graph& graph);

  uint32_t slot_of(uint32_t nic) const { return slot_of_nic_[nic]; }
  uint32_t host_of(uint32_t nic) const { return nic / config_.nics_per_host; }
  uint32_t plane_of(uint32_t nic) const { return nic % config_.nics_per_host % config_.planes; }

  // Output port of switch `s` for a packet to the NIC in slot `destination`.
  uint32_t Route(const SwitchInfo& s, uint32_t destination, uint32_t route_hash) const {
    if (s.routing != Routing::kTree) [[unlikely]] {
      return s.routing == Routing::kTable ? RouteByTable(s, destination, route_hash)
                                          : RouteInDragonfly(s, destination, route_hash);
    }
    if (destination - s.first_slot < s.end_slot - s.first_slot) return DownPort(s, destination);
    return s.first_up_port + ((((route_hash >> s.hash_shift) & 0xffff) * s.up_ports) >> 16);
  }

  // How many ports of `s` the hash chooses among for a destination, and number `i` of them. Not of a dragonfly.
  uint32_t EqualPorts(const SwitchInfo& s, uint32_t destination) const {
    if (s.routing == Routing::kTable) return table_[s.table_row + destination] & 0xff;
    return destination - s.first_slot < s.end_slot - s.first_slot ? 1 : s.up_ports;
  }
  uint32_t EqualPort(const SwitchInfo& s, uint32_t destination, uint32_t i) const {
    if (s.routing == Routing::kTable) return choices_[(table_[s.table_row + destination] >> 8) + i];
    return destination - s.first_slot < s.end_slot - s.first_slot ? DownPort(s, destination) : s.first_up_port + i;
  }
  // Of a dragonfly: the port that Route gives, or where a link of that way is withdrawn (by port) that of the next way
  // in an order that the hash begins. Nothing: no way is left.
  std::optional<uint32_t> RouteInDragonflyWithout(const std::vector<uint8_t>& withdrawn, const SwitchInfo& s,
                                                  uint32_t destination, uint32_t route_hash) const;

  // The choice of paths that `entropy` stands for between two NICs: stable, and independent from tier to tier. `salt`
  // is the run's.
  static uint32_t RouteHash(uint32_t source, uint32_t destination, uint32_t entropy, uint64_t salt) {
    uint64_t h = salt ^ (uint64_t{source} << 40) ^ (uint64_t{destination} << 16) ^ entropy;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93;
    return static_cast<uint32_t>(h >> 32);
  }

  // Ports that a packet crosses, the source's uplink first. Both NICs are in one plane.
  std::vector<uint32_t> Path(uint32_t source, uint32_t destination, uint32_t route_hash) const;
  // Of the ways that Route offers, the one on which a packet of `bytes` arrives first through empty queues. In a
  // dragonfly: of those that do not turn in a third group.
  std::vector<uint32_t> FastestPath(uint32_t source, uint32_t destination, uint32_t bytes) const;
  // A packet of `forward_bytes` there and one of `back_bytes` back, through empty queues, by the shortest way.
  Picos BaseRtt(uint32_t source, uint32_t destination, uint32_t forward_bytes, uint32_t back_bytes) const;
  // The same by the longest way that it may take: what a queue is to be told from. More than BaseRtt in a dragonfly,
  // and in a graph whose equally short ways have different delays or rates.
  Picos LongestWayRtt(uint32_t source, uint32_t destination, uint32_t forward_bytes, uint32_t back_bytes) const;
  Picos LongestBaseRtt(uint32_t forward_bytes, uint32_t back_bytes) const;

  // Of a tree's switches; of other topologies without meaning.
  uint32_t tiers() const { return config_.kind == TopologyKind::kLeafSpine ? 2 : config_.tiers; }

  // Of a router of a dragonfly.
  uint32_t global_links() const {
    return config_.global_links != 0 ? config_.global_links : (groups() - 1) / routers_per_group();
  }

  std::string PortName(uint32_t port) const;  // "tor:2/up:1", "host:3/nic:0"

 private:
  explicit Topology(const TopologyConfig& config) : config_(config) {}
  absl::Status Check() const;
  void NumberSlots();
  absl::Status Build();
  void BuildSingleSwitch(uint32_t plane);
  absl::Status BuildDumbbell(uint32_t plane);
  absl::Status BuildTree(uint32_t plane);
  void BuildDragonfly(uint32_t plane);
  Picos RttOver(const std::vector<uint32_t>& path, uint32_t forward_bytes, uint32_t back_bytes) const;

  // topology_graph.cc
  absl::Status BuildGraph();
  absl::Status BuildRoutes();
  // Of the ways of the fewest links: the fastest for a packet of typical size, or of `bytes`; and the round trip over
  // the slowest.
  std::vector<uint32_t> TypicalGraphPath(uint32_t source, uint32_t destination) const;
  std::vector<uint32_t> FastestGraphPath(uint32_t source, uint32_t destination, uint32_t bytes) const;
  Picos SlowestGraphRtt(uint32_t source, uint32_t destination, uint32_t forward_bytes, uint32_t back_bytes) const;

  // topology_dragonfly.cc
  absl::Status CheckDragonfly() const;
  void FindFarthestInDragonfly();
  uint32_t RouteInDragonfly(const SwitchInfo& s, uint32_t destination, uint32_t route_hash) const;
  uint32_t RouterOf(uint32_t slot) const {  // in its plane
    return slot % (config_.hosts * nics_per_plane()) / (config_.tor_radix * nics_per_plane());
  }
  // Which group a packet to `group` goes to first; where that is the one that it is in, it goes straight.
  uint32_t FirstGroup(uint32_t group, uint32_t route_hash) const;
  // Output port of `s` by the first of the links to `group`, from the hash's choice on, over which the destination can
  // be reached: straight from there, if it is in another group.
  std::optional<uint32_t> OpenPortToGroup(const std::vector<uint8_t>& withdrawn, const SwitchInfo& s, uint32_t group,
                                          uint32_t destination, uint32_t route_hash) const;
  // Output port of router `s` towards another group, by link number `copy` of those between the two.
  uint32_t PortToGroup(const SwitchInfo& s, uint32_t group, uint32_t copy) const;
  uint32_t PortToRouter(const SwitchInfo& s, uint32_t position) const;
  // Between two groups over link number `copy`; the one with the fewest links; and how many links the longest way has
  // that a packet may be sent.
  std::vector<uint32_t> StraightPath(uint32_t source, uint32_t destination, uint32_t copy) const;
  std::vector<uint32_t> ShortestDragonflyPath(uint32_t source, uint32_t destination) const;
  uint32_t LinksOfLongestWay(uint32_t source, uint32_t destination) const;
  uint32_t groups() const { return config_.hosts / config_.pod_size; }
  uint32_t routers_per_group() const { return config_.pod_size / config_.tor_radix; }
  uint32_t links_per_group_pair() const { return routers_per_group() * global_links() / (groups() - 1); }

  uint32_t DownPort(const SwitchInfo& s, uint32_t destination) const {  // one below
    const uint32_t offset = destination - s.first_slot;
    if (s.down_reciprocal == 0) return s.first_down_port + offset;
    // cppcheck-suppress shiftTooManyBits ; it takes the product of 64 bits for one of 32
    return s.first_down_port + static_cast<uint32_t>((uint64_t{offset} * s.down_reciprocal) >> 32);
  }
  uint32_t RouteByTable(const SwitchInfo& s, uint32_t destination, uint32_t route_hash) const {
    const uint32_t entry = table_[s.table_row + destination];
    // Independent from switch to switch: every bit of the row must change every bit of the result.
    uint32_t hash = route_hash ^ s.table_row * 0x9e3779b1u;
    hash = (hash ^ hash >> 16) * 0x7feb352du;
    hash = (hash ^ hash >> 15) * 0x846ca68bu;
    hash ^= hash >> 16;
    return choices_[(entry >> 8) + (((hash >> 16) * (entry & 0xff)) >> 16)];
  }
  uint32_t AddSwitch(SwitchInfo s);  // with tier, index, pod, slots, hosts and numbers of ports; returns its node
  void JoinNics(uint32_t tor_node);  // each slot below to its down port
  // Joins port `down` of the upper switch and port `up` of the lower node.
  void Join(uint32_t lower_node, uint32_t up_port, uint32_t upper_node, uint32_t down_port, double gbps);
  bool is_tree() const { return config_.kind >= TopologyKind::kLeafSpine; }
  uint32_t pod_hosts() const { return is_tree() && tiers() == 3 ? config_.pod_size : config_.hosts; }
  uint32_t nics_per_plane() const { return config_.nics_per_host / config_.planes; }  // of one host
  uint32_t first_slot_of_plane(uint32_t plane) const { return plane * config_.hosts * nics_per_plane(); }
  Tier TierOf(uint32_t node) const { return node < nics_ ? Tier::kHost : switches_[node - nics_].tier; }

  TopologyConfig config_;
  uint32_t nics_ = 0;
  std::vector<SwitchInfo> switches_;
  std::vector<LinkInfo> links_;
  std::vector<uint32_t> slot_of_nic_;
  std::vector<uint32_t> nic_of_slot_;
  // Of a graph, by switch and NIC: where the ports to choose from stand (the fastest way first), and (8 bits) how many
  // there are.
  std::vector<uint32_t> table_;
  std::vector<uint32_t> choices_;
  uint32_t farthest_[2] = {};  // NICs with the longest round trip
};

}  // namespace paceline::sim
