#include "api/libfabric/src/names.h"

#include <netinet/in.h>

#include <cstring>

#include "api/cpp/src/handle.h"
#include "api/libfabric/src/parameters.h"
#include "transport/engine/lane_factory.h"

namespace paceline::libfabric {
namespace {

constexpr uint16_t kDefaultPort = 5043;
constexpr uint64_t kNamedService = 0x5041434c00000000;  // a listener's number, with the port in the low 16 bits

bool IsNamed(uint64_t service) { return (service & ~uint64_t{0xffff}) == kNamedService; }
uint64_t ServiceOfPort(uint16_t port) { return kNamedService | port; }

std::optional<Address> AddressOfText(const std::string& text, uint16_t port) {
  const auto lane = ParsePeerAddress("udp", text);
  if (!lane.ok()) return std::nullopt;
  ListenAddress listen = {.nonce = ServiceOfPort(port), .ports = 1};
  listen.addresses[0] = *lane;
  return ToAddress(listen);
}

bool HasUdp() {
  const char* lane = Setting("PACELINE_LANE");
  return lane == nullptr || *lane == '\0' || std::strcmp(lane, "udp") == 0 || std::strcmp(lane, "auto") == 0;
}

// A hint's address of ours, or a socket address.
std::optional<sockaddr_storage> SocketAddressOf(const void* bytes, size_t size) {
  sockaddr_storage address{};
  if (bytes == nullptr || size < sizeof(sockaddr_in) || size > sizeof(address)) return std::nullopt;
  std::memcpy(&address, bytes, size);
  if (address.ss_family == AF_INET && size == sizeof(sockaddr_in)) return address;
  if (address.ss_family == AF_INET6 && size == sizeof(sockaddr_in6)) return address;
  return std::nullopt;
}

bool IsAny(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// Takes this as the own address.
bool TakeSource(const sockaddr_storage& address, Named& named) {
  if (PortOf(address) != 0) named.port = PortOf(address);
  if (IsAny(address)) return true;
  named.interface = InterfaceWith(address);
  named.own = address;
  return !named.interface.empty();
}

}  // namespace

std::optional<Address> PeerAddress(const char* node, const char* service, bool numeric) {
  const auto found = LookUp(node, service, numeric);
  if (found.empty()) return std::nullopt;
  sockaddr_storage address = found.front();
  if (PortOf(address) == 0) SetPort(address, kDefaultPort);
  return AddressOfText(TextOf(address), PortOf(address));
}

std::optional<Named> Resolve(const char* node, const char* service, uint64_t flags, const fi_info* hints) {
  Named named;
  const bool numeric = (flags & FI_NUMERICHOST) != 0;
  const bool source = (flags & FI_SOURCE) != 0;
  if (hints != nullptr && hints->src_addrlen != Address::kBytes) {
    if (const auto own = SocketAddressOf(hints->src_addr, hints->src_addrlen); own && !TakeSource(*own, named)) {
      return std::nullopt;
    }
  }
  if (node == nullptr && service == nullptr) return named;
  const auto found = LookUp(node, service, numeric);
  if (found.empty()) return std::nullopt;
  if (source) {
    if (node == nullptr) {
      named.port = PortOf(found.front());
      return named;
    }
    for (const sockaddr_storage& address : found) {
      if (TakeSource(address, named)) return named;
    }
    return std::nullopt;
  }
  if (HasUdp()) named.peer = PeerAddress(node, service, numeric);
  if (!named.interface.empty()) return named;
  for (const sockaddr_storage& address : found) {
    if (const auto local = RouteTo(address); local.has_value() && TakeSource(*local, named)) return named;
  }
  return std::nullopt;
}

std::optional<Address> ListeningAddress(const Interface& interface, const Named& named) {
  if (!HasUdp()) return std::nullopt;
  auto address = named.own.has_value() ? named.own : AddressOf(interface);
  if (!address.has_value()) return std::nullopt;
  SetPort(*address, named.port.value_or(0));
  return AddressOfText(TextOf(*address), PortOf(*address));
}

uint64_t NamedService(const Address& address) {
  const uint64_t service = ServiceOf(address);
  return IsNamed(service) && (service & 0xffff) != 0 ? service : 0;
}

Address NameOf(const api::Handle& listener) {
  const auto listen = api::DecodeHandle(listener);
  if (!listen.ok() || !IsNamed(listen->nonce)) return ToAddress(listener);
  ListenAddress network = {.nonce = listen->nonce};
  for (uint8_t port = 0; port < listen->ports; ++port) {
    if (!IsOfThisHost(listen->addresses[port])) network.addresses[network.ports++] = listen->addresses[port];
  }
  return ToAddress(network);
}

std::vector<std::string> BindTo(const Address& address, const std::vector<std::string>& bind) {
  if (NamedService(address) == 0 || bind.size() != 1) return bind;
  const auto lane = ToListenAddress(address);
  if (lane.ports == 0) return bind;
  return {FormatPeerAddress("udp", lane.addresses[0])};
}

}  // namespace paceline::libfabric
