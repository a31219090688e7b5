// The sending half of a dpdk lane: a frame for each segment, bursts of frames for the port.
//
// The headers of frame and packet are written into a buffer of the port's. The payload is copied behind them, or
// referred to where it lies: all of it where the driver copies by itself while it sends
// (DpdkPortTraits::copies_while_sending), and where a card reads it later what stays and was lent (DpdkMemory). Small
// ones are always copied, which costs less than a second buffer, and so are all while there is no buffer to refer by.
// That is on loan (PayloadLoans) until the driver lets go of the buffer. What is in memory of a GPU is never touched:
// while there is no buffer it is not taken, and where it would have to be copied it is dropped.
//
// What is for a neighbour that is being asked for waits here, within a bound.
//
// Thread rule: the engine's thread. Nothing is allocated after construction but buffers of the port's own pools.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/lane/dpdk/dpdk_memory.h"
#include "transport/lane/dpdk/dpdk_peers.h"
#include "transport/lane/dpdk/dpdk_port.h"
#include "transport/lane/dpdk/payload_loans.h"
#include "transport/lane/ethernet/burst_headers.h"
#include "transport/lane/ethernet/neighbours.h"
#include "transport/lane/lane.h"

struct rte_mbuf;

namespace paceline {

class DpdkSender {
 public:
  static constexpr size_t kMostHeld = 64;  // frames that wait for neighbours

  // The pointers outlive this. `version`: of the port's address. `max_packet_bytes`: larger segments are dropped and
  // counted.
  DpdkSender(const DpdkPort* port, const DpdkMemory* memory, Neighbours* neighbours, IpVersion version,
             uint32_t max_packet_bytes);
  ~DpdkSender();
  DpdkSender(const DpdkSender&) = delete;
  DpdkSender& operator=(const DpdkSender&) = delete;

  // See Lane::Send. Stops early only when the queue is full; while the link is down what finds no room is dropped.
  size_t Send(std::span<const TxSegment> segments, const DpdkPeers& peers, bool link_up, LaneCounters& counters);

  // A frame as it is, or not at all when there is no room.
  void SendFrame(std::span<const uint8_t> frame);

  // Neighbours became known, or are given up: what waited for them leaves, or is dropped, as all is of a port that is
  // not usable.
  void ReleaseHeld(bool usable, LaneCounters& counters);

  // See Lane::ReadsFromDevice.
  bool ReadsFromDevice(const uint8_t* payload, size_t bytes) const;

 private:
  static constexpr size_t kBatch = 32;

  struct Held {
    rte_mbuf* frame = nullptr;
    uint32_t neighbour = 0;
    uint32_t bytes = 0;
    uint16_t queue = 0;
  };

  struct Batched {
    uint32_t bytes = 0;
    bool in_place = false;
  };

  bool Sendable(const TxSegment& segment, const DpdkPeers& peers) const;
  // Returns how many bytes.
  size_t WriteHeaders(const TxSegment& segment, const DpdkPeers::Peer& peer, const MacAddress& to, uint8_t* out);
  // A buffer with the whole frame, or nullptr when there is none left.
  rte_mbuf* Build(const TxSegment& segment, const DpdkPeers::Peer& peer, const MacAddress& to, bool may_refer);
  // What a buffer that refers to the payload holds; nullptr: the payload is to be copied.
  const PayloadLoans* LoanFor(const TxSegment& segment) const;
  void Hold(const TxSegment& segment, const DpdkPeers::Peer& peer, LaneCounters& counters);
  // All segments of one path leave by one queue, so that they stay in order.
  uint16_t QueueOf(const TxSegment& segment) const {
    return static_cast<uint16_t>(segment.entropy % port_->traits().send_queues);
  }
  // Sends the batch; returns how many of its frames left or were dropped.
  size_t Flush(uint16_t queue, bool link_up, LaneCounters& counters);

  const DpdkPort* port_;
  const DpdkMemory* memory_;
  PayloadLoans brief_;  // of what is read before Send returns
  Neighbours* neighbours_;
  const bool is_v4_;
  uint32_t max_packet_bytes_;
  BurstHeaders headers_;
  std::array<rte_mbuf*, kBatch> batch_{};
  std::array<Batched, kBatch> batched_{};
  size_t batch_size_ = 0;
  std::vector<Held> held_;
};

}  // namespace paceline
