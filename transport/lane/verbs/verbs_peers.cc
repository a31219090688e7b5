#include "transport/lane/verbs/verbs_peers.h"

#include <algorithm>

namespace paceline {

VerbsPeers::~VerbsPeers() {
  for (const Peer& peer : peers_) {
    if (peer.route != nullptr) card_->calls().DestroyAh(peer.route);
  }
}

uint32_t VerbsPeers::Place(const VerbsAddress& address) const {
  for (uint32_t number = 1; number < peers_.size(); ++number) {
    if (peers_[number].route != nullptr && peers_[number].address == address) return number;
  }
  return kNowhere;
}

uint32_t VerbsPeers::NumberOf(const VerbsAddress& address) const {
  const uint32_t number = Place(address);
  return number != kNowhere && peers_[number].references > 0 ? number : kNowhere;
}

uint32_t VerbsPeers::Open(const VerbsAddress& address) {
  if (address.ethernet != card_->port().ethernet) return kNowhere;
  uint32_t number = Place(address);
  if (number == kNowhere) {
    ibv_ah_attr route = card_->Route(address.gid, address.lid);
    ibv_ah* handle = card_->calls().CreateAh(card_->pd(), &route);
    if (handle == nullptr) return kNowhere;
    if (free_.empty()) {
      number = static_cast<uint32_t>(peers_.size());
      peers_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
    }
    peers_[number] = {.address = address, .route = handle};
  } else if (peers_[number].references == 0) {
    idle_.erase(std::find(idle_.begin(), idle_.end(), number));
  }
  ++peers_[number].references;
  return number;
}

void VerbsPeers::Close(uint32_t number) {
  Peer* peer = Find(number);
  if (peer == nullptr || --peer->references > 0) return;
  idle_.push_back(number);
  if (idle_.size() > kMostIdle) {
    Drop(idle_.front());
    idle_.pop_front();
  }
}

void VerbsPeers::Drop(uint32_t number) {
  card_->calls().DestroyAh(peers_[number].route);
  peers_[number] = {};
  free_.push_back(number);
}

}  // namespace paceline
