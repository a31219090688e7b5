#include "transport/crypto/key_exchange.h"

#include <openssl/evp.h>

#include <memory>

#include "transport/crypto/require.h"

namespace paceline::crypto {
namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

Key PrivateKey(const Secret& bytes) {
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, bytes.data(), bytes.size()));
  Require(key != nullptr);
  return key;
}

}  // namespace

PublicKey PublicKeyOf(const Secret& private_key) {
  PublicKey out;
  size_t bytes = out.size();
  Require(EVP_PKEY_get_raw_public_key(PrivateKey(private_key).get(), out.data(), &bytes) == 1);
  return out;
}

std::optional<Secret> SharedSecret(const Secret& private_key, const PublicKey& theirs) {
  const Key ours = PrivateKey(private_key);
  const Key peer(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, theirs.data(), theirs.size()));
  const std::unique_ptr<EVP_PKEY_CTX, FreeKey> context(EVP_PKEY_CTX_new(ours.get(), nullptr));
  Secret out;
  size_t bytes = out.size();
  if (peer == nullptr || context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer(context.get(), peer.get()) != 1 ||
      EVP_PKEY_derive(context.get(), out.data(), &bytes) != 1 || bytes != out.size()) {
    return std::nullopt;
  }
  return out;
}

}  // namespace paceline::crypto
