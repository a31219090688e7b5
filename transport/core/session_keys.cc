#include "transport/core/session_keys.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace paceline {
namespace {

constexpr std::string_view kRootSalt = "paceline cluster key";

std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

wire::HandshakeTag Tag(const crypto::Secret& key, std::span<const uint8_t> packet) {
  const crypto::Secret whole = crypto::HmacSha256(key, packet);
  wire::HandshakeTag tag;
  std::copy_n(whole.begin(), tag.size(), tag.begin());
  return tag;
}

}  // namespace

Identity::Identity(const crypto::Secret& cluster_key, const crypto::Secret& seed)
    : root_(crypto::HkdfExtract(Bytes(kRootSalt), cluster_key)),
      init_key_(crypto::HkdfExpand(root_, "paceline init")),
      ask_key_(crypto::HkdfExpand(root_, "paceline ask")),
      gone_key_(crypto::HkdfExpand(root_, "paceline gone")),
      seed_(seed) {}

crypto::Secret Identity::NewPrivateKey() {
  const crypto::Secret key = crypto::HkdfExpand(seed_, "paceline private key");
  seed_ = crypto::HkdfExpand(seed_, "paceline next seed");
  return key;
}

wire::HandshakeTag Identity::TagInit(std::span<const uint8_t> packet) const { return Tag(init_key_, packet); }

wire::HandshakeTag Identity::TagRefuse(std::span<const uint8_t> packet, const crypto::Secret& init_digest) const {
  return Tag(crypto::HkdfExpand(root_, "paceline refuse", init_digest), packet);
}

wire::HandshakeTag Identity::TagAsk(std::span<const uint8_t> packet) const { return Tag(ask_key_, packet); }

wire::HandshakeTag Identity::TagGone(std::span<const uint8_t> packet) const { return Tag(gone_key_, packet); }

bool EqualTags(const wire::HandshakeTag& a, const wire::HandshakeTag& b) { return crypto::EqualSecrets(a, b); }

std::optional<Session> Session::Derive(const Identity& identity, const crypto::Secret& private_key,
                                       const crypto::PublicKey& theirs, const crypto::Secret& init_digest) {
  const std::optional<crypto::Secret> shared = crypto::SharedSecret(private_key, theirs);
  if (!shared.has_value()) return std::nullopt;
  Session session;
  session.secret_ = crypto::HkdfExtract(identity.root(), *shared);
  session.init_digest_ = init_digest;
  return session;
}

wire::HandshakeTag Session::TagAccept(std::span<const uint8_t> packet) const {
  return Tag(crypto::HkdfExpand(secret_, "paceline accept", init_digest_), packet);
}

SecureChannel::Secrets Session::Keys(bool client, std::span<const uint8_t> accept) const {
  const crypto::Secret digest = crypto::HmacSha256(init_digest_, accept);
  const crypto::Secret to_server = crypto::HkdfExpand(secret_, "paceline to server", digest);
  const crypto::Secret to_client = crypto::HkdfExpand(secret_, "paceline to client", digest);
  return client ? SecureChannel::Secrets{to_server, to_client} : SecureChannel::Secrets{to_client, to_server};
}

crypto::Secret DigestOfInit(std::span<const uint8_t> packet) {
  std::vector<uint8_t> bytes(packet.begin(), packet.end());
  const size_t from = std::min(wire::kInitCookieAt, bytes.size());
  const size_t to = std::min(from + sizeof(wire::Cookie), bytes.size());
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.begin() + static_cast<std::ptrdiff_t>(to), 0);
  return crypto::HmacSha256(Bytes("paceline init digest"), bytes);
}

}  // namespace paceline
