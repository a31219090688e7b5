// OpenSSL's algorithms, in a library context of our own. The default context ends in a handler of exit(), and with it
// what was made in it, while threads that nobody has stopped still move packets: of a process that ends without closing
// what it has open, as ranks do. (Key exchanges are over then all the same: key_exchange.h.)
//
// Thread rule: any thread. Ownership: made with the first LibraryContext, of which every object and every call that
// uses an algorithm has one; freed where a plugin is unloaded, and at the very end of a process, unless there is a
// LibraryContext yet.
#pragma once

#include <openssl/types.h>

#include <shared_mutex>

namespace paceline::crypto {

class LibraryContext {
 public:
  LibraryContext();
  ~LibraryContext();
  LibraryContext(const LibraryContext& /*other*/) : LibraryContext() {}
  LibraryContext& operator=(const LibraryContext& other) = default;

  OSSL_LIB_CTX* context() const;
  EVP_CIPHER* aes_128_gcm() const;
  EVP_MAC* hmac() const;
  EVP_KDF* hkdf() const;
};

// What OpenSSL has for key pairs in no context ends with exit(): not while one of these is there.
class KeyPairs {
 public:
  KeyPairs();
  bool ended() const;

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

}  // namespace paceline::crypto
