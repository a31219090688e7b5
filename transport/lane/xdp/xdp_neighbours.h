// To which card the frames for each peer go. Asked of the kernel's tables after a peer was first sent to, and again
// each second while it is; what the kernel says of a neighbour by itself counts at once.
//
// Find, which is called for each packet, asks nobody: it notes who has to be asked about, and Ask does so between
// bursts. A question about a neighbour may wait for whoever else changes interfaces (the kernel's RTNL), one about a
// route does not; so neighbours are asked about only while they are not known, and probed only when they became stale.
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
  static constexpr size_t kMostAsks = 4;  // peers, of one call of Ask

  enum class Way : uint8_t {
    kDirect,     // frames go to `mac`
    kResolving,  // not asked yet, or the next hop has not answered: what the kernel sends there makes it look
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

  // Asks the kernel about peers of which Find wanted to know, the longest waiting first.
  void Ask(Time now);
  // Takes the kernel's news.
  void Poll();

  size_t hop_count() const { return numbers_.size(); }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};  // no hop, no peer

  struct Hop {
    XdpHop name;
    XdpNeighbour neighbour;
    bool in_step = false;  // asked about once, and of the news since then none was lost
    uint32_t peers = 0;
  };
  struct Peer {
    SocketAddress to;
    uint32_t hop = kNone;
    bool known = false;     // was asked about, ever
    bool wanted = false;    // is to be asked about
    bool in_queue = false;  // of those to be asked about; may have been forgotten meanwhile
    uint32_t next = kNone;  // in the queue
    Time ask_again_at;
  };

  void Enqueue(uint32_t number);
  void AskAbout(Peer& peer, Time now);
  uint32_t Hold(const XdpHop& name);
  void Release(uint32_t hop);

  XdpTables* tables_;
  std::vector<Peer> peers_;                // by the peer's number
  uint32_t first_ = kNone, last_ = kNone;  // of the queue, through Peer::next
  std::vector<Hop> hops_;
  std::vector<uint32_t> free_hops_;
  absl::flat_hash_map<XdpHop, uint32_t> numbers_;
};

}  // namespace paceline
