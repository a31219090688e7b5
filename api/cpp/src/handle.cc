#include "api/cpp/src/handle.h"

#include <cstring>

namespace paceline::api {
namespace {

constexpr char kMagic[4] = {'P', 'C', 'L', 'H'};
constexpr uint8_t kVersion = 1;
constexpr size_t kPortsAt = 16;
constexpr size_t kPortBytes = 1 + LaneAddress::kMaxBytes;
constexpr size_t kChecksumAt = Handle::kBytes - 4;
constexpr size_t kMaxPorts = std::tuple_size_v<decltype(ListenAddress::addresses)>;
static_assert(kPortsAt + kMaxPorts * kPortBytes <= kChecksumAt);

uint32_t Checksum(const Handle& handle) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < kChecksumAt; ++i) hash = (hash ^ handle.bytes[i]) * 16777619u;
  return hash;
}

}  // namespace

Handle EncodeHandle(const ListenAddress& address) {
  Handle handle;
  uint8_t* bytes = handle.bytes.data();
  std::memcpy(bytes, kMagic, sizeof(kMagic));
  bytes[4] = kVersion;
  bytes[5] = address.ports;
  std::memcpy(bytes + 8, &address.nonce, 8);
  for (size_t port = 0; port < address.ports && port < kMaxPorts; ++port) {
    uint8_t* at = bytes + kPortsAt + port * kPortBytes;
    at[0] = address.addresses[port].size;
    std::memcpy(at + 1, address.addresses[port].bytes.data(), LaneAddress::kMaxBytes);
  }
  const uint32_t checksum = Checksum(handle);
  std::memcpy(bytes + kChecksumAt, &checksum, 4);
  return handle;
}

Result<ListenAddress> DecodeHandle(const Handle& handle) {
  const uint8_t* bytes = handle.bytes.data();
  uint32_t checksum;
  std::memcpy(&checksum, bytes + kChecksumAt, 4);
  if (std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0) {
    return Status(StatusCode::kInvalidArgument, "these 128 bytes are not a Paceline handle");
  }
  if (bytes[4] != kVersion) {
    return Status(StatusCode::kInvalidArgument,
                  "the handle has version " + std::to_string(bytes[4]) + "; this build reads version 1");
  }
  ListenAddress address;
  address.ports = bytes[5];
  if (checksum != Checksum(handle) || address.ports == 0 || address.ports > kMaxPorts) {
    return Status(StatusCode::kInvalidArgument, "the handle is damaged");
  }
  std::memcpy(&address.nonce, bytes + 8, 8);
  for (size_t port = 0; port < address.ports; ++port) {
    const uint8_t* at = bytes + kPortsAt + port * kPortBytes;
    if (at[0] > LaneAddress::kMaxBytes) return Status(StatusCode::kInvalidArgument, "the handle is damaged");
    address.addresses[port].size = at[0];
    std::memcpy(address.addresses[port].bytes.data(), at + 1, LaneAddress::kMaxBytes);
  }
  return address;
}

}  // namespace paceline::api
