// Who a peer is, and what keys follow from it: X25519 between fresh keys of both sides, authenticated by the cluster
// key (the pattern NNpsk0 of the Noise framework, with messages of our own). Knowing the cluster key later does not
// open what was recorded, as the fresh private keys are gone by then.
//
//   root          = HKDF-Extract("paceline cluster key", cluster key)
//   Init's tag    = HMAC(HKDF-Expand(root, "paceline init"), packet): proves the client before anything is computed
//   digest        = HMAC("paceline init digest", Init without cookie and tag)
//   Refuse's tag  = HMAC(HKDF-Expand(root, "paceline refuse" digest), packet)
//   Ask's tag     = HMAC(HKDF-Expand(root, "paceline ask"), packet); Gone's with "paceline gone"
//   session       = HKDF-Extract(root, X25519(client, server))
//   Accept's tag  = HMAC(HKDF-Expand(session, "paceline accept" digest), packet)
//   first secrets = HKDF-Expand(session, "paceline to server" or "paceline to client", digest of Init and Accept)
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "transport/core/secure_channel.h"
#include "transport/crypto/key_derivation.h"
#include "transport/crypto/key_exchange.h"
#include "transport/wire/handshake.h"

namespace paceline {

// What an endpoint that has a cluster key keeps.
class Identity {
 public:
  // `seed`: secret and random; all private keys of this endpoint follow from it, one after the other.
  Identity(const crypto::Secret& cluster_key, const crypto::Secret& seed);
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;

  // Fresh, and not to be computed again from what is kept.
  crypto::Secret NewPrivateKey();

  // Tags over the signed bytes of a packet (wire::SignedBytes).
  wire::HandshakeTag TagInit(std::span<const uint8_t> packet) const;
  // `init_digest`: of the request that is refused, which was made with our key.
  wire::HandshakeTag TagRefuse(std::span<const uint8_t> packet, const crypto::Secret& init_digest) const;

  wire::HandshakeTag TagAsk(std::span<const uint8_t> packet) const;
  wire::HandshakeTag TagGone(std::span<const uint8_t> packet) const;

  const crypto::Secret& root() const { return root_; }

 private:
  crypto::Secret root_;
  crypto::Secret init_key_;
  crypto::Secret ask_key_;
  crypto::Secret gone_key_;
  crypto::Secret seed_;
};

bool EqualTags(const wire::HandshakeTag& a, const wire::HandshakeTag& b);

// What both sides of one handshake have in common.
class Session {
 public:
  // nullopt: the other side's public key is unusable. `init_digest`: DigestOfInit of the request.
  static std::optional<Session> Derive(const Identity& identity, const crypto::Secret& private_key,
                                       const crypto::PublicKey& theirs, const crypto::Secret& init_digest);

  wire::HandshakeTag TagAccept(std::span<const uint8_t> packet) const;
  // `accept`: the signed bytes of the Accept.
  SecureChannel::Secrets Keys(bool client, std::span<const uint8_t> accept) const;

 private:
  Session() = default;

  crypto::Secret secret_{};
  crypto::Secret init_digest_{};
};

// Of a request's signed bytes, but for the cookie, in which the first and the second differ.
crypto::Secret DigestOfInit(std::span<const uint8_t> packet);

}  // namespace paceline
