#include "transport/crypto/aead.h"

#include <openssl/evp.h>

#include "transport/crypto/require.h"

namespace paceline::crypto {

void Aead::Free::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }

Aead::Aead(const AeadKey& key, Direction direction) : context_(EVP_CIPHER_CTX_new()) {
  const int seals = direction == Direction::kSeal ? 1 : 0;
  Require(context_ != nullptr &&
          EVP_CipherInit_ex2(context_.get(), library_.aes_128_gcm(), key.data(), nullptr, seals, nullptr) == 1);
}

Aead::~Aead() = default;
Aead::Aead(Aead&&) noexcept = default;
Aead& Aead::operator=(Aead&&) noexcept = default;

bool Aead::Run(const Nonce& nonce, std::span<const uint8_t> header, std::span<const uint8_t> payload, uint8_t* out) {
  EVP_CIPHER_CTX* context = context_.get();
  int bytes = 0;
  return EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, nonce.data(), -1) == 1 &&
         EVP_CipherUpdate(context, nullptr, &bytes, header.data(), static_cast<int>(header.size())) == 1 &&
         (payload.empty() ||
          EVP_CipherUpdate(context, out, &bytes, payload.data(), static_cast<int>(payload.size())) == 1);
}

Tag Aead::Seal(const Nonce& nonce, std::span<const uint8_t> header, std::span<const uint8_t> payload,
               uint8_t* encrypted) {
  Tag tag;
  uint8_t nothing = 0;
  int bytes = 0;
  Require(Run(nonce, header, payload, encrypted) && EVP_CipherFinal_ex(context_.get(), &nothing, &bytes) == 1 &&
          EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1);
  return tag;
}

bool Aead::Open(const Nonce& nonce, std::span<const uint8_t> header, std::span<const uint8_t> payload,
                uint8_t* decrypted, std::span<const uint8_t, kTagBytes> tag) {
  uint8_t nothing = 0;
  int bytes = 0;
  return Run(nonce, header, payload, decrypted) &&
         EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, const_cast<uint8_t*>(tag.data())) == 1 &&
         EVP_CipherFinal_ex(context_.get(), &nothing, &bytes) == 1;
}

}  // namespace paceline::crypto
