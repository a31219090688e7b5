#include "transport/lane/udp/udp_mtu.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

constexpr uint32_t kIpv4Header = 20, kIpv6Header = 40, kUdpHeader = 8;
constexpr uint32_t kMinMtuV4 = 576;   // RFC 791
constexpr uint32_t kMinMtuV6 = 1280;  // RFC 8200

}  // namespace

uint32_t UdpOverhead(const SocketAddress& address) {
  return (address.family() == AF_INET ? kIpv4Header : kIpv6Header) + kUdpHeader;
}

absl::StatusOr<uint32_t> ChooseMtu(const UdpBindPoint& point, uint32_t wanted, uint32_t usual, uint32_t most) {
  if (wanted == 0) return usual;
  const uint32_t least = point.address.family() == AF_INET ? kMinMtuV4 : kMinMtuV6;
  if (wanted >= least && wanted <= most) return wanted;
  return absl::InvalidArgumentError(absl::StrCat("mtu ", wanted, " on interface ", point.interface.name, ": may be ",
                                                 least, " to ", most, ", or 0 for the largest that the lane takes"));
}

}  // namespace paceline
