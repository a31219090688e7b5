// The bandwidth-delay product of a port or a pair in payload bytes, guarded against absurd port descriptions, so that
// every algorithm scales by the same number.
//
// Thread rule: pure functions, callable anywhere.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/congestion_control.h"

namespace paceline {

// No count of bytes that an algorithm computes with is larger: sums of two still fit a signed 64-bit number.
inline constexpr uint64_t kMaxBytes = uint64_t{1} << 61;

inline uint32_t SegmentBytes(const PortInfo& port) { return std::max<uint32_t>(port.segment_bytes, 1); }

// Wire bytes of a full segment.
inline uint64_t SegmentWireBytes(const PortInfo& port) { return uint64_t{SegmentBytes(port)} + port.overhead_bytes; }

// The port's rate; a port that states none (or an unlimited one) is reckoned with as 100 Gb/s.
inline Rate LinkRate(const PortInfo& port) {
  const bool usable = !port.link_rate.is_zero() && !port.link_rate.is_unlimited();
  return usable ? port.link_rate : Rate::Gbps(100);
}

// The pair's base round trip where known, otherwise the port's, at least 1 us and at most 1 s.
inline Duration BaseRtt(const PortInfo& port, const FlowInfo& flow = {}) {
  const Duration stated = flow.base_rtt > Duration() ? flow.base_rtt : port.base_rtt;
  return std::clamp(stated, Duration::Micros(1), Duration::Seconds(1));
}

// What delays below it say nothing of: PortInfo::delay_error in nanoseconds.
inline double DelayErrorNanos(const PortInfo& port) {
  return static_cast<double>(std::clamp(port.delay_error, Duration(), Duration::Seconds(1)).nanos());
}

// Payload bytes that fill the pipe for `rtt`, at least one segment.
inline uint64_t BdpBytes(const PortInfo& port, Duration rtt) {
  const double wire = LinkRate(port).bytes_per_second() * rtt.seconds();
  const double payload = wire * SegmentBytes(port) / static_cast<double>(SegmentWireBytes(port));
  const double bounded = std::min(payload, static_cast<double>(kMaxBytes));
  return std::max<uint64_t>(static_cast<uint64_t>(bounded), SegmentBytes(port));
}

// `factor` BDP, at least one segment.
inline uint64_t BdpScaled(const PortInfo& port, Duration rtt, double factor) {
  const double bytes = std::min(static_cast<double>(BdpBytes(port, rtt)) * factor, static_cast<double>(kMaxBytes));
  return std::max<uint64_t>(static_cast<uint64_t>(bytes), SegmentBytes(port));
}

}  // namespace paceline
