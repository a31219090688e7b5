// What is asked of the sending half of a connection after every packet, of either direction. It stays in the connection
// beside what else is looked at then, so that a packet which does not concern the sending half does not touch it: with
// thousands of connections each touch is a cache miss.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>

#include "transport/base/limits.h"

namespace paceline {

struct SendState {
  static_assert(limits::kMaxPorts <= 8, "a bit for each port");
  uint32_t operations = 0;     // posted by the user and not complete
  uint32_t open_answers = 0;   // to requests of the peer, not complete
  uint8_t ready_ports = 0;     // bit per local port: Sender::Fill may find something for it
  uint8_t demand_pending = 0;  // bit per port of the peer: it is to be told of the backlog
  uint8_t fence_pending = 0;   // bit per port of the peer: it is to be asked to refuse what was written there

  bool may_have_more() const { return ready_ports != 0; }
  bool may_have_more(uint32_t port) const { return (ready_ports >> port & 1) != 0; }
  bool drained() const { return operations == 0 && open_answers == 0; }
};

}  // namespace paceline
