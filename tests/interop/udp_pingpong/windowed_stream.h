// A stream of equal packets with a window on what is in flight, so that nothing is lost for want of buffers, over a
// lane or over anything else that a program compares with one. The receiver answers each poll that found something with
// the bytes it has so far. Both ends spin.
//
// Thread rule: single-threaded programs.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "transport/lane/lane.h"

namespace paceline::interop {

inline constexpr size_t kStreamMemory = 1 << 20;  // bytes that payloads are taken from, in turn

struct WindowedStream {
  uint32_t packet = 1472;  // bytes
  uint32_t burst = 44;     // packets
  uint64_t window = 512 << 10;
  double seconds = 2;
};

struct StreamTotals {
  uint64_t sent = 0;
  uint64_t arrived = 0;
  double seconds = 0;
  double cpu = 0;
};

using Publish = std::function<void(const std::string& address)>;

// Calls `send_burst` (gives the bytes that it sent) while the window is open and `poll_reply` always; ends after the
// time set, plus what it takes for the last answers to come. `poll_reply` gives the bytes that arrived so far, or 0
// when there is no answer.
StreamTotals DriveStream(const WindowedStream& stream, const std::function<uint64_t()>& send_burst,
                         const std::function<uint64_t()>& poll_reply);

// The two ends over lanes. ServeStream tells its address and does not return.
void ServeStream(Lane& lane, const Publish& publish);
StreamTotals AskStream(const WindowedStream& stream, Lane& lane, const LaneAddress& server);

// program, gbps (payload that arrived), lost_bytes, cpu_ns_per_packet of each end (the server's: where known).
nlohmann::ordered_json DescribeStream(const std::string& program, const WindowedStream& stream,
                                      const StreamTotals& totals, double server_cpu);

}  // namespace paceline::interop
