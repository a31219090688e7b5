#include "api/libfabric/src/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/str_split.h"

namespace paceline::libfabric {
namespace {

struct Found {
  std::string name;
  bool loopback = false;
  sockaddr_storage address{};
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
    result.push_back(found);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Found& a, const Found& b) { return !a.loopback && b.loopback; });
  return result;
}

bool SameHost(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace

std::vector<Interface> ListInterfaces() {
  if (const char* bind = std::getenv("PACELINE_BIND"); bind != nullptr && *bind != '\0') {
    return {{.name = bind, .bind = absl::StrSplit(bind, ',', absl::SkipWhitespace())}};
  }
  std::vector<Interface> result;
  for (const Found& found : FindAll()) {
    const bool known =
        std::any_of(result.begin(), result.end(), [&](const Interface& other) { return other.name == found.name; });
    if (!known) result.push_back({.name = found.name, .bind = {found.name}});
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
  // All of 127.0.0.0/8 is the loopback interface's.
  const bool loops = address.ss_family == AF_INET &&
                     ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  for (const Found& found : FindAll()) {
    if (SameHost(found.address, address) || (loops && found.loopback)) return found.name;
  }
  return "";
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
