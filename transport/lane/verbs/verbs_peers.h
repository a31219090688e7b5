// The peers of a verbs lane: routes to their datagram QPs; small numbers for addresses, reference counted. One that
// nobody refers to any more is kept for a while, as a handshake opens and closes its peer for every packet.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "transport/lane/verbs/verbs_card.h"
#include "transport/lane/verbs/verbs_datagrams.h"

namespace paceline {

class VerbsPeers {
 public:
  // The number of every address that this lane cannot reach: another kind's, another link layer's, without a route.
  static constexpr uint32_t kNowhere = 0;

  struct Peer {
    VerbsAddress address;
    ibv_ah* route = nullptr;
    ibv_ah* ecn_route = nullptr;  // the same for what switches may mark; InfiniBand: nullptr
    uint32_t references = 0;
    uint32_t full_paths = 0;  // queue pairs to it that take no more writes for now

    VerbsDatagrams::To to(bool ecn_capable) const {
      return {ecn_capable && ecn_route != nullptr ? ecn_route : route, address.qp_number};
    }
  };

  // `qp_number`: from which datagrams leave.
  VerbsPeers(VerbsCard* card, uint32_t qp_number) : card_(card), qp_number_(qp_number), peers_(1) {}
  ~VerbsPeers();
  VerbsPeers(const VerbsPeers&) = delete;
  VerbsPeers& operator=(const VerbsPeers&) = delete;

  uint32_t Open(const VerbsAddress& address);
  void Close(uint32_t number);
  // nullptr for kNowhere and for numbers that are not open.
  Peer* Find(uint32_t number) {
    return number < peers_.size() && peers_[number].references > 0 ? &peers_[number] : nullptr;
  }
  // The number of an address that is open, or kNowhere.
  uint32_t NumberOf(const VerbsAddress& address) const;

 private:
  static constexpr size_t kMostIdle = 64;

  uint32_t Place(const VerbsAddress& address) const;
  void Drop(uint32_t number);
  ibv_ah* MakeRoute(const VerbsAddress& address, bool ecn_capable) const;
  void EndRoutes(const Peer& peer);

  VerbsCard* card_;
  uint32_t qp_number_;
  std::vector<Peer> peers_;  // by number
  std::vector<uint32_t> free_;
  std::deque<uint32_t> idle_;  // without references, the oldest first
};

}  // namespace paceline
