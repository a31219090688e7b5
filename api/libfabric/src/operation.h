// A posted operation, from the call until its completion has gone to the completion queue and the counter: the
// context's user data point to it.
//
// Thread rule: under the domain's guard. Owned by the domain's pool.
#pragma once

#include <cstdint>

#include "api/libfabric/src/info.h"
#include "paceline/types.h"
#include "transport/base/intrusive_list.h"

namespace paceline::libfabric {

class Endpoint;

struct Operation {
  ListLink link;  // receives, of their endpoint
  Endpoint* endpoint = nullptr;
  void* context = nullptr;  // the program's
  void* buffer = nullptr;   // receives
  uint64_t flags = 0;       // what the completion says: FI_SEND | FI_MSG, ...
  bool reported = true;     // a success is entered into the completion queue
  bool discard = false;     // receives: the message is to be dropped, however long
  api::OperationId id = 0;
  uint64_t room = 0;               // receives: bytes of the buffer
  uint8_t injected[kInjectBytes];  // sends and writes whose buffer the program has back at once
};

}  // namespace paceline::libfabric
