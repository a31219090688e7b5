// Stateless connection cookies: a server proves to itself that a client receives at the address it claims before it
// keeps any state for it (as DTLS 1.3, RFC 9147 section 5.1). HMAC-SHA-256 by OpenSSL, cut to 128 bits.
#pragma once

#include <array>
#include <cstdint>

#include "transport/base/time.h"
#include "transport/lane/lane.h"
#include "transport/wire/handshake.h"

namespace paceline {

class CookieJar {
 public:
  static constexpr Duration kLife = Duration::Seconds(60);  // at most

  explicit CookieJar(const std::array<uint8_t, 32>& secret) : secret_(secret) {}

  wire::Cookie Make(const wire::InitPacket& init, const LaneAddress& source, Time now) const;
  // Made by us for this client, address and listener not longer than a minute ago?
  bool Check(const wire::InitPacket& init, const LaneAddress& source, Time now) const;

 private:
  wire::Cookie Compute(const wire::InitPacket& init, const LaneAddress& source, int64_t period) const;
  std::array<uint8_t, 32> secret_;
};

}  // namespace paceline
