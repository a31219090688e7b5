#include "transport/lane/sim/withdrawals.h"

#include <algorithm>

namespace paceline::sim {
namespace {

// Independent of the choice that the topology makes by the same hash.
uint32_t Rehashed(uint32_t hash, uint32_t port) {
  hash ^= (port + 1) * 0x9e3779b1u;
  hash = (hash ^ hash >> 16) * 0x7feb352du;
  hash = (hash ^ hash >> 15) * 0x846ca68bu;
  return hash ^ hash >> 16;
}

}  // namespace

Picos Withdrawals::OnLinkChange(uint32_t port, bool down, Picos now) {
  if (delay_ == 0) return kNeverPicos;
  if (links_.empty()) {
    links_.resize(topology_.links().size());
    withdrawn_.resize(topology_.links().size());
  }
  links_[port] = {.down = down, .since = now};
  return now + delay_;
}

void Withdrawals::Update(Picos now) {
  std::vector<uint8_t> dead(links_.size());
  any_ = false;
  for (uint32_t port = 0; port < links_.size(); ++port) {
    const Link& link = links_[port];
    const Link& back = links_[topology_.links()[port].reverse];
    const bool down = link.down || back.down;
    const bool settled = now - std::max(link.since, back.since) >= delay_;
    dead[port] = settled ? down : withdrawn_[port];
    any_ = any_ || dead[port] != 0;
  }
  withdrawn_.swap(dead);
  reaches_.clear();
}

uint32_t Withdrawals::Route(const SwitchInfo& s, uint32_t destination, uint32_t route_hash) {
  const uint32_t hashed = topology_.Route(s, destination, route_hash);
  if (s.routing == Routing::kDragonfly) {
    return topology_.RouteInDragonflyWithout(withdrawn_, s, destination, route_hash).value_or(hashed);
  }
  if (Leads(hashed, destination)) return hashed;
  const uint32_t ports = topology_.EqualPorts(s, destination);
  uint32_t left = 0;
  for (uint32_t i = 0; i < ports; ++i) left += Leads(topology_.EqualPort(s, destination, i), destination) ? 1 : 0;
  uint32_t choice = ((Rehashed(route_hash, hashed) >> 16) * left) >> 16;
  for (uint32_t i = 0; i < ports; ++i) {
    const uint32_t port = topology_.EqualPort(s, destination, i);
    if (Leads(port, destination) && choice-- == 0) return port;
  }
  return hashed;
}

bool Withdrawals::Leads(uint32_t port, uint32_t destination) {
  const uint32_t to = topology_.links()[port].to;
  return withdrawn_[port] == 0 && (to < topology_.nics() || Reaches(to, destination));
}

bool Withdrawals::Reaches(uint32_t node, uint32_t destination) {
  const uint64_t key = (uint64_t{node} << 32) | destination;
  if (const auto known = reaches_.find(key); known != reaches_.end()) return known->second;
  const SwitchInfo& s = topology_.switch_of_node(node);
  bool reaches = false;
  for (uint32_t i = 0; i < topology_.EqualPorts(s, destination) && !reaches; ++i) {
    reaches = Leads(topology_.EqualPort(s, destination, i), destination);
  }
  reaches_[key] = reaches;
  return reaches;
}

}  // namespace paceline::sim
