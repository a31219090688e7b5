// AES-128-GCM (NIST SP 800-38D) for packets: a header that is authenticated, and a payload that is authenticated or
// also encrypted. By OpenSSL, which uses the processor's instructions.
//
// A nonce must never be used twice with one key.
//
// Thread rule: one thread at a time per object. Making one allocates, sealing and opening do not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/crypto/library_context.h"

struct evp_cipher_ctx_st;

namespace paceline::crypto {

inline constexpr size_t kAeadKeyBytes = 16;
inline constexpr size_t kTagBytes = 16;

using AeadKey = std::array<uint8_t, kAeadKeyBytes>;
using Nonce = std::array<uint8_t, 12>;
using Tag = std::array<uint8_t, kTagBytes>;

enum class Direction : bool { kSeal, kOpen };

class Aead {
 public:
  Aead(const AeadKey& key, Direction direction);
  ~Aead();
  Aead(Aead&&) noexcept;
  Aead& operator=(Aead&&) noexcept;

  // The tag of header and payload. `encrypted`: room for payload.size() bytes, which the payload is encrypted into;
  // nullptr: the payload is only authenticated. For Direction::kSeal.
  Tag Seal(const Nonce& nonce, std::span<const uint8_t> header, std::span<const uint8_t> payload, uint8_t* encrypted);

  // True if the tag is right. `decrypted`: room for the payload in clear, nullptr where it was only authenticated. What
  // it holds after false must not be used. For Direction::kOpen.
  bool Open(const Nonce& nonce, std::span<const uint8_t> header, std::span<const uint8_t> payload, uint8_t* decrypted,
            std::span<const uint8_t, kTagBytes> tag);

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  // Header and payload of one packet, up to the tag.
  bool Run(const Nonce& nonce, std::span<const uint8_t> header, std::span<const uint8_t> payload, uint8_t* out);

  [[no_unique_address]] LibraryContext library_;  // goes after what was made in it
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
};

}  // namespace paceline::crypto
