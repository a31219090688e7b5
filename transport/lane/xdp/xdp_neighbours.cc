#include "transport/lane/xdp/xdp_neighbours.h"

namespace paceline {

uint32_t XdpNeighbours::Hold(const XdpHop& name) {
  const auto [entry, fresh] = numbers_.try_emplace(name, 0);
  if (fresh) {
    if (free_hops_.empty()) {
      entry->second = static_cast<uint32_t>(hops_.size());
      hops_.emplace_back();
    } else {
      entry->second = free_hops_.back();
      free_hops_.pop_back();
    }
    hops_[entry->second] = {name, {}, 0};
  }
  ++hops_[entry->second].peers;
  return entry->second;
}

void XdpNeighbours::Release(uint32_t hop) {
  if (hop == kNoHop || --hops_[hop].peers > 0) return;
  numbers_.erase(hops_[hop].name);
  free_hops_.push_back(hop);
}

void XdpNeighbours::Ask(Peer& peer, const SocketAddress& to, Time now) {
  const uint32_t before = peer.hop;
  const std::optional<XdpHop> next = tables_->NextHop(to);
  peer.hop = next.has_value() ? Hold(*next) : kNoHop;
  Release(before);
  peer.asked = true;
  peer.ask_again_at = now + kRetry;
  if (peer.hop == kNoHop) return;
  Hop& hop = hops_[peer.hop];
  hop.neighbour = tables_->Neighbour(hop.name);
  if (!hop.neighbour.valid || hop.neighbour.stale) tables_->Probe(hop.name);
  if (hop.neighbour.valid) peer.ask_again_at = now + kRefresh;
}

XdpNeighbours::Answer XdpNeighbours::Find(uint32_t number, const SocketAddress& to, Time now) {
  if (number >= peers_.size()) peers_.resize(number + 1);
  Peer& peer = peers_[number];
  if (!peer.asked || now >= peer.ask_again_at) Ask(peer, to, now);
  if (peer.hop == kNoHop) return {};
  const XdpNeighbour& neighbour = hops_[peer.hop].neighbour;
  return {neighbour.valid ? Way::kDirect : Way::kResolving, neighbour.mac};
}

void XdpNeighbours::Forget(uint32_t number) {
  if (number >= peers_.size()) return;
  Release(peers_[number].hop);
  peers_[number] = {};
}

void XdpNeighbours::Poll() {
  const bool complete = tables_->Poll([this](const XdpHop& name, const XdpNeighbour& neighbour) {
    if (const auto entry = numbers_.find(name); entry != numbers_.end()) hops_[entry->second].neighbour = neighbour;
  });
  if (complete) return;
  for (Peer& peer : peers_) peer.asked = false;  // what was lost is asked for
}

}  // namespace paceline
