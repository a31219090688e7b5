// The receiving half of a UDP lane: recvmmsg into preallocated buffers, UDP_GRO runs handed out in place.
//
// With UDP_GRO the kernel delivers a run of packets of one sender as one buffer and says their size (the stride); this
// class cuts such a buffer into RxSegments without copying. A buffer that does not fit into the caller's `out` goes on
// at the next call. Buffers are reused once everything in them was handed out *and* Receive was called again.
//
// Where the next payloads are thought to belong (Guess), the first buffer of a call is a row of vectors: a header here,
// a payload there, and again, and at the end room for what is longer than thought. If what comes has that size its
// packets are handed out with header and payload apart; otherwise their bytes are put together again first.
//
// Time stamps: the kernel stamps arrivals with CLOCK_REALTIME, the transport runs on CLOCK_MONOTONIC. The difference is
// measured at most once per second, and again at once when a stamp looks odd (the wall clock was set). While polls
// follow closely on one another there are no stamps, and what a poll finds has arrived then.
//
// Thread rule: the engine's thread. Nothing is allocated after construction, but the row when it is first wanted.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/lane/lane.h"
#include "transport/lane/udp/poll_rhythm.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {

class UdpReceiver {
 public:
  struct Options {
    int socket = -1;                // not owned; non-blocking
    bool gro = false;               // buffers of 64 KB instead of one packet
    bool timestamps = false;        // the socket has them
    uint32_t max_packet_bytes = 0;  // without GRO: longer ones are dropped and counted
  };

  // Below that copying is taken for as cheap as a vector more for a packet (it is when sending: docs/lanes/udp.md).
  static constexpr uint32_t kLeastGuessedBytes = 4096;

  explicit UdpReceiver(const Options& options);

  // See Lane::Receive. Returns out.size() when there may be more.
  size_t Receive(std::span<RxSegment> out, Time now, LaneCounters& counters);
  // See Lane::GuessPlacement.
  void Guess(const PlacementGuess& guess) { guess_ = guess; }

 private:
  static constexpr size_t kGroBuffers = 16;
  static constexpr size_t kPlainBuffers = 64;
  static constexpr size_t kGroBufferBytes = 65536;
  static constexpr size_t kControlBytes = 256;
  static constexpr size_t kMostGuessed = kGroBufferBytes / kLeastGuessedBytes;  // packets
  static constexpr size_t kMostHeaderBytes = 128;

  struct Buffer {
    iovec vector{};
    SocketAddress from;
    LaneAddress source;
    uint32_t bytes = 0;
    uint32_t stride = 0;
    bool usable = false;
    bool congestion_experienced = false;
    Time received_at;
    alignas(cmsghdr) std::array<uint8_t, kControlBytes> control;
  };

  // What a row of vectors is like.
  struct Row {
    PlacementGuess guess;
    std::array<std::array<uint8_t, kMostHeaderBytes>, kMostGuessed> headers;
    std::array<iovec, 2 * kMostGuessed + 1> vectors;
    std::array<uint8_t, kGroBufferBytes> rest;
    uint32_t stride() const { return guess.header_bytes + guess.payload_bytes; }
  };

  // For the next call, of at most `wanted` segments.
  void LayOut(const PlacementGuess& guess, size_t wanted);
  void PutTogether(const Buffer& buffer);
  RxSegment At(const Buffer& buffer, uint32_t bytes) const;
  bool Fill(const PlacementGuess& guess, size_t wanted, Time now, LaneCounters& counters);
  void ReadControl(Buffer& buffer, msghdr& header, Time now, LaneCounters& counters);
  Time ToTransportClock(int64_t realtime_nanos, Time now);
  void MeasureClockOffset(Time now);
  void SetStamps(bool on);

  Options options_;
  size_t buffer_bytes_;
  std::unique_ptr<uint8_t[]> memory_;
  std::vector<Buffer> buffers_;
  std::vector<mmsghdr> messages_;
  size_t batch_ = 1;     // buffers to ask for next: asking for one more than there are costs a look in vain
  size_t filled_ = 0;    // buffers that hold something
  size_t current_ = 0;   // the one being handed out
  uint32_t offset_ = 0;  // bytes of it that were

  PlacementGuess guess_;      // for the next call
  std::unique_ptr<Row> row_;  // made when it is first wanted
  bool in_row_ = false;       // what the first buffer holds

  PollRhythm rhythm_;
  bool stamps_;                // the kernel makes them
  uint32_t kernel_drops_ = 0;  // as last reported; the kernel's count wraps
  int64_t realtime_minus_monotonic_ = 0;
  Time offset_measured_at_;
  bool offset_known_ = false;
  bool offset_fresh_ = false;  // measured during this Fill
};

}  // namespace paceline
