// In-band telemetry: what the output port of a switch said of itself when a packet left its queue. Networks that do it
// write one such record per hop into packets that ask for it; the receiver returns them to the sender.
//
// Counts and clocks have 32 bits and go round: only differences mean anything. Thread rule: a value.
#pragma once

#include <cstdint>

#include "transport/base/time.h"

namespace paceline {

struct HopTelemetry {
  uint32_t link = 0;         // which port: a number of its own in the whole network
  uint32_t queue_bytes = 0;  // left in its data queue when the packet left it
  uint32_t sent_bytes = 0;   // on the wire by this port up to and including the packet, modulo 2^32
  uint32_t time_nanos = 0;   // then, by the switch's own clock, modulo 2^32
  Rate rate;                 // of the link
};

}  // namespace paceline
