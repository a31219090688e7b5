// The peers of a UDP lane: small numbers for remote addresses, reference counted.
//
// Thread rule: the engine's thread. Open allocates only when there are more open peers than ever before.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/lane/lane.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {

class UdpPeers {
 public:
  // The number of every address that this lane cannot reach (another family, not a UDP address): sending there drops.
  static constexpr uint32_t kNowhere = 0;

  // `own` gives the family and, for link-local peers, the scope.
  explicit UdpPeers(const SocketAddress& own);

  uint32_t Open(const LaneAddress& address);
  void Close(uint32_t peer);

  // The address to send to; nullptr for kNowhere and for numbers that are not open.
  const SocketAddress* Find(uint32_t peer) const {
    return peer < peers_.size() && peers_[peer].references > 0 ? &peers_[peer].socket_address : nullptr;
  }
  size_t open_count() const { return numbers_.size(); }

 private:
  struct Peer {
    SocketAddress socket_address;
    LaneAddress address;
    uint32_t references = 0;
  };
  struct AddressHash {
    size_t operator()(const LaneAddress& address) const;
  };

  int family_;
  uint32_t scope_;
  std::vector<Peer> peers_;
  std::vector<uint32_t> free_;
  absl::flat_hash_map<LaneAddress, uint32_t, AddressHash> numbers_;
};

}  // namespace paceline
