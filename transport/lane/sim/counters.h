// What the simulated fabric counts, and the time series that a report draws from. All of it is bounded in memory.
// Thread rule: written by the fabric's thread; read when the run is over, or from HostDriver::Poll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/lane/sim/sim_time.h"

namespace paceline::sim {

struct FabricCounters {
  uint64_t events = 0;         // processed
  uint64_t packet_hops = 0;    // packets of any kind that reached the far end of a link
  uint64_t drops = 0;          // data packets dropped by switches for want of room, headers of cut ones included
  uint64_t trims = 0;          // data packets cut to their header by switches for want of room, and passed on
  uint64_t ecn_marks = 0;      // data packets marked
  uint64_t control_drops = 0;  // control packets dropped by switches for want of room
  uint64_t pfc_pauses = 0;     // pause frames sent; none without lossless mode
  uint64_t fault_losses = 0;   // packets of any kind lost to faults, dropped for a bad checksum included
  uint64_t fault_duplicates = 0;
  uint64_t fault_reorders = 0;
  uint64_t fault_corruptions = 0;  // packets with a bit turned over, whether delivered so or dropped
  uint64_t delivered_packets = 0;  // to NICs, any kind
  uint64_t delivered_payload_bytes = 0;
  uint64_t host_polls = 0;
};

// How full the data queues of switch ports were: per port the largest and a histogram over time. The packet being sent
// counts until its last bit has left. Levels are a power of two wide, at least 32 of them below the limit.
class QueueStatistics {
 public:
  static constexpr uint32_t kLevels = 64;

  void Start(size_t ports, uint32_t limit_bytes) {
    while ((limit_bytes >> shift_) >= kLevels) ++shift_;
    time_at_level_.assign(ports * kLevels, 0);
  }
  void Add(uint32_t port, uint32_t bytes, Picos span) {
    time_at_level_[size_t{port} * kLevels + (bytes >> shift_)] += static_cast<uint64_t>(span);
  }
  // Smallest level that port was at or below for the share `quantile` of `total`, as the level's upper end; 0 when the
  // queue was all but empty for that long.
  uint32_t Quantile(uint32_t port, double quantile, Picos total) const;

 private:
  uint32_t shift_ = 0;
  std::vector<uint64_t> time_at_level_;
};

// What every switch port did over time: in at most kMaxPoints intervals; when full, neighbours are joined and the
// interval doubles.
class Series {
 public:
  static constexpr size_t kMaxPoints = 512;

  Series(Picos interval, uint32_t ports) : interval_(interval), ports_(ports) {}

  Picos interval() const { return interval_; }
  size_t size() const { return delivered_.size(); }
  uint64_t delivered_payload_bytes(size_t point) const { return delivered_[point]; }
  uint32_t queue_peak_bytes(size_t point, uint32_t port) const { return peaks_[point * ports_ + port]; }
  // On the wire.
  uint64_t sent_bytes(size_t point, uint32_t port) const { return static_cast<uint64_t>(sent_[point * ports_ + port]); }

  // Starts the next interval; then Set once for each port.
  void Append(uint64_t delivered_payload_bytes);
  void Set(uint32_t port, uint32_t queue_peak_bytes, uint64_t sent_bytes) {
    const size_t at = (delivered_.size() - 1) * ports_ + port;
    peaks_[at] = queue_peak_bytes;
    sent_[at] = static_cast<float>(sent_bytes);
  }

 private:
  void JoinNeighbours();

  Picos interval_;
  const uint32_t ports_;
  std::vector<uint64_t> delivered_;
  std::vector<uint32_t> peaks_;  // by point, then port
  std::vector<float> sent_;      // beyond 16 MiB to 7 digits
};

}  // namespace paceline::sim
