#include "transport/core/cookie.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "transport/wire/byte_order.h"

namespace paceline {
namespace {

constexpr int64_t kPeriodNanos = CookieJar::kLife.nanos() / 2;

}  // namespace

wire::Cookie CookieJar::Compute(const wire::InitPacket& init, const LaneAddress& source, int64_t period) const {
  std::array<uint8_t, 64> input{};
  wire::Writer writer(input);
  writer.U64(static_cast<uint64_t>(period));
  writer.U32(init.client_connection);
  writer.U64(init.client_nonce);
  writer.U64(init.listener_nonce);
  writer.U8(source.size);
  writer.Bytes(source.view());
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned int digest_bytes = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), input.data(), writer.size(), digest.data(),
       &digest_bytes);
  wire::Cookie cookie{};
  std::copy_n(digest.begin(), cookie.size(), cookie.begin());
  return cookie;
}

wire::Cookie CookieJar::Make(const wire::InitPacket& init, const LaneAddress& source, Time now) const {
  return Compute(init, source, now.nanos() / kPeriodNanos);
}

bool CookieJar::Check(const wire::InitPacket& init, const LaneAddress& source, Time now) const {
  const int64_t period = now.nanos() / kPeriodNanos;
  for (const int64_t p : {period, period - 1}) {
    const wire::Cookie cookie = Compute(init, source, p);
    if (CRYPTO_memcmp(cookie.data(), init.cookie.data(), cookie.size()) == 0) return true;
  }
  return false;
}

}  // namespace paceline
