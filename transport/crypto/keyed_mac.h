// HMAC-SHA-256 (RFC 2104) under one key, many times: what depends on the key alone is computed once. By OpenSSL.
//
// Thread rule: one thread at a time per object. Making one allocates, computing does not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "transport/crypto/key_derivation.h"
#include "transport/crypto/library_context.h"

struct evp_mac_ctx_st;

namespace paceline::crypto {

class KeyedMac {
 public:
  explicit KeyedMac(std::span<const uint8_t> key);
  ~KeyedMac();
  KeyedMac(KeyedMac&&) noexcept;
  KeyedMac& operator=(KeyedMac&&) noexcept;

  Secret Compute(std::span<const uint8_t> input);

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  [[no_unique_address]] LibraryContext library_;  // goes after what was made in it
  std::unique_ptr<evp_mac_ctx_st, Free> context_;
};

}  // namespace paceline::crypto
