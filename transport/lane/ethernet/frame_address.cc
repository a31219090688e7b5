#include "transport/lane/ethernet/frame_address.h"

#include <arpa/inet.h>

#include <cstring>

#include "transport/lane/udp/udp_address.h"

namespace paceline {

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

}  // namespace paceline
