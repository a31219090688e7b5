// The primitives against the vectors of their specifications.
#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <string_view>
#include <utility>
#include <vector>

#include "transport/crypto/aead.h"
#include "transport/crypto/key_derivation.h"
#include "transport/crypto/key_exchange.h"
#include "transport/crypto/keyed_mac.h"

namespace paceline::crypto {
namespace {

std::vector<uint8_t> Hex(std::string_view text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

template <typename Array>
Array HexArray(std::string_view text) {
  const std::vector<uint8_t> bytes = Hex(text);
  Array out{};
  EXPECT_EQ(bytes.size(), out.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), out.size()), out.begin());
  return out;
}

// RFC 5869, appendix A.1.
TEST(KeyDerivationTest, Hkdf) {
  const std::vector<uint8_t> input(22, 0x0b);
  const Secret key = HkdfExtract(Hex("000102030405060708090a0b0c"), input);
  EXPECT_EQ(key, HexArray<Secret>("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"));
  std::vector<uint8_t> out(42);
  HkdfExpand(key, "", Hex("f0f1f2f3f4f5f6f7f8f9"), out);
  EXPECT_EQ(out, Hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
  // The label is the beginning of what goes in.
  std::vector<uint8_t> labelled(42);
  HkdfExpand(key, "\xf0\xf1\xf2", Hex("f3f4f5f6f7f8f9"), labelled);
  EXPECT_EQ(labelled, out);
}

// RFC 4231, test case 2.
TEST(KeyDerivationTest, Hmac) {
  const std::string_view key = "Jefe", data = "what do ya want for nothing?";
  const auto bytes = [](std::string_view text) {
    return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  EXPECT_EQ(HmacSha256(bytes(key), bytes(data)),
            HexArray<Secret>("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
}

// The same as each by itself, whatever was computed before.
TEST(KeyedMacTest, ComputesTheSameAgainAndAgain) {
  const auto key = HexArray<Secret>("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b");
  KeyedMac mac(key);
  for (const size_t bytes : {0, 1, 63, 64, 65, 1000, 1}) {
    const std::vector<uint8_t> input(bytes, static_cast<uint8_t>(bytes));
    EXPECT_EQ(mac.Compute(input), HmacSha256(key, input)) << bytes;
  }
  KeyedMac moved = std::move(mac);
  EXPECT_EQ(moved.Compute(key), HmacSha256(key, key));
}

// RFC 7748, section 6.1.
TEST(KeyExchangeTest, X25519) {
  const auto alice = HexArray<Secret>("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
  const auto bob = HexArray<Secret>("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
  EXPECT_EQ(PublicKeyOf(alice),
            HexArray<PublicKey>("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
  const auto shared = HexArray<Secret>("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
  EXPECT_EQ(SharedSecret(alice, PublicKeyOf(bob)), shared);
  EXPECT_EQ(SharedSecret(bob, PublicKeyOf(alice)), shared);
}

TEST(KeyExchangeTest, KeysThatGiveEverybodyTheSameAreRefused) {
  EXPECT_EQ(SharedSecret(Secret{1, 2, 3}, PublicKey{}), std::nullopt);
}

// The Galois/Counter Mode of Operation (McGrew and Viega), test case 4.
TEST(AeadTest, Aes128Gcm) {
  const auto key = HexArray<AeadKey>("feffe9928665731c6d6a8f9467308308");
  const auto nonce = HexArray<Nonce>("cafebabefacedbaddecaf888");
  const std::vector<uint8_t> header = Hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const std::vector<uint8_t> clear =
      Hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0d"
          "e657ba637b39");
  const std::vector<uint8_t> secret =
      Hex("42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0a"
          "ac973d58e091");
  const auto tag = HexArray<Tag>("5bc94fbc3221a5db94fae95ae7121a47");
  Aead seal(key, Direction::kSeal), open(key, Direction::kOpen);
  std::vector<uint8_t> out(clear.size());
  EXPECT_EQ(seal.Seal(nonce, header, clear, out.data()), tag);
  EXPECT_EQ(out, secret);
  EXPECT_TRUE(open.Open(nonce, header, secret, out.data(), tag));
  EXPECT_EQ(out, clear);
}

TEST(AeadTest, OnlyAuthenticated) {
  Aead seal(AeadKey{1}, Direction::kSeal), open(AeadKey{1}, Direction::kOpen), other(AeadKey{2}, Direction::kOpen);
  const std::vector<uint8_t> header(100, 7), payload(1000, 9), changed(1000, 8);
  for (uint8_t i = 0; i < 3; ++i) {  // one object for many packets
    const Tag tag = seal.Seal(Nonce{i}, header, payload, nullptr);
    EXPECT_TRUE(open.Open(Nonce{i}, header, payload, nullptr, tag));
    EXPECT_FALSE(open.Open(Nonce{i}, header, changed, nullptr, tag));
    EXPECT_FALSE(open.Open(Nonce{i}, payload, header, nullptr, tag));
    EXPECT_FALSE(open.Open(Nonce{9}, header, payload, nullptr, tag));
    EXPECT_FALSE(other.Open(Nonce{i}, header, payload, nullptr, tag));
  }
  const Tag tag = seal.Seal(Nonce{5}, header, {}, nullptr);
  EXPECT_TRUE(open.Open(Nonce{5}, header, {}, nullptr, tag));
}

// What a thread does that nobody has stopped, when exit() has come to OpenSSL's own handler.
void UseAllAfterTheLibraryEnded(KeyedMac& mac, Aead& seal) {
  const Secret key{1, 2, 3};
  const Secret before = HkdfExpand(key, "label"), sum = mac.Compute(key);
  const PublicKey theirs = PublicKeyOf(Secret{4});
  OPENSSL_cleanup();
  bool good = HkdfExpand(key, "label") == before && mac.Compute(key) == sum && KeyedMac(key).Compute(key) == sum;
  const std::vector<uint8_t> header(10, 7), payload(100, 9);
  Aead open(AeadKey{1}, Direction::kOpen);  // as after an idle time
  good &= open.Open(Nonce{1}, header, payload, nullptr, seal.Seal(Nonce{1}, header, payload, nullptr));
  // No keys are made any more: with none of these does anybody agree on anything.
  good &= PublicKeyOf(key) == PublicKey{} && SharedSecret(key, theirs) == std::nullopt;
  _exit(good ? 0 : 1);
}

TEST(LibraryDeathTest, ThreadsMayUseItWhileTheProcessEnds) {
  KeyedMac mac(Secret{1, 2, 3});
  Aead seal(AeadKey{1}, Direction::kSeal);
  EXPECT_EXIT(UseAllAfterTheLibraryEnded(mac, seal), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace paceline::crypto
