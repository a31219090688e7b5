// How switches share the memory in which data packets wait, where they do not simply give each port a queue of fixed
// length.
//
//   shared memory   one pool per switch. A queue may take a packet while it is shorter than alpha times what is free
//                   (dynamic thresholds: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
//                   Switches", IEEE/ACM Transactions on Networking 6(2), 1998), so n busy queues end up with
//                   alpha / (1 + n alpha) of the pool each.
//   lossless        what waits is counted against the link that it came in by (IEEE 802.1Q, priority-based flow
//                   control): above xoff the sender of that link is told to pause, at xon or below to go on. A packet
//                   finds no room only when its link has used up its headroom as well.
//   both            the pool is what the memory of the switch leaves beside the headroom of all links into it. A link
//                   may have alpha times what is free of it; what comes beyond goes into the link's headroom, and its
//                   sender is told to pause until the headroom is empty and the link two packets below its share (or
//                   has nothing left). As in switches for RoCE.
//
// There is one class of data traffic, so headroom per link is headroom per link and priority. A packet that is being
// sent no longer counts, control packets never do.
//
// Thread rule: owned by Fabric. Ports and links are numbered as in topology.h: a link by the port that sends into it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "transport/lane/sim/topology.h"

namespace paceline::sim {

struct BufferConfig {
  bool shared = false;
  uint32_t shared_bytes = 0;  // per switch
  double alpha = 1;
  bool lossless = false;
  uint32_t xoff_bytes = 0;      // 0: what the port's queue leaves beside the headroom
  uint32_t xon_bytes = 0;       // 0: two full packets below xoff
  uint32_t headroom_bytes = 0;  // 0: what can still come after a pause was sent
};

class SwitchBuffers {
 public:
  // What the sender of a link is to be told after a packet came or went.
  enum class Signal : uint8_t { kNone, kPause, kResume };

  // Refuses what makes no sense, naming the key.
  static absl::Status Check(const BufferConfig& config, const Topology& topology, uint32_t queue_bytes,
                            uint32_t full_wire_bytes);
  SwitchBuffers(const BufferConfig& config, const Topology& topology, uint32_t queue_bytes, uint32_t full_wire_bytes);

  // False: ports have queues of fixed length, and nothing below is to be called.
  bool managed() const { return shared_ || lossless_; }
  bool lossless() const { return lossless_; }
  // The longest that a data queue can get, with the packet being sent.
  uint32_t longest_queue_bytes() const { return longest_queue_bytes_; }

  // The packet has come in by this link.
  void SetIngress(uint32_t packet, uint32_t link) {
    if (packet >= ingress_of_packet_.size()) ingress_of_packet_.resize(packet + 1);
    ingress_of_packet_[packet] = link;
  }
  uint32_t ingress_of(uint32_t packet) const { return ingress_of_packet_[packet]; }

  // May `bytes` more wait at switch port `port`, where `waiting` do?
  bool HasRoom(uint32_t port, uint32_t packet, uint32_t waiting, uint32_t bytes) const;
  // The packet begins to wait; it no longer waits. The signal is for the sender of ingress_of(packet).
  Signal Take(uint32_t port, uint32_t packet, uint32_t bytes);
  Signal Release(uint32_t port, uint32_t packet, uint32_t bytes);

 private:
  struct Ingress {
    uint32_t bytes = 0;        // that count against its threshold
    uint32_t in_headroom = 0;  // beyond it, with shared memory; else `bytes` has these too
    uint32_t headroom = 0;
    uint32_t xoff = 0, xon = 0;  // without shared memory
    bool paused = false;
  };
  uint32_t FreeOf(uint32_t port) const;
  // Shared and lossless: the packet counts against the link's share of the pool.
  bool FitsShare(uint32_t port, const Ingress& ingress, uint32_t bytes) const;
  Signal TakeOfShare(uint32_t port, Ingress& ingress, uint32_t bytes);
  Signal ReleaseOfShare(uint32_t port, Ingress& ingress, uint32_t bytes);

  const bool shared_;
  const bool lossless_;
  const double alpha_;
  const uint32_t full_wire_bytes_;
  uint32_t longest_queue_bytes_;
  std::vector<uint32_t> switch_of_port_;  // by port
  std::vector<uint32_t> pool_;            // by switch: bytes to share
  std::vector<uint32_t> used_;            // of these
  std::vector<Ingress> ingress_;          // by link; empty unless lossless
  std::vector<uint32_t> ingress_of_packet_;
};

}  // namespace paceline::sim
