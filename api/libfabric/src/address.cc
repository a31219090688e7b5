#include "api/libfabric/src/address.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "api/cpp/src/handle.h"

namespace paceline::libfabric {

Address ToAddress(const api::Handle& handle) {
  const auto listen = api::DecodeHandle(handle);
  return listen.ok() ? ToAddress(*listen) : Address();
}

Address ToAddress(const ListenAddress& listen) {
  Address address;
  std::memcpy(address.bytes.data(), &listen.nonce, 8);
  size_t at = 9;
  for (size_t port = 0; port < listen.ports; ++port) {
    const LaneAddress& lane = listen.addresses[port];
    if (at + 1 + lane.size > Address::kBytes) break;
    address.bytes[at] = lane.size;
    std::copy_n(lane.bytes.begin(), lane.size, address.bytes.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    at += 1u + lane.size;
    ++address.bytes[8];
  }
  return address;
}

api::Handle ToHandle(const Address& address) { return api::EncodeHandle(ToListenAddress(address)); }

ListenAddress ToListenAddress(const Address& address) {
  ListenAddress listen;
  std::memcpy(&listen.nonce, address.bytes.data(), 8);
  size_t at = 9;
  while (listen.ports < std::min<size_t>(address.bytes[8], listen.addresses.size()) && at < Address::kBytes) {
    LaneAddress& lane = listen.addresses[listen.ports];
    const size_t size = address.bytes[at];
    if (size > LaneAddress::kMaxBytes || at + 1 + size > Address::kBytes) break;
    lane.size = static_cast<uint8_t>(size);
    std::copy_n(address.bytes.begin() + static_cast<std::ptrdiff_t>(at) + 1, size, lane.bytes.begin());
    at += 1 + size;
    ++listen.ports;
  }
  return listen;
}

int GiveName(const Address& address, void* to, size_t* size) {
  const size_t room = *size;
  *size = Address::kBytes;
  if (to != nullptr) std::memcpy(to, address.bytes.data(), std::min(room, Address::kBytes));
  return room < Address::kBytes ? -FI_ETOOSMALL : 0;
}

std::string ToText(const Address& address) {
  static constexpr char kDigits[] = "0123456789abcdef";
  size_t size = Address::kBytes;
  while (size > 0 && address.bytes[size - 1] == 0) --size;
  std::string text = "fi_paceline://";
  for (size_t i = 0; i < size; ++i) {
    text += kDigits[address.bytes[i] >> 4];
    text += kDigits[address.bytes[i] & 15];
  }
  return text;
}

}  // namespace paceline::libfabric
