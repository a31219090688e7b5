// The sending half of an xdp lane: builds each frame in the memory that the card, or the kernel, takes it from.
//
// What goes to a peer whose card is not known yet, and answers to strangers, leave by the kernel's UDP sockets of the
// same ports, and look the same on the wire: the kernel queues them and looks for the neighbour. What these sockets
// have no room for is lost.
//
// Thread rule: the engine's thread. Nothing is allocated after construction, but where peers have new next hops.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/lane/ethernet/burst_headers.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/lane.h"
#include "transport/lane/udp/udp_sender.h"
#include "transport/lane/xdp/xdp_neighbours.h"
#include "transport/lane/xdp/xdp_queue.h"

namespace paceline {

class XdpSender {
 public:
  struct Options {
    MacAddress mac;                // of the interface
    SocketAddress address;         // packets are sent from
    std::vector<uint16_t> ports;   // source port of each entropy
    UdpSender::Options by_kernel;  // with a socket of each port
    bool ecn = false;
    uint8_t traffic_class = 0;
    uint32_t max_packet_bytes = 0;  // larger segments are dropped and counted
  };

  // Queues, peers and neighbours are not owned and live longer.
  XdpSender(Options options, std::span<const std::unique_ptr<XdpQueue>> queues, const UdpPeers* peers,
            XdpNeighbours* neighbours);

  // See Lane::Send. While the link is not `up` all is dropped.
  size_t Send(std::span<const TxSegment> segments, bool up, Time now, LaneCounters& counters);

  // Has the kernel take what an earlier call left waiting. True: nothing waits any more.
  bool Flush(LaneCounters& counters);
  // Something was left waiting when last looked at.
  bool waiting() const { return waiting_; }

 private:
  bool Sendable(const TxSegment& segment) const;
  void Build(const TxSegment& segment, const SocketAddress& to, const MacAddress& mac, XdpQueue& queue);
  size_t WriteHeaders(const TxSegment& segment, const SocketAddress& to, const MacAddress& mac, uint8_t* out);

  Options options_;
  std::span<const std::unique_ptr<XdpQueue>> queues_;
  const UdpPeers* peers_;
  XdpNeighbours* neighbours_;
  UdpSender by_kernel_;
  FrameFlow flow_;  // what all frames have
  BurstHeaders headers_;
  bool waiting_ = false;
};

}  // namespace paceline
