// Payloads in memory of GPUs that travel in packets: the processor cannot touch them where they are, so they are copied
// from and to host memory, each packet by itself, by the environment, which waits for each copy.
//
// A copy that fails ends its connection, a little later: who fails stands in a list that the endpoint takes.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/core/burst_memory.h"
#include "transport/core/counters.h"
#include "transport/core/types.h"

namespace paceline {

class EndpointEnvironment;

class DeviceCopies {
 public:
  explicit DeviceCopies(BurstMemory* burst_memory) : burst_memory_(burst_memory) {}
  void Start(EndpointEnvironment* environment, EndpointCounters* counters) {
    environment_ = environment;
    counters_ = counters;
  }
  // The same bytes in `burst_memory`, until the next burst begins; nullptr: the copy failed.
  const uint8_t* FromDevice(ConnectionId connection, int device, const uint8_t* from, size_t bytes);
  // False: the copy failed.
  bool ToDevice(ConnectionId connection, int device, uint8_t* to, const uint8_t* from, size_t bytes);

  // Connections whose copies failed since the last call, some of them more than once.
  bool any_failed() const { return !failed_.empty(); }
  std::vector<ConnectionId> TakeFailed() { return std::exchange(failed_, {}); }

 private:
  bool Note(bool copied, ConnectionId connection, size_t bytes);

  BurstMemory* burst_memory_;
  EndpointEnvironment* environment_ = nullptr;
  EndpointCounters* counters_ = nullptr;
  std::vector<ConnectionId> failed_;
};

}  // namespace paceline
