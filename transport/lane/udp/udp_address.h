// UDP addresses: text, LaneAddress and sockaddr, and the ways between them.
//
// A UDP LaneAddress holds, byte by byte: family (4 or 6), port (2 bytes, network order), address (4 or 16 bytes,
// network order) and for IPv6 the scope (4 bytes, big-endian): 7 or 23 bytes in all. Equal endpoints have equal bytes.
// A scope says which interface of *this* machine a link-local address (fe80::/10) belongs to and means nothing to a
// peer; a lane therefore hands out its own address with scope 0 and supplies its own interface when it sends.
//
// Thread rule: pure functions, free to call from anywhere.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "transport/lane/ip_address.h"
#include "transport/lane/lane.h"

namespace paceline {

// A socket address of either family, with the length that the kernel wants.
struct SocketAddress {
  union {
    sockaddr generic;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t size = 0;

  SocketAddress() : v6{} {}
  int family() const { return generic.sa_family; }
};

// "192.0.2.1:4791", "[fd00::2]:4791", "[fe80::1%eth0]:4791" or "[fe80::1%3]:4791". Host names are not looked up.
absl::StatusOr<LaneAddress> ParseLaneAddress(std::string_view text);

// The text that ParseLaneAddress takes back; "invalid UDP address" when `address` is not one of UDP.
std::string FormatLaneAddress(const LaneAddress& address);

// False when `address` is not a UDP address (another kind of lane's, or damaged).
bool ToSocketAddress(const LaneAddress& address, SocketAddress& out);

// `source` must be AF_INET or AF_INET6. The scope is left out (0) when `keep_scope` is false.
LaneAddress FromSocketAddress(const SocketAddress& source, bool keep_scope);

// Without a scope; `port` in the order of this machine.
LaneAddress ToLaneAddress(IpVersion version, const IpAddress& address, uint16_t port);

// True for fe80::/10: addresses that mean something on one interface only.
bool IsLinkLocal(const SocketAddress& address);

}  // namespace paceline
