#include "transport/core/secure_channel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "transport/base/limits.h"
#include "transport/wire/packet.h"

namespace paceline {
namespace {

// As many packets as one connection may have on their way, twice: control packets count too.
constexpr uint32_t kSeenBound = 4 * limits::kMaxOutstandingPackets;
constexpr uint64_t kSeenKept = 2 * limits::kMaxOutstandingPackets;
constexpr size_t kCounterBytes = SecureChannel::kTrailerBytes - crypto::kTagBytes;

uint64_t ReadCounter(std::span<const uint8_t, kCounterBytes> bytes) {
  uint64_t counter = 0;
  std::memcpy(&counter, bytes.data(), bytes.size());
  return counter;
}

}  // namespace

SecureChannel::Epoch::Epoch(uint64_t epoch_number, const crypto::Secret& secret, crypto::Direction epoch_direction)
    : number(epoch_number), direction(epoch_direction), next_secret(crypto::HkdfExpand(secret, "paceline next epoch")) {
  crypto::HkdfExpand(secret, "paceline packet key", {}, key);
  crypto::HkdfExpand(secret, "paceline packet nonce", {}, mask);
}

SecureChannel::Epoch::~Epoch() { crypto::Erase(key); }

crypto::Aead& SecureChannel::Epoch::aead() {
  if (!cipher.has_value()) cipher.emplace(key, direction);
  return *cipher;
}

SecureChannel::SecureChannel(const Secrets& secrets, bool encrypts, uint64_t packets_per_epoch)
    : encrypts_(encrypts),
      packets_per_epoch_(packets_per_epoch),
      send_(0, secrets.send, crypto::Direction::kSeal),
      receive_(0, secrets.receive, crypto::Direction::kOpen),
      seen_(kSeenBound) {}

crypto::Nonce SecureChannel::NonceOf(const Epoch& epoch, uint64_t counter) const {
  crypto::Nonce nonce = epoch.mask;
  for (size_t i = 0; i < sizeof(counter); ++i) {
    nonce[nonce.size() - sizeof(counter) + i] ^= static_cast<uint8_t>(counter >> (8 * i));
  }
  return nonce;
}

size_t SecureChannel::Seal(std::span<uint8_t> header, size_t header_bytes, std::span<const uint8_t> payload,
                           uint8_t* encrypted) {
  const uint64_t counter = next_counter_++;
  if (counter / packets_per_epoch_ != send_.number) {
    send_ = Epoch(send_.number + 1, send_.next_secret, crypto::Direction::kSeal);
  }
  const std::span<uint8_t> whole = header.first(header_bytes + kTrailerBytes);
  wire::BeginProtection(whole);
  std::memcpy(whole.data() + header_bytes, &counter, sizeof(counter));
  const crypto::Tag tag = send_.aead().Seal(NonceOf(send_, counter), whole.first(header_bytes + kCounterBytes), payload,
                                            encrypts_ ? encrypted : nullptr);
  std::copy(tag.begin(), tag.end(), whole.last<crypto::kTagBytes>().begin());
  wire::RefreshChecksum(whole);
  return whole.size();
}

SecureChannel::Epoch* SecureChannel::ReceiveEpoch(uint64_t number) {
  if (number == receive_.number) return &receive_;
  if (receive_before_ != nullptr && number == receive_before_->number) return receive_before_.get();
  if (number != receive_.number + 1) return nullptr;
  if (receive_after_ == nullptr) {
    receive_after_ = std::make_unique<Epoch>(number, receive_.next_secret, crypto::Direction::kOpen);
  }
  return receive_after_.get();
}

SecureChannel::Verdict SecureChannel::Open(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                                           uint8_t* decrypted) {
  if (header.size() < wire::kCommonBytes + kTrailerBytes || header.size() > limits::kMaxControlBytes) {
    return Verdict::kForged;
  }
  const auto trailer = header.last<kTrailerBytes>();
  const uint64_t counter = ReadCounter(trailer.first<kCounterBytes>());
  if (counter < seen_.begin() || seen_.Test(counter)) return Verdict::kReplayed;
  Epoch* epoch = ReceiveEpoch(counter / packets_per_epoch_);
  if (epoch == nullptr) return Verdict::kForged;
  std::array<uint8_t, limits::kMaxControlBytes> covered;
  const size_t covered_bytes = header.size() - crypto::kTagBytes;
  wire::CopyWithoutChecksum(header.first(covered_bytes), covered);
  if (!epoch->aead().Open(NonceOf(*epoch, counter), std::span(covered).first(covered_bytes), payload,
                          encrypts_ ? decrypted : nullptr, trailer.last<crypto::kTagBytes>())) {
    return Verdict::kForged;
  }
  if (epoch == receive_after_.get()) {
    std::swap(receive_, *receive_after_);
    receive_before_ = std::move(receive_after_);
  }
  if (!seen_.Reaches(counter)) seen_.AdvanceTo(counter - kSeenKept);
  seen_.Set(counter);
  return Verdict::kGenuine;
}

void SecureChannel::Release() {
  send_.cipher.reset();
  receive_.cipher.reset();
  receive_before_.reset();
  receive_after_.reset();
  seen_.AdvanceTo(seen_.end());
  seen_.Release();
}

size_t SecureChannel::memory_bytes() const {
  constexpr size_t kCipherBytes = 1024;  // OpenSSL's context, about
  size_t bytes = sizeof(*this) + seen_.memory_bytes();
  const auto cipher_bytes = [](const Epoch& epoch) { return epoch.cipher.has_value() ? kCipherBytes : 0; };
  for (const std::unique_ptr<Epoch>* epoch : {&receive_before_, &receive_after_}) {
    if (*epoch != nullptr) bytes += sizeof(Epoch) + cipher_bytes(**epoch);
  }
  return bytes + cipher_bytes(send_) + cipher_bytes(receive_);
}

}  // namespace paceline
