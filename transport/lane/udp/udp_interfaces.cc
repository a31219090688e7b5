#include "transport/lane/udp/udp_interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/lane/udp/udp_socket.h"

namespace paceline {
namespace {

// IFLA_PARENT_DEV_NAME: the bus device behind an interface (Linux 5.14; the headers of older systems lack the name).
constexpr uint16_t kParentDeviceName = 56;

// Speed as the driver states it, in Mb/s; zero when it does not.
Rate ReadSpeed(int fd, const std::string& name) {
  ethtool_link_settings settings{};
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  // The first call tells how many mask words follow; the second needs room for them.
  std::vector<uint8_t> buffer(sizeof(settings) + 3 * 4 * 128);
  std::memcpy(buffer.data(), &settings, sizeof(settings));
  request.ifr_data = reinterpret_cast<char*>(buffer.data());
  if (ioctl(fd, SIOCETHTOOL, &request) != 0) return Rate();
  std::memcpy(&settings, buffer.data(), sizeof(settings));
  if (settings.link_mode_masks_nwords >= 0) return Rate();
  const int8_t words = static_cast<int8_t>(-settings.link_mode_masks_nwords);
  settings = ethtool_link_settings{};
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  settings.link_mode_masks_nwords = words;
  std::memcpy(buffer.data(), &settings, sizeof(settings));
  if (ioctl(fd, SIOCETHTOOL, &request) != 0) return Rate();
  std::memcpy(&settings, buffer.data(), sizeof(settings));
  if (settings.speed == 0 || settings.speed == static_cast<uint32_t>(SPEED_UNKNOWN)) return Rate();
  return Rate::BitsPerSecond(static_cast<double>(settings.speed) * 1e6);
}

UdpInterface ParseLink(const nlmsghdr* message) {
  const auto* link = static_cast<const ifinfomsg*>(NLMSG_DATA(message));
  UdpInterface interface;
  interface.index = static_cast<uint32_t>(link->ifi_index);
  interface.loopback = (link->ifi_flags & IFF_LOOPBACK) != 0;
  interface.up = (link->ifi_flags & IFF_UP) != 0 && (link->ifi_flags & IFF_RUNNING) != 0;
  interface.is_virtual = true;
  int left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof(*link)));
  for (const auto* attribute = IFLA_RTA(link); RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == IFLA_IFNAME) {
      interface.name = static_cast<const char*>(RTA_DATA(attribute));
    } else if (attribute->rta_type == IFLA_MTU) {
      std::memcpy(&interface.mtu, RTA_DATA(attribute), sizeof(interface.mtu));
    } else if (attribute->rta_type == IFLA_ADDRESS) {
      const auto* bytes = static_cast<const uint8_t*>(RTA_DATA(attribute));
      for (size_t i = 0; i < std::min<size_t>(RTA_PAYLOAD(attribute), sizeof(uint64_t)); ++i) {
        interface.hardware_address = interface.hardware_address << 8 | bytes[i];
      }
    } else if (attribute->rta_type == kParentDeviceName) {
      interface.is_virtual = false;
    }
  }
  return interface;
}

absl::StatusOr<std::vector<UdpInterface>> DumpLinks() {
  FileDescriptor netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink.valid()) return absl::ErrnoToStatus(errno, "cannot open a netlink socket to list interfaces");
  struct {
    nlmsghdr header;
    ifinfomsg link;
  } request{};
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof(ifinfomsg));
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.link.ifi_family = AF_UNSPEC;
  if (send(netlink.get(), &request, request.header.nlmsg_len, 0) < 0) {
    return absl::ErrnoToStatus(errno, "cannot ask the kernel for its interfaces");
  }
  std::vector<UdpInterface> interfaces;
  std::vector<uint32_t> buffer(16 * 1024);
  for (;;) {
    const ssize_t bytes = recv(netlink.get(), buffer.data(), buffer.size() * sizeof(buffer[0]), 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return absl::ErrnoToStatus(errno, "cannot read the kernel's list of interfaces");
    auto left = static_cast<unsigned>(bytes);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) return interfaces;
      if (message->nlmsg_type == NLMSG_ERROR) return absl::InternalError("the kernel refused to list its interfaces");
      if (message->nlmsg_type == RTM_NEWLINK) interfaces.push_back(ParseLink(message));
    }
  }
}

uint32_t PrefixBits(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  uint32_t bits = 0;
  if (mask->sa_family == AF_INET) {
    bits = static_cast<uint32_t>(std::popcount(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr));
  } else {
    for (const uint8_t byte : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
      bits += static_cast<uint32_t>(std::popcount(byte));
    }
  }
  return bits;
}

// IPv4, then global IPv6, then link-local.
int AddressRank(const SocketAddress& address) {
  if (address.family() == AF_INET) return 0;
  return IsLinkLocal(address) ? 2 : 1;
}

std::string FormatWithoutPort(const SocketAddress& address) {
  std::string text = FormatLaneAddress(FromSocketAddress(address, false));
  return text.substr(0, text.rfind(':'));
}

std::string DescribeInterfaces(const std::vector<UdpInterface>& interfaces) {
  std::vector<std::string> parts;
  for (const UdpInterface& interface : interfaces) {
    std::vector<std::string> addresses;
    for (const SocketAddress& address : interface.addresses) addresses.push_back(FormatWithoutPort(address));
    if (addresses.empty()) continue;
    parts.push_back(absl::StrCat(interface.name, " (", absl::StrJoin(addresses, ", "), ")"));
  }
  return parts.empty() ? std::string("no interface here has an address")
                       : absl::StrCat("usable here: ", absl::StrJoin(parts, ", "));
}

bool IsUnspecified(const SocketAddress& address) {
  return address.family() == AF_INET ? address.v4.sin_addr.s_addr == 0 : IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr);
}

void SetPort(SocketAddress& address, uint16_t port) {
  (address.family() == AF_INET ? address.v4.sin_port : address.v6.sin6_port) = htons(port);
}

}  // namespace

bool Carries(const UdpInterface& interface, const SocketAddress& wanted) {
  for (size_t i = 0; i < interface.addresses.size(); ++i) {
    const SocketAddress& own = interface.addresses[i];
    if (own.family() != wanted.family()) continue;
    if (wanted.family() == AF_INET) {
      // All of a loopback prefix (127.0.0.0/8) is ours.
      const uint32_t bits = interface.loopback ? interface.prefix_bits[i] : 32;
      const uint32_t mask = bits == 0 ? 0 : ~uint32_t{0} << (32 - bits);
      if (((ntohl(own.v4.sin_addr.s_addr) ^ ntohl(wanted.v4.sin_addr.s_addr)) & mask) == 0) return true;
    } else if (std::memcmp(&own.v6.sin6_addr, &wanted.v6.sin6_addr, sizeof(in6_addr)) == 0) {
      const uint32_t scope = wanted.v6.sin6_scope_id;
      if (!IsLinkLocal(wanted) || scope == 0 || scope == interface.index) return true;
    }
  }
  return false;
}

absl::StatusOr<std::vector<UdpInterface>> ListUdpInterfaces() {
  absl::StatusOr<std::vector<UdpInterface>> interfaces = DumpLinks();
  if (!interfaces.ok()) return interfaces;
  FileDescriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (UdpInterface& interface : *interfaces) {
    if (!interface.is_virtual && fd.valid()) interface.speed = ReadSpeed(fd.get(), interface.name);
  }

  ifaddrs* head = nullptr;
  if (getifaddrs(&head) != 0) return absl::ErrnoToStatus(errno, "cannot list the addresses of interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(head, &freeifaddrs);
  for (const int rank : {0, 1, 2}) {
    for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr) continue;
      const int family = entry->ifa_addr->sa_family;
      if (family != AF_INET && family != AF_INET6) continue;
      SocketAddress address;
      address.size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      std::memcpy(&address.generic, entry->ifa_addr, address.size);
      if (AddressRank(address) != rank) continue;
      const uint32_t index = if_nametoindex(entry->ifa_name);
      const auto interface = std::find_if(interfaces->begin(), interfaces->end(),
                                          [&](const UdpInterface& each) { return each.index == index; });
      if (interface == interfaces->end()) continue;  // appeared between the two questions
      interface->addresses.push_back(address);
      interface->prefix_bits.push_back(PrefixBits(entry->ifa_netmask));
    }
  }
  return interfaces;
}

absl::StatusOr<UdpBindPoint> ResolveBindAddress(const std::string& text) {
  absl::StatusOr<std::vector<UdpInterface>> interfaces = ListUdpInterfaces();
  if (!interfaces.ok()) return interfaces.status();
  const std::string quoted = absl::StrCat("UDP lane address \"", text, "\"");
  const std::string forms = "write 192.0.2.1:4791, [fd00::2]:4791, eth0 or eth0:4791 (port 0 or none: any free one)";
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(quoted, " is empty; ", forms, "; ", DescribeInterfaces(*interfaces)));
  }

  // An interface's name, with or without a port.
  std::string name = text;
  uint16_t port = 0;
  if (const size_t colon = text.rfind(':'); colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error == std::errc() && rest == end) name = text.substr(0, colon);
  }
  for (UdpInterface& interface : *interfaces) {
    if (interface.name != name) continue;
    if (interface.addresses.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(quoted, ": interface ", name, interface.up ? "" : " is down and",
                       " has no IPv4 or IPv6 address; ", DescribeInterfaces(*interfaces)));
    }
    UdpBindPoint point{interface, interface.addresses.front()};
    SetPort(point.address, port);
    return point;
  }

  const absl::StatusOr<LaneAddress> parsed = ParseLaneAddress(text);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(quoted, " is neither an address nor an interface of this machine; ",
                                                   forms, "; ", DescribeInterfaces(*interfaces)));
  }
  SocketAddress address;
  ToSocketAddress(*parsed, address);
  if (IsUnspecified(address)) {
    return absl::InvalidArgumentError(absl::StrCat(
        quoted, ": a lane is one port and needs one address that peers can reach; ", DescribeInterfaces(*interfaces)));
  }
  for (UdpInterface& interface : *interfaces) {
    if (!Carries(interface, address)) continue;
    if (IsLinkLocal(address)) address.v6.sin6_scope_id = interface.index;
    return UdpBindPoint{interface, address};
  }
  return absl::NotFoundError(
      absl::StrCat(quoted, ": no interface of this machine has this address; ", DescribeInterfaces(*interfaces)));
}

}  // namespace paceline
