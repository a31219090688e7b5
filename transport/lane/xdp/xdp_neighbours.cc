#include "transport/lane/xdp/xdp_neighbours.h"

#include <optional>
#include <utility>

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
    hops_[entry->second] = {name, {}, false, 0};
  }
  ++hops_[entry->second].peers;
  return entry->second;
}

void XdpNeighbours::Release(uint32_t hop) {
  if (hop == kNone || --hops_[hop].peers > 0) return;
  numbers_.erase(hops_[hop].name);
  free_hops_.push_back(hop);
}

void XdpNeighbours::Enqueue(uint32_t number) {
  if (std::exchange(peers_[number].in_queue, true)) return;
  (last_ == kNone ? first_ : peers_[last_].next) = number;
  last_ = number;
}

void XdpNeighbours::AskAbout(Peer& peer, Time now) {
  const uint32_t before = peer.hop;
  const std::optional<XdpHop> next = tables_->NextHop(peer.to);
  peer.hop = next.has_value() ? Hold(*next) : kNone;
  Release(before);
  peer.known = true;
  peer.ask_again_at = now + kRetry;
  if (peer.hop == kNone) return;
  Hop& hop = hops_[peer.hop];
  // The kernel tells of changes by itself.
  if (!hop.neighbour.valid || !hop.in_step) hop.neighbour = tables_->Neighbour(hop.name);
  hop.in_step = true;
  if (!hop.neighbour.valid) return;
  peer.ask_again_at = now + kRefresh;
  if (!hop.neighbour.stale) return;
  tables_->Probe(hop.name);
  hop.neighbour.stale = false;  // the kernel is at it, and says how it ends
}

void XdpNeighbours::Ask(Time now) {
  for (size_t asked = 0; asked < kMostAsks && first_ != kNone;) {
    Peer& peer = peers_[first_];
    first_ = std::exchange(peer.next, kNone);
    if (first_ == kNone) last_ = kNone;
    peer.in_queue = false;
    if (!peer.wanted) continue;
    peer.wanted = false;
    AskAbout(peer, now);
    ++asked;
  }
}

XdpNeighbours::Answer XdpNeighbours::Find(uint32_t number, const SocketAddress& to, Time now) {
  if (number >= peers_.size()) peers_.resize(number + 1);
  Peer& peer = peers_[number];
  if (!peer.wanted && (!peer.known || now >= peer.ask_again_at)) {
    peer.to = to;
    peer.wanted = true;
    Enqueue(number);
  }
  if (!peer.known) return {Way::kResolving, {}};
  if (peer.hop == kNone) return {};
  const XdpNeighbour& neighbour = hops_[peer.hop].neighbour;
  return {neighbour.valid ? Way::kDirect : Way::kResolving, neighbour.mac};
}

void XdpNeighbours::Forget(uint32_t number) {
  if (number >= peers_.size()) return;
  Peer& peer = peers_[number];
  Release(peer.hop);
  const Peer before = std::exchange(peer, {});
  peer.in_queue = before.in_queue;  // it keeps its place
  peer.next = before.next;
}

void XdpNeighbours::Poll() {
  const bool complete = tables_->Poll([this](const XdpHop& name, const XdpNeighbour& neighbour) {
    if (const auto entry = numbers_.find(name); entry != numbers_.end()) hops_[entry->second].neighbour = neighbour;
  });
  if (complete) return;
  // What was lost is asked for.
  for (Hop& hop : hops_) hop.in_step = false;
  for (Peer& peer : peers_) peer.ask_again_at = {};
}

}  // namespace paceline
