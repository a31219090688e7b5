#include "transport/lane/verbs/verbs_messages.h"

namespace paceline {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint32_t kMost24Bits = 0xffffff;
constexpr uint16_t kLeastMtu = 256;
constexpr uint16_t kMostMtu = 4096;

void Put(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

uint32_t Get(const uint8_t* at) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | at[i];
  return value;
}

}  // namespace

std::array<uint8_t, kVerbsMessageBytes> EncodeVerbsMessage(const VerbsMessage& message) {
  std::array<uint8_t, kVerbsMessageBytes> bytes{};
  Put(&bytes[0], uint32_t{static_cast<uint8_t>(message.type)} << 24 | uint32_t{kVersion} << 16 | message.entropy);
  Put(&bytes[4], message.connection);
  Put(&bytes[8], message.epoch);
  Put(&bytes[12], message.attempt);
  Put(&bytes[16], message.qp_number);
  Put(&bytes[20], message.psn);
  Put(&bytes[24], uint32_t{message.mtu} << 16 | uint32_t{static_cast<uint8_t>(message.service)} << 8);
  return bytes;
}

std::optional<VerbsMessage> ParseVerbsMessage(std::span<const uint8_t> bytes) {
  if (bytes.size() != kVerbsMessageBytes || bytes[1] != kVersion) return std::nullopt;
  if (bytes[0] < static_cast<uint8_t>(VerbsMessageType::kOpen)) return std::nullopt;
  if (bytes[0] > static_cast<uint8_t>(VerbsMessageType::kClose)) return std::nullopt;
  if (bytes[26] != static_cast<uint8_t>(VerbsService::kUnreliable) &&
      bytes[26] != static_cast<uint8_t>(VerbsService::kReliable)) {
    return std::nullopt;
  }
  VerbsMessage message;
  message.type = static_cast<VerbsMessageType>(bytes[0]);
  message.entropy = static_cast<uint16_t>(bytes[2] << 8 | bytes[3]);
  message.connection = Get(&bytes[4]);
  message.epoch = Get(&bytes[8]);
  message.attempt = Get(&bytes[12]);
  message.qp_number = Get(&bytes[16]);
  message.psn = Get(&bytes[20]);
  message.mtu = static_cast<uint16_t>(bytes[24] << 8 | bytes[25]);
  message.service = static_cast<VerbsService>(bytes[26]);
  if (message.qp_number > kMost24Bits || message.psn > kMost24Bits) return std::nullopt;
  if (message.mtu < kLeastMtu || message.mtu > kMostMtu) return std::nullopt;
  return message;
}

}  // namespace paceline
