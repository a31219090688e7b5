// Protection of one connection's packets: an authentication tag on each, its payload encrypted where that was agreed,
// and nothing taken twice. The construction is that of DTLS 1.3 and IPsec: AES-128-GCM, a nonce from a packet counter
// that never repeats (RFC 5116 section 3.2), a window of counters seen (RFC 6479), and new keys before the old ones
// wear out.
//
// A protected packet has the flag wire::kProtected and ends its header with a trailer:
//
//   packet counter (64) | tag (128)
//
// The tag covers the header up to itself, its checksum field as zero, and the payload. Keys belong to epochs: a
// packet's epoch is its counter divided by kPacketsPerEpoch, and each epoch's secret follows from the one before, which
// is forgotten. Who misses the whole of an epoch can follow no more. docs/security.md says what this defends against.
//
// Thread rule: the endpoint's thread. Sealing and opening do not allocate, but for the first packet of an epoch and the
// first after Release.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "transport/base/bit_window.h"
#include "transport/crypto/aead.h"
#include "transport/crypto/key_derivation.h"

namespace paceline {

class SecureChannel {
 public:
  static constexpr size_t kTrailerBytes = 24;
  // NIST SP 800-38D and the bound that RFC 8446 section 5.5 draws from it leave a factor of some thousand.
  static constexpr uint64_t kPacketsPerEpoch = uint64_t{1} << 24;

  struct Secrets {
    crypto::Secret send{};  // of the first epoch
    crypto::Secret receive{};
  };
  SecureChannel(const Secrets& secrets, bool encrypts, uint64_t packets_per_epoch = kPacketsPerEpoch);

  // Whether payloads are encrypted, not only authenticated.
  bool encrypts() const { return encrypts_; }

  // Protects a finished packet. `header`: the room that the header stands in, with kTrailerBytes to spare behind its
  // first `header_bytes`. `encrypted`: where the encrypted payload goes (payload.size() bytes), used if encrypts().
  // Returns the bytes of the header with its trailer.
  size_t Seal(std::span<uint8_t> header, size_t header_bytes, std::span<const uint8_t> payload, uint8_t* encrypted);

  enum class Verdict : uint8_t { kGenuine, kForged, kReplayed };
  // `header`: with its trailer, as it arrived. `decrypted`: where the payload goes, used if encrypts().
  Verdict Open(std::span<const uint8_t> header, std::span<const uint8_t> payload, uint8_t* decrypted);

  // Nothing is on its way: gives back what can be made anew. What comes late all the same is taken for a replay.
  void Release();
  size_t memory_bytes() const;

 private:
  // One direction's keys of one epoch.
  struct Epoch {
    Epoch(uint64_t epoch_number, const crypto::Secret& secret, crypto::Direction direction);
    ~Epoch();
    Epoch(Epoch&&) noexcept = default;
    Epoch& operator=(Epoch&&) noexcept = default;

    crypto::Aead& aead();

    uint64_t number;
    crypto::Direction direction;
    crypto::Nonce mask{};
    crypto::AeadKey key{};
    crypto::Secret next_secret;
    std::optional<crypto::Aead> cipher;
  };
  crypto::Nonce NonceOf(const Epoch& epoch, uint64_t counter) const;
  // The keys to open a packet of this epoch with, or nullptr: too old, or too far ahead.
  Epoch* ReceiveEpoch(uint64_t number);

  const bool encrypts_;
  const uint64_t packets_per_epoch_;
  uint64_t next_counter_ = 0;
  Epoch send_;
  Epoch receive_;
  std::unique_ptr<Epoch> receive_before_;  // for what is late
  std::unique_ptr<Epoch> receive_after_;   // until something genuine of it has come
  BitWindow seen_;
};

}  // namespace paceline
