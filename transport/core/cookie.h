// Stateless connection cookies: a server proves to itself that a client receives at the address it claims before it
// keeps any state for it (as DTLS 1.3, RFC 9147 section 5.1). HMAC-SHA-256, cut to 128 bits.
//
// Thread rule: one owner. Checking does not allocate: it is what a flood of requests makes a server do.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "transport/base/time.h"
#include "transport/crypto/keyed_mac.h"
#include "transport/lane/lane.h"
#include "transport/wire/handshake.h"

namespace paceline {

class CookieJar {
 public:
  static constexpr Duration kLife = Duration::Seconds(60);  // at most

  explicit CookieJar(const std::array<uint8_t, 32>& secret) : mac_(secret) {}

  // nullopt: the request's cookie was made by us for this client, address and listener not longer than a minute ago.
  // Else the cookie to answer with.
  std::optional<wire::Cookie> Check(const wire::InitPacket& init, const LaneAddress& source, Time now);

 private:
  wire::Cookie Compute(const wire::InitPacket& init, const LaneAddress& source, int64_t period);
  crypto::KeyedMac mac_;
};

}  // namespace paceline
