// The receiving half of a dpdk lane: bursts from the port, checked and handed out where they lie.
//
// Frames of ARP and neighbour discovery go to the table of neighbours, what is not for the lane's own address and UDP
// port is nobody's. A frame's buffer goes back to the port when everything of its burst was handed out *and* Receive
// was called again.
//
// Thread rule: the engine's thread. Nothing is allocated after construction.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transport/lane/dpdk/dpdk_port.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/ethernet/neighbours.h"
#include "transport/lane/lane.h"

struct rte_mbuf;

namespace paceline {

class DpdkReceiver {
 public:
  // The pointers outlive this. `own`: whose source is the lane's own address and port.
  DpdkReceiver(const DpdkPort* port, Neighbours* neighbours, const FrameFlow& own);
  ~DpdkReceiver();
  DpdkReceiver(const DpdkReceiver&) = delete;
  DpdkReceiver& operator=(const DpdkReceiver&) = delete;

  // See Lane::Receive. 0: there was nothing for us in the next kMostBursts full bursts, or the port is empty.
  size_t Receive(std::span<RxSegment> out, Time now, LaneCounters& counters);

 private:
  static constexpr size_t kBurst = 64;
  static constexpr size_t kMostBursts = 4;  // of one call

  // From all queues, as far as the burst has room.
  void TakeBurst(LaneCounters& counters);
  void Release();
  bool IsForUs(std::span<const uint8_t> frame) const;
  // False: nobody's, or damaged, which is counted.
  bool Take(rte_mbuf* buffer, Time now, LaneCounters& counters, RxSegment& out);
  const LaneAddress* SourceOf(const FrameFlow& flow);

  const DpdkPort* port_;
  Neighbours* neighbours_;
  FrameFlow own_;
  std::array<rte_mbuf*, kBurst> burst_{};
  uint16_t queue_ = 0;  // is read first
  size_t filled_ = 0;
  size_t next_ = 0;
  // One for each run of frames of one source.
  std::array<LaneAddress, kBurst> sources_;
  size_t source_count_ = 0;
  FrameFlow last_source_;
};

}  // namespace paceline
