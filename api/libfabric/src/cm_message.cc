#include "api/libfabric/src/cm_message.h"

#include <algorithm>
#include <cstring>

namespace paceline::libfabric {
namespace {

constexpr uint32_t kMagic = 0x4d434c50;  // "PLCM"
constexpr uint8_t kVersion = 1;
constexpr size_t kAddressAt = 8;
constexpr size_t kDataAt = kAddressAt + Address::kBytes;
static_assert(kDataAt + kCmDataBytes == CmMessage::kBytes);

}  // namespace

std::array<uint8_t, CmMessage::kBytes> Encode(const CmMessage& message) {
  std::array<uint8_t, CmMessage::kBytes> bytes{};
  std::memcpy(bytes.data(), &kMagic, sizeof(kMagic));
  bytes[4] = kVersion;
  bytes[5] = static_cast<uint8_t>(message.kind);
  bytes[6] = static_cast<uint8_t>(message.data.size());
  std::copy(message.from.bytes.begin(), message.from.bytes.end(), bytes.begin() + kAddressAt);
  std::copy(message.data.begin(), message.data.end(), bytes.begin() + kDataAt);
  return bytes;
}

std::optional<CmMessage> DecodeCmMessage(std::span<const uint8_t> bytes) {
  if (bytes.size() != CmMessage::kBytes || std::memcmp(bytes.data(), &kMagic, sizeof(kMagic)) != 0) return std::nullopt;
  const auto kind = static_cast<CmMessage::Kind>(bytes[5]);
  if (bytes[4] != kVersion || kind < CmMessage::Kind::kRequest || kind > CmMessage::Kind::kReject ||
      bytes[6] > kCmDataBytes) {
    return std::nullopt;
  }
  const auto data = bytes.subspan(kDataAt, bytes[6]);
  return CmMessage{.kind = kind, .from = Address::From(bytes.data() + kAddressAt), .data = {data.begin(), data.end()}};
}

}  // namespace paceline::libfabric
