// To which card the frames for each peer go. Asked of the kernel's tables when a peer is first sent to, and again each
// second while it is; what the kernel says of a neighbour by itself counts at once.
//
// Bounds: an entry per open peer, and per next hop of one.
//
// Thread rule: the engine's thread. No clock is read: time is an argument.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/base/time.h"
#include "transport/lane/xdp/xdp_tables.h"

namespace paceline {

class XdpNeighbours {
 public:
  // How long an answer is good, and how soon is asked again where there was none to use.
  static constexpr Duration kRefresh = Duration::Seconds(1);
  static constexpr Duration kRetry = Duration::Millis(50);

  enum class Way : uint8_t {
    kDirect,     // frames go to `mac`
    kResolving,  // the next hop has not answered (yet)
    kNone,       // this interface does not lead there
  };
  struct Answer {
    Way way = Way::kNone;
    MacAddress mac;
  };

  // `tables` is not owned and lives longer.
  explicit XdpNeighbours(XdpTables* tables) : tables_(tables) {}

  // `peer` stands for `to` until it is forgotten.
  Answer Find(uint32_t peer, const SocketAddress& to, Time now);
  void Forget(uint32_t peer);

  // Takes the kernel's news.
  void Poll();

  size_t hop_count() const { return numbers_.size(); }

 private:
  static constexpr uint32_t kNoHop = ~uint32_t{0};

  struct Hop {
    XdpHop name;
    XdpNeighbour neighbour;
    uint32_t peers = 0;
  };
  struct Peer {
    uint32_t hop = kNoHop;
    bool asked = false;
    Time ask_again_at;
  };

  void Ask(Peer& peer, const SocketAddress& to, Time now);
  uint32_t Hold(const XdpHop& name);
  void Release(uint32_t hop);

  XdpTables* tables_;
  std::vector<Peer> peers_;  // by the peer's number
  std::vector<Hop> hops_;
  std::vector<uint32_t> free_hops_;
  absl::flat_hash_map<XdpHop, uint32_t> numbers_;
};

}  // namespace paceline
