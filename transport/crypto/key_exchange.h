// X25519 (RFC 7748 section 5), by OpenSSL.
//
// Thread rule: functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "transport/crypto/key_derivation.h"

namespace paceline::crypto {

using PublicKey = std::array<uint8_t, 32>;

// Any 32 bytes are a private key; they must be random. Late in exit() (library_context.h) keys are not made any more:
// zero then, with which nobody agrees on anything.
PublicKey PublicKeyOf(const Secret& private_key);

// What both sides can compute and nobody else. nullopt: the other side's key is one of the few that give zero to
// everyone, or it is too late, as above.
std::optional<Secret> SharedSecret(const Secret& private_key, const PublicKey& theirs);

}  // namespace paceline::crypto
