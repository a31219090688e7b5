// The address of an endpoint: 64 bytes with the listener's number and as many of its ports as fit; the rest is learned
// when connections are made.
//
//   0  number of the listener (u64)   8  ports (u8)   9  per port: size (u8), lane's address   ... zero
//
// Thread rule: values and pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "paceline/types.h"
#include "transport/core/types.h"

namespace paceline::libfabric {

struct Address {
  static constexpr size_t kBytes = 64;
  std::array<uint8_t, kBytes> bytes{};

  static Address From(const void* bytes) {
    Address address;
    std::memcpy(address.bytes.data(), bytes, kBytes);
    return address;
  }
  // Of a receive context of the same endpoint: they listen one beside the other.
  Address OfContext(uint64_t context) const {
    Address address = *this;
    uint64_t service;
    std::memcpy(&service, address.bytes.data(), sizeof(service));
    service += context;
    std::memcpy(address.bytes.data(), &service, sizeof(service));
    return address;
  }
  friend bool operator==(const Address&, const Address&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Address& address) {
    return H::combine(std::move(h), address.bytes);
  }
};

// Of listeners of one and the same context: nothing but their numbers differs.
inline bool AreOfOneContext(const Address& a, const Address& b) {
  return std::equal(a.bytes.begin() + sizeof(uint64_t), a.bytes.end(), b.bytes.begin() + sizeof(uint64_t));
}

Address ToAddress(const api::Handle& handle);
Address ToAddress(const ListenAddress& listen);
// The number of its listener.
inline uint64_t ServiceOf(const Address& address) {
  uint64_t service;
  std::memcpy(&service, address.bytes.data(), sizeof(service));
  return service;
}
// Whatever the bytes, a handle; a damaged one leads nowhere.
api::Handle ToHandle(const Address& address);
ListenAddress ToListenAddress(const Address& address);
// As fi_getname.
int GiveName(const Address& address, void* to, size_t* size);
// "fi_paceline://" and the bytes in hexadecimal digits, without zeros at the end.
std::string ToText(const Address& address);

}  // namespace paceline::libfabric
