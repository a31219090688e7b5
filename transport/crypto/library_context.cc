#include "transport/crypto/library_context.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "transport/crypto/require.h"

namespace paceline::crypto {
namespace {

// None of these has a destructor: threads may use them until the process is gone.
constinit std::mutex mutex;
constinit size_t users = 0;                     // under mutex
constinit OSSL_LIB_CTX* the_context = nullptr;  // these do not change once they are made
constinit EVP_CIPHER* the_cipher = nullptr;
constinit EVP_MAC* the_mac = nullptr;
constinit EVP_KDF* the_kdf = nullptr;
constinit std::shared_mutex key_pairs_in_use;
constinit std::atomic<bool> key_pairs_ended = false;

// Who has key pairs in use gets a second to be done: more it never needs, and of a handler of a signal that calls
// exit() in the middle of that the thread would wait for itself.
struct EndOfKeyPairs {
  ~EndOfKeyPairs() {
    key_pairs_ended = true;
    for (int i = 0; i < 1000; ++i) {
      if (key_pairs_in_use.try_lock()) {
        key_pairs_in_use.unlock();
        return;
      }
      usleep(1000);
    }
  }
};

// With the library that has this code, or with the process; there with users all the same it is left alone.
// (101: behind all that has no number.)
[[gnu::destructor(101)]] void FreeTheContext() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock() || users > 0 || the_context == nullptr) return;
  EVP_CIPHER_free(the_cipher);
  EVP_MAC_free(the_mac);
  EVP_KDF_free(the_kdf);
  OSSL_LIB_CTX_free(std::exchange(the_context, nullptr));
}

}  // namespace

LibraryContext::LibraryContext() {
  const std::lock_guard lock(mutex);
  ++users;
  if (the_context != nullptr) return;
  the_context = OSSL_LIB_CTX_new();
  Require(the_context != nullptr);
  the_cipher = EVP_CIPHER_fetch(the_context, "AES-128-GCM", nullptr);
  the_mac = EVP_MAC_fetch(the_context, "HMAC", nullptr);
  the_kdf = EVP_KDF_fetch(the_context, "HKDF", nullptr);
  Require(the_cipher != nullptr && the_mac != nullptr && the_kdf != nullptr);
  Require(OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr) == 1);  // as without anything it does nothing
  static const EndOfKeyPairs end;  // after OpenSSL's handler of exit(), so it comes before
}

LibraryContext::~LibraryContext() {
  const std::lock_guard lock(mutex);
  --users;
}

OSSL_LIB_CTX* LibraryContext::context() const { return the_context; }
EVP_CIPHER* LibraryContext::aes_128_gcm() const { return the_cipher; }
EVP_MAC* LibraryContext::hmac() const { return the_mac; }
EVP_KDF* LibraryContext::hkdf() const { return the_kdf; }

KeyPairs::KeyPairs() : lock_(key_pairs_in_use) {}
bool KeyPairs::ended() const { return key_pairs_ended; }

}  // namespace paceline::crypto
