// A posted operation, from the call until its completion has gone to the completion queue and the counter: the
// context's user data point to it.
//
// Thread rule: under the domain's guard. Owned by the domain's pool.
#pragma once

#include <cstdint>
#include <memory>

#include "api/libfabric/src/vectors.h"
#include "paceline/types.h"
#include "transport/base/intrusive_list.h"

namespace paceline::libfabric {

class Counter;
class Endpoint;

struct Operation {
  ListLink link;  // of its endpoint
  Endpoint* endpoint = nullptr;
  void* context = nullptr;           // the program's
  void* buffer = nullptr;            // receives
  uint32_t ordered_on = 0;           // atomics that others wait for: the connection
  uint64_t flags = 0;                // what the completion says: FI_SEND | FI_MSG, ...
  Counter* counter = nullptr;        // counts it beside the endpoint's counters
  uint64_t asked = 0;                // the call's flags: whether its end is entered into the completion queue
  bool told = false;                 // the program has its completion: what comes yet is ours alone
  bool discard = false;              // receives: the message is to be dropped, however long
  api::OperationId id = 0;           // receives that can be cancelled
  uint64_t room = 0;                 // receives: bytes of the buffer
  std::unique_ptr<Staging> staging;  // of memory in several pieces, and of injected bytes that `injected` cannot hold
  uint64_t staged_injected = 0;      // the latter's
  uint8_t injected[256];             // sends and writes whose buffer the program has back at once
};

}  // namespace paceline::libfabric
