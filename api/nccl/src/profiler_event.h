// What the plugin tells NCCL's profiler callback (v10 and up): one event per send and per slot of a grouped receive,
// from its post until test() has reported it.
//
// Thread rule: plain values. A profiler that does not know kProfilerPlugin must not look at the data.
#pragma once

#include <cstdint>

namespace paceline::nccl {

// NCCL's plugins have 1 and 2 in the upper half; the lower half is the version of the layout.
inline constexpr int64_t kProfilerPlugin = int64_t{0x504c} << 16 | 1;

struct ProfilerData {
  static constexpr uint32_t kSend = 0, kReceive = 1;
  uint32_t kind;
  uint32_t device;      // NCCL's number
  uint32_t connection;  // api::Connection::id
  uint32_t tag;
  uint64_t bytes;  // of the send; room of the receive
};

}  // namespace paceline::nccl
