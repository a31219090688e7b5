#include "transport/crypto/keyed_mac.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "transport/crypto/require.h"

namespace paceline::crypto {
void KeyedMac::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

KeyedMac::KeyedMac(std::span<const uint8_t> key) {
  context_.reset(EVP_MAC_CTX_new(library_.hmac()));
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_end()};
  Require(context_ != nullptr && EVP_MAC_init(context_.get(), key.data(), key.size(), parameters) == 1);
}

KeyedMac::~KeyedMac() = default;
KeyedMac::KeyedMac(KeyedMac&&) noexcept = default;
KeyedMac& KeyedMac::operator=(KeyedMac&&) noexcept = default;

Secret KeyedMac::Compute(std::span<const uint8_t> input) {
  Secret out;
  size_t bytes = 0;
  Require(EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1 &&  // the same key once more
          EVP_MAC_update(context_.get(), input.data(), input.size()) == 1 &&
          EVP_MAC_final(context_.get(), out.data(), &bytes, out.size()) == 1);
  return out;
}

}  // namespace paceline::crypto
