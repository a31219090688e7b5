#include "transport/crypto/key_exchange.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <memory>
#include <span>

#include "transport/crypto/library_context.h"
#include "transport/crypto/require.h"

namespace paceline::crypto {
namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

using Context = std::unique_ptr<EVP_PKEY_CTX, FreeKey>;

// nullptr: it cannot be used, or exit() has ended what OpenSSL has in no context, without which there are no keys.
// (With EVP_PKEY_new_raw_private_key_ex and its like a process would crash there.)
Key MakeKey(const LibraryContext& library, int selection, const char* name, std::span<const uint8_t> bytes) {
  const Context context(EVP_PKEY_CTX_new_from_name(library.context(), "X25519", nullptr));
  OSSL_PARAM parameters[] = {OSSL_PARAM_construct_octet_string(name, const_cast<uint8_t*>(bytes.data()), bytes.size()),
                             OSSL_PARAM_construct_end()};
  EVP_PKEY* key = nullptr;
  if (context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, selection, parameters) != 1) {
    return nullptr;
  }
  return Key(key);
}

Key PrivateKey(const LibraryContext& library, const Secret& bytes) {
  return MakeKey(library, EVP_PKEY_KEYPAIR, OSSL_PKEY_PARAM_PRIV_KEY, bytes);
}

}  // namespace

PublicKey PublicKeyOf(const Secret& private_key) {
  const LibraryContext library;
  PublicKey out{};
  const KeyPairs in_use;
  if (in_use.ended()) return out;
  size_t bytes = out.size();
  const Key key = PrivateKey(library, private_key);
  if (key == nullptr && OPENSSL_init_crypto(0, nullptr) == 0) return out;  // OpenSSL is over
  Require(key != nullptr && EVP_PKEY_get_raw_public_key(key.get(), out.data(), &bytes) == 1);
  return out;
}

std::optional<Secret> SharedSecret(const Secret& private_key, const PublicKey& theirs) {
  const LibraryContext library;
  const KeyPairs in_use;
  if (in_use.ended()) return std::nullopt;
  const Key ours = PrivateKey(library, private_key);
  const Key peer = MakeKey(library, EVP_PKEY_PUBLIC_KEY, OSSL_PKEY_PARAM_PUB_KEY, theirs);
  const Context context(EVP_PKEY_CTX_new_from_pkey(library.context(), ours.get(), nullptr));
  Secret out;
  size_t bytes = out.size();
  if (peer == nullptr || ours == nullptr || context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer(context.get(), peer.get()) != 1 ||
      EVP_PKEY_derive(context.get(), out.data(), &bytes) != 1 || bytes != out.size()) {
    return std::nullopt;
  }
  return out;
}

}  // namespace paceline::crypto
