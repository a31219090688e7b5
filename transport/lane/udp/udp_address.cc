#include "transport/lane/udp/udp_address.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <charconv>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

constexpr uint8_t kFamilyV4 = 4;
constexpr uint8_t kFamilyV6 = 6;
constexpr size_t kSizeV4 = 1 + 2 + 4;
constexpr size_t kSizeV6 = 1 + 2 + 16 + 4;
static_assert(kSizeV6 <= LaneAddress::kMaxBytes);

absl::Status Malformed(std::string_view text, const char* why) {
  return absl::InvalidArgumentError(
      absl::StrCat("UDP address \"", std::string(text), "\": ", why, "; write 192.0.2.1:4791 or [fd00::2]:4791"));
}

template <typename Number>
bool ParseWhole(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

absl::StatusOr<LaneAddress> ParseLaneAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(text, "the port is missing");
  std::string_view host = text.substr(0, colon);
  uint16_t port = 0;
  if (!ParseWhole(text.substr(colon + 1), port)) return Malformed(text, "the port is not a number in [0, 65535]");

  SocketAddress address;
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (!bracketed) {
    if (host.find(':') != std::string_view::npos) return Malformed(text, "an IPv6 address stands in brackets");
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(port);
    address.size = sizeof(sockaddr_in);
    if (inet_pton(AF_INET, std::string(host).c_str(), &address.v4.sin_addr) != 1) {
      return Malformed(text, "not an IPv4 address (host names are not looked up)");
    }
    return FromSocketAddress(address, true);
  }
  host = host.substr(1, host.size() - 2);
  address.v6.sin6_family = AF_INET6;
  address.v6.sin6_port = htons(port);
  address.size = sizeof(sockaddr_in6);
  if (const size_t percent = host.find('%'); percent != std::string_view::npos) {
    const std::string scope(host.substr(percent + 1));
    host = host.substr(0, percent);
    uint32_t index = 0;
    if (!ParseWhole(scope, index)) index = if_nametoindex(scope.c_str());
    if (index == 0) return Malformed(text, "the part after % names no interface of this machine");
    address.v6.sin6_scope_id = index;
  }
  if (inet_pton(AF_INET6, std::string(host).c_str(), &address.v6.sin6_addr) != 1) {
    return Malformed(text, "not an IPv6 address");
  }
  return FromSocketAddress(address, true);
}

std::string FormatLaneAddress(const LaneAddress& address) {
  SocketAddress socket_address;
  if (!ToSocketAddress(address, socket_address)) return "invalid UDP address";
  char host[INET6_ADDRSTRLEN] = {};
  if (socket_address.family() == AF_INET) {
    inet_ntop(AF_INET, &socket_address.v4.sin_addr, host, sizeof(host));
    return absl::StrCat(host, ":", ntohs(socket_address.v4.sin_port));
  }
  inet_ntop(AF_INET6, &socket_address.v6.sin6_addr, host, sizeof(host));
  const uint32_t scope = socket_address.v6.sin6_scope_id;
  const std::string suffix = scope == 0 ? std::string() : absl::StrCat("%", scope);
  return absl::StrCat("[", host, suffix, "]:", ntohs(socket_address.v6.sin6_port));
}

bool ToSocketAddress(const LaneAddress& address, SocketAddress& out) {
  const uint8_t* bytes = address.bytes.data();
  if (address.size == kSizeV4 && bytes[0] == kFamilyV4) {
    out.v4 = sockaddr_in{};
    out.v4.sin_family = AF_INET;
    std::memcpy(&out.v4.sin_port, bytes + 1, 2);
    std::memcpy(&out.v4.sin_addr, bytes + 3, 4);
    out.size = sizeof(sockaddr_in);
    return true;
  }
  if (address.size == kSizeV6 && bytes[0] == kFamilyV6) {
    out.v6 = sockaddr_in6{};
    out.v6.sin6_family = AF_INET6;
    std::memcpy(&out.v6.sin6_port, bytes + 1, 2);
    std::memcpy(&out.v6.sin6_addr, bytes + 3, 16);
    uint32_t scope = 0;
    std::memcpy(&scope, bytes + 19, 4);
    out.v6.sin6_scope_id = ntohl(scope);
    out.size = sizeof(sockaddr_in6);
    return true;
  }
  return false;
}

LaneAddress FromSocketAddress(const SocketAddress& source, bool keep_scope) {
  LaneAddress address;
  uint8_t* bytes = address.bytes.data();
  if (source.family() == AF_INET) {
    address.size = kSizeV4;
    bytes[0] = kFamilyV4;
    std::memcpy(bytes + 1, &source.v4.sin_port, 2);
    std::memcpy(bytes + 3, &source.v4.sin_addr, 4);
  } else {
    address.size = kSizeV6;
    bytes[0] = kFamilyV6;
    std::memcpy(bytes + 1, &source.v6.sin6_port, 2);
    std::memcpy(bytes + 3, &source.v6.sin6_addr, 16);
    const uint32_t scope = keep_scope ? htonl(source.v6.sin6_scope_id) : 0;
    std::memcpy(bytes + 19, &scope, 4);
  }
  return address;
}

LaneAddress ToLaneAddress(IpVersion version, const IpAddress& address, uint16_t port) {
  SocketAddress socket_address;
  if (version == IpVersion::kV4) {
    socket_address.v4 = sockaddr_in{};
    socket_address.v4.sin_family = AF_INET;
    socket_address.v4.sin_port = htons(port);
    std::memcpy(&socket_address.v4.sin_addr, address.data(), 4);
  } else {
    socket_address.v6.sin6_family = AF_INET6;
    socket_address.v6.sin6_port = htons(port);
    std::memcpy(&socket_address.v6.sin6_addr, address.data(), 16);
  }
  return FromSocketAddress(socket_address, false);
}

bool IsLinkLocal(const SocketAddress& address) {
  return address.family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address.v6.sin6_addr);
}

}  // namespace paceline
