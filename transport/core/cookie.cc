#include "transport/core/cookie.h"

#include <algorithm>

#include "transport/wire/byte_order.h"

namespace paceline {
namespace {

constexpr int64_t kPeriodNanos = CookieJar::kLife.nanos() / 2;

}  // namespace

wire::Cookie CookieJar::Compute(const wire::InitPacket& init, const LaneAddress& source, int64_t period) {
  std::array<uint8_t, 64> input{};
  wire::Writer writer(input);
  writer.U64(static_cast<uint64_t>(period));
  writer.U32(init.client_connection);
  writer.U64(init.client_nonce);
  writer.U64(init.listener_nonce);
  writer.U8(source.size);
  writer.Bytes(source.view());
  const crypto::Secret digest = mac_.Compute(std::span(input).first(writer.size()));
  wire::Cookie cookie{};
  std::copy_n(digest.begin(), cookie.size(), cookie.begin());
  return cookie;
}

std::optional<wire::Cookie> CookieJar::Check(const wire::InitPacket& init, const LaneAddress& source, Time now) {
  const int64_t period = now.nanos() / kPeriodNanos;
  const wire::Cookie fresh = Compute(init, source, period);
  if (init.cookie == wire::Cookie{}) return fresh;
  if (crypto::EqualSecrets(init.cookie, fresh)) return std::nullopt;
  if (crypto::EqualSecrets(init.cookie, Compute(init, source, period - 1))) return std::nullopt;
  return fresh;
}

}  // namespace paceline
