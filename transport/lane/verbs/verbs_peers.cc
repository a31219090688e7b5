#include "transport/lane/verbs/verbs_peers.h"

#include <algorithm>

#include "transport/lane/verbs/verbs_flow.h"

namespace paceline {

VerbsPeers::~VerbsPeers() {
  for (const Peer& peer : peers_) EndRoutes(peer);
}

ibv_ah* VerbsPeers::MakeRoute(const VerbsAddress& address, bool ecn_capable) const {
  const uint32_t flow_label = VerbsFlowLabel(qp_number_, address.qp_number);
  ibv_ah_attr route = card_->Route(address.gid, address.lid, flow_label, ecn_capable);
  return card_->calls().CreateAh(card_->pd(), &route);
}

void VerbsPeers::EndRoutes(const Peer& peer) {
  for (ibv_ah* route : {peer.route, peer.ecn_route}) {
    if (route != nullptr) card_->calls().DestroyAh(route);
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
    Peer peer{.address = address, .route = MakeRoute(address, false)};
    if (peer.route == nullptr) return kNowhere;
    if (address.ethernet) peer.ecn_route = MakeRoute(address, true);  // without it packets go unmarked
    if (free_.empty()) {
      number = static_cast<uint32_t>(peers_.size());
      peers_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
    }
    peers_[number] = peer;
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
  EndRoutes(peers_[number]);
  peers_[number] = {};
  free_.push_back(number);
}

}  // namespace paceline
