#include "api/libfabric/src/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>

#include "absl/strings/str_split.h"
#include "api/libfabric/src/parameters.h"

namespace paceline::libfabric {
namespace {

struct Found {
  std::string name;
  bool loopback = false;
  sockaddr_storage address{};
  sockaddr_storage mask{};
};

socklen_t SizeOf(const sockaddr* address) {
  return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::vector<Found> FindAll() {
  std::vector<Found> result;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return result;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    if (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6) continue;
    Found found{.name = at->ifa_name, .loopback = (at->ifa_flags & IFF_LOOPBACK) != 0};
    std::memcpy(&found.address, at->ifa_addr, SizeOf(at->ifa_addr));
    if (at->ifa_netmask != nullptr) std::memcpy(&found.mask, at->ifa_netmask, SizeOf(at->ifa_addr));
    found.mask.ss_family = found.address.ss_family;
    result.push_back(found);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Found& a, const Found& b) { return !a.loopback && b.loopback; });
  return result;
}

std::span<const uint8_t> HostOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return {reinterpret_cast<const uint8_t*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr), sizeof(in_addr)};
  }
  return {reinterpret_cast<const sockaddr_in6&>(address).sin6_addr.s6_addr, sizeof(in6_addr)};
}

bool SameHost(const sockaddr_storage& a, const sockaddr_storage& b) {
  return a.ss_family == b.ss_family && std::ranges::equal(HostOf(a), HostOf(b));
}

// Who has this address; nullptr: none.
const Found* FindAddress(const std::vector<Found>& all, const sockaddr_storage& address) {
  // All of 127.0.0.0/8 is the loopback interface's.
  const bool loops = address.ss_family == AF_INET &&
                     ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  const auto found = std::ranges::find_if(
      all, [&](const Found& one) { return SameHost(one.address, address) || (loops && one.loopback); });
  return found == all.end() ? nullptr : &*found;
}

// What PACELINE_BIND says of a port: the name of an interface, or its address.
const Found* FindPort(const std::vector<Found>& all, const std::string& port) {
  const auto named = std::ranges::find(all, port, &Found::name);
  if (named != all.end()) return &*named;
  const auto addresses = LookUp(port.c_str(), nullptr, true);
  return addresses.empty() ? nullptr : FindAddress(all, addresses.front());
}

// "192.0.2.0/24"
std::string NetworkOf(const Found& found) {
  const std::span<const uint8_t> host = HostOf(found.address), mask = HostOf(found.mask);
  std::array<uint8_t, sizeof(in6_addr)> network{};
  int bits = 0;
  for (size_t i = 0; i < host.size(); ++i) {
    network[i] = host[i] & mask[i];
    bits += std::popcount(mask[i]);
  }
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(found.address.ss_family, network.data(), text, sizeof(text));
  return std::string(text) + '/' + std::to_string(bits);
}

// Of all these ports; empty where one is not of the kernel's.
std::string NetworksOf(const std::vector<Found>& all, const std::vector<std::string>& ports) {
  std::string networks;
  for (const std::string& port : ports) {
    const Found* found = FindPort(all, port);
    if (found == nullptr) return "";
    networks += (networks.empty() ? "" : ",") + NetworkOf(*found);
  }
  return networks;
}

}  // namespace

std::vector<Interface> ListInterfaces() {
  if (const char* bind = Setting("PACELINE_BIND"); bind != nullptr && *bind != '\0') {
    const std::vector<std::string> ports = absl::StrSplit(bind, ',', absl::SkipWhitespace());
    return {{.name = bind, .bind = ports, .networks = NetworksOf(FindAll(), ports)}};
  }
  std::vector<Interface> result;
  for (const Found& found : FindAll()) {
    const bool known =
        std::any_of(result.begin(), result.end(), [&](const Interface& other) { return other.name == found.name; });
    if (!known) result.push_back({.name = found.name, .bind = {found.name}, .networks = NetworkOf(found)});
  }
  return result;
}

std::vector<sockaddr_storage> LookUp(const char* node, const char* service, bool numeric) {
  addrinfo* list = nullptr;
  const addrinfo hints{.ai_flags = numeric ? AI_NUMERICHOST : 0, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
  std::vector<sockaddr_storage> result;
  if (getaddrinfo(node, service, &hints, &list) != 0) return result;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    std::memcpy(&result.emplace_back(), at->ai_addr, at->ai_addrlen);
  }
  return result;
}

std::string InterfaceWith(const sockaddr_storage& address) {
  const std::vector<Found> all = FindAll();
  const Found* found = FindAddress(all, address);
  return found == nullptr ? "" : found->name;
}

std::optional<sockaddr_storage> RouteTo(const sockaddr_storage& target) {
  const int fd = socket(target.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_storage to = target, local{};
  if (PortOf(to) == 0) SetPort(to, 9);  // any: nothing is sent
  const auto* address = reinterpret_cast<const sockaddr*>(&to);
  socklen_t size = sizeof(local);
  const bool known =
      connect(fd, address, SizeOf(address)) == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) == 0;
  close(fd);
  if (!known) return std::nullopt;
  SetPort(local, 0);
  return local;
}

std::optional<sockaddr_storage> AddressOf(const Interface& interface) {
  if (interface.bind.empty()) return std::nullopt;
  for (const Found& found : FindAll()) {
    if (found.name == interface.bind.front()) return found.address;
  }
  const auto addresses = LookUp(interface.bind.front().c_str(), nullptr, true);
  return addresses.empty() ? std::nullopt : std::optional(addresses.front());
}

uint16_t PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

void SetPort(sockaddr_storage& address, uint16_t port) {
  (address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                : reinterpret_cast<sockaddr_in6&>(address).sin6_port) = htons(port);
}

std::string TextOf(const sockaddr_storage& address) {
  char host[NI_MAXHOST] = {};
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  if (getnameinfo(any, SizeOf(any), host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  const std::string port = std::to_string(PortOf(address));
  return address.ss_family == AF_INET ? host + (":" + port) : "[" + std::string(host) + "]:" + port;
}

}  // namespace paceline::libfabric
