// What one acknowledgement brought, by the peer's port. There is one for all connections, in CoreContext: it is large,
// and most of it is not looked at.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <array>
#include <cstdint>

#include "cc/congestion_control.h"
#include "transport/base/limits.h"

namespace paceline {

class AckTotals {
 public:
  void Reset() {
    touched_ = 0;
    progress = false;
    classes = 0;
  }
  AckSample& Of(uint32_t port) {
    if (!Has(port)) by_port_[port] = AckSample();
    touched_ |= 1u << port;
    return by_port_[port];
  }
  bool Has(uint32_t port) const { return (touched_ >> port & 1) != 0; }

  bool progress = false;  // something arrived of which that was not known
  uint16_t classes = 0;   // of these classes: bit per local port and traffic class

 private:
  std::array<AckSample, limits::kMaxPorts> by_port_;
  uint32_t touched_ = 0;  // bit per port
};

}  // namespace paceline
