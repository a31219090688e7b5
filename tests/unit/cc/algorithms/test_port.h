// The port that the unit tests of the controllers share: 100 Gb/s, 14 us, 4096 + 64 bytes.
#pragma once

#include "cc/congestion_control.h"

namespace paceline {

inline PortInfo TestPort() {
  PortInfo port;
  port.link_rate = Rate::Gbps(100);
  port.base_rtt = Duration::Micros(14);
  port.segment_bytes = 4096;
  port.overhead_bytes = 64;
  port.control_packet_bytes = 64;
  return port;
}

}  // namespace paceline
