#include "transport/lane/udp/udp_peers.h"

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace paceline {

size_t UdpPeers::AddressHash::operator()(const LaneAddress& address) const {
  return absl::Hash<absl::string_view>()(
      absl::string_view(reinterpret_cast<const char*>(address.bytes.data()), address.size));
}

UdpPeers::UdpPeers(const SocketAddress& own)
    : family_(own.family()), scope_(own.family() == AF_INET6 ? own.v6.sin6_scope_id : 0), peers_(1) {}

uint32_t UdpPeers::Open(const LaneAddress& address) {
  SocketAddress socket_address;
  if (!ToSocketAddress(address, socket_address) || socket_address.family() != family_) return kNowhere;
  if (IsLinkLocal(socket_address)) socket_address.v6.sin6_scope_id = scope_;
  // One key for one endpoint, whatever scope the text it came from had.
  const LaneAddress key = FromSocketAddress(socket_address, false);
  const auto [entry, fresh] = numbers_.try_emplace(key, 0);
  if (!fresh) {
    ++peers_[entry->second].references;
    return entry->second;
  }
  uint32_t number;
  if (free_.empty()) {
    number = static_cast<uint32_t>(peers_.size());
    peers_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  entry->second = number;
  peers_[number].socket_address = socket_address;
  peers_[number].address = key;
  peers_[number].references = 1;
  return number;
}

void UdpPeers::Close(uint32_t peer) {
  if (peer >= peers_.size() || peers_[peer].references == 0) return;
  if (--peers_[peer].references > 0) return;
  numbers_.erase(peers_[peer].address);
  free_.push_back(peer);
}

}  // namespace paceline
