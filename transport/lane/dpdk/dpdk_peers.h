// The peers of a dpdk lane: small numbers for remote addresses, reference counted, each with the headers of what goes
// there and the neighbour that takes it.
//
// Thread rule: the engine's thread. Open allocates only when there are more open peers than ever before.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/ethernet/neighbours.h"
#include "transport/lane/lane.h"

namespace paceline {

class DpdkPeers {
 public:
  static constexpr uint32_t kNowhere = 0;

  struct Peer {
    LaneAddress address;
    FrameFlow flow;  // all but the Ethernet destination, the source port and the ECN bits
    uint32_t neighbour = Neighbours::kNowhere;
    uint32_t references = 0;
  };

  // `own`: what every frame has in common. `neighbours` outlives this.
  DpdkPeers(const FrameFlow& own, Neighbours* neighbours) : own_(own), neighbours_(neighbours), peers_(1) {}

  // kNowhere: another family, not an address of UDP, our own, or out of reach.
  uint32_t Open(const LaneAddress& address);
  void Close(uint32_t peer);

  // nullptr for kNowhere and for numbers that are not open.
  const Peer* Find(uint32_t peer) const {
    return peer < peers_.size() && peers_[peer].references > 0 ? &peers_[peer] : nullptr;
  }

 private:
  struct AddressHash {
    size_t operator()(const LaneAddress& address) const;
  };

  FrameFlow own_;
  Neighbours* neighbours_;
  std::vector<Peer> peers_;
  std::vector<uint32_t> free_;
  absl::flat_hash_map<LaneAddress, uint32_t, AddressHash> numbers_;
};

}  // namespace paceline
