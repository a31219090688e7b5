#include "transport/crypto/key_derivation.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>
#include <vector>

#include "transport/crypto/keyed_mac.h"
#include "transport/crypto/library_context.h"
#include "transport/crypto/require.h"

namespace paceline::crypto {
namespace {

struct FreeContext {
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

OSSL_PARAM Octets(const char* name, std::span<const uint8_t> bytes) {
  static uint8_t none = 0;  // the library refuses a null pointer even for no bytes
  void* data = bytes.empty() ? &none : const_cast<uint8_t*>(bytes.data());
  return OSSL_PARAM_construct_octet_string(name, data, bytes.size());
}

void Hkdf(int mode, const char* other_name, std::span<const uint8_t> key, std::span<const uint8_t> other,
          std::span<uint8_t> out) {
  const LibraryContext library;
  const std::unique_ptr<EVP_KDF_CTX, FreeContext> context(EVP_KDF_CTX_new(library.hkdf()));
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
                                   Octets(OSSL_KDF_PARAM_KEY, key), Octets(other_name, other),
                                   OSSL_PARAM_construct_end()};
  Require(context != nullptr && EVP_KDF_derive(context.get(), out.data(), out.size(), parameters) == 1);
}

}  // namespace

void Erase(std::span<uint8_t> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

Secret HkdfExtract(std::span<const uint8_t> salt, std::span<const uint8_t> input) {
  Secret out;
  Hkdf(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, OSSL_KDF_PARAM_SALT, input, salt, out);
  return out;
}

void HkdfExpand(const Secret& key, std::string_view label, std::span<const uint8_t> context, std::span<uint8_t> out) {
  std::vector<uint8_t> info(label.begin(), label.end());
  info.insert(info.end(), context.begin(), context.end());
  Hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, OSSL_KDF_PARAM_INFO, key, info, out);
}

Secret HkdfExpand(const Secret& key, std::string_view label, std::span<const uint8_t> context) {
  Secret out;
  HkdfExpand(key, label, context, out);
  return out;
}

Secret HmacSha256(std::span<const uint8_t> key, std::span<const uint8_t> input) { return KeyedMac(key).Compute(input); }

bool EqualSecrets(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace paceline::crypto
