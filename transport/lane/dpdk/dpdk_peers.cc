#include "transport/lane/dpdk/dpdk_peers.h"

#include <arpa/inet.h>

#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {

size_t DpdkPeers::AddressHash::operator()(const LaneAddress& address) const {
  return absl::Hash<absl::string_view>()(
      absl::string_view(reinterpret_cast<const char*>(address.bytes.data()), address.size));
}

uint32_t DpdkPeers::Open(const LaneAddress& address) {
  SocketAddress to;
  if (!ToSocketAddress(address, to)) return kNowhere;
  // One key for one endpoint, whatever scope the text it came from had.
  const LaneAddress key = FromSocketAddress(to, false);
  if (const auto known = numbers_.find(key); known != numbers_.end()) {
    ++peers_[known->second].references;
    return known->second;
  }
  const bool v4 = to.family() == AF_INET;
  if (v4 != (own_.version == IpVersion::kV4)) return kNowhere;
  Peer peer;
  peer.address = key;
  peer.flow = own_;
  peer.flow.destination_port = ntohs(v4 ? to.v4.sin_port : to.v6.sin6_port);
  std::memcpy(peer.flow.destination.data(), v4 ? static_cast<const void*>(&to.v4.sin_addr) : &to.v6.sin6_addr,
              v4 ? 4 : 16);
  if (peer.flow.destination_port == 0 || peer.flow.destination == own_.source) return kNowhere;
  peer.neighbour = neighbours_->Open(peer.flow.destination);
  if (peer.neighbour == Neighbours::kNowhere) return kNowhere;
  peer.references = 1;

  uint32_t number = static_cast<uint32_t>(peers_.size());
  if (free_.empty()) {
    peers_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  peers_[number] = peer;
  numbers_[key] = number;
  return number;
}

void DpdkPeers::Close(uint32_t peer) {
  if (Find(peer) == nullptr) return;
  Peer& closing = peers_[peer];
  if (--closing.references > 0) return;
  neighbours_->Close(closing.neighbour);
  numbers_.erase(closing.address);
  free_.push_back(peer);
}

}  // namespace paceline
