#include "transport/lane/udp/udp_link_monitor.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "transport/lane/udp/udp_interfaces.h"

namespace paceline {
namespace {

bool IsUp(unsigned flags) { return (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0; }

}  // namespace

absl::StatusOr<std::unique_ptr<UdpLinkMonitor>> UdpLinkMonitor::Create(uint32_t interface_index,
                                                                       const SocketAddress& address, bool moves) {
  FileDescriptor netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink.valid()) return absl::ErrnoToStatus(errno, "cannot open a netlink socket to watch the link");
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  own.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (bind(netlink.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) {
    return absl::ErrnoToStatus(errno, "cannot subscribe to link changes");
  }
  std::unique_ptr<UdpLinkMonitor> monitor(new UdpLinkMonitor(std::move(netlink), interface_index, address, moves));
  monitor->AskLinkState();
  monitor->status_ = {monitor->link_up_, 0};
  return monitor;
}

UdpLinkMonitor::UdpLinkMonitor(FileDescriptor netlink, uint32_t interface_index, const SocketAddress& address,
                               bool moves)
    : netlink_(std::move(netlink)), interface_index_(interface_index), address_(address), moves_(moves) {}

void UdpLinkMonitor::AskLinkState() {
  ifreq request{};
  const FileDescriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  link_up_ = fd.valid() && if_indextoname(interface_index_, request.ifr_name) != nullptr &&
             ioctl(fd.get(), SIOCGIFFLAGS, &request) == 0 && IsUp(static_cast<uint16_t>(request.ifr_flags));
}

void UdpLinkMonitor::AskAddress() {
  const auto interfaces = ListUdpInterfaces();
  if (!interfaces.ok()) return;  // as it was
  auto ours = std::find_if(interfaces->begin(), interfaces->end(),
                           [this](const UdpInterface& interface) { return interface.index == interface_index_; });
  if (ours == interfaces->end() && moves_) {
    ours = std::find_if(interfaces->begin(), interfaces->end(),
                        [this](const UdpInterface& interface) { return Carries(interface, address_); });
    if (ours != interfaces->end()) interface_index_ = ours->index;
  }
  has_address_ = ours != interfaces->end() && Carries(*ours, address_);
}

void UdpLinkMonitor::Ask() {
  AskAddress();  // first: it finds the interface
  AskLinkState();
}

void UdpLinkMonitor::Update() {
  const bool up = link_up_ && has_address_;
  if (up == status_.up) return;
  status_.up = up;
  ++status_.change_count;
}

void UdpLinkMonitor::HandleAddressMessage(const nlmsghdr* message) {
  const auto* info = static_cast<const ifaddrmsg*>(NLMSG_DATA(message));
  const bool here = info->ifa_index == interface_index_;
  if ((!here && !moves_) || info->ifa_family != address_.family()) return;
  // IFA_LOCAL is the interface's own address, IFA_ADDRESS the far end of a point-to-point link; or, for IPv6 without a
  // far end, the only one that is named.
  const rtattr* named = nullptr;
  int left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof(*info)));
  for (const auto* attribute = IFA_RTA(info); RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == IFA_LOCAL || (attribute->rta_type == IFA_ADDRESS && named == nullptr)) named = attribute;
  }
  const bool v4 = address_.family() == AF_INET;
  const void* own = v4 ? static_cast<const void*>(&address_.v4.sin_addr) : &address_.v6.sin6_addr;
  const size_t size = v4 ? sizeof(in_addr) : sizeof(in6_addr);
  if (named == nullptr || RTA_PAYLOAD(named) < size || std::memcmp(RTA_DATA(named), own, size) != 0) return;
  // A tentative IPv6 address is not ours until the kernel found nobody else using it.
  const bool gained = message->nlmsg_type == RTM_NEWADDR && (info->ifa_flags & IFA_F_TENTATIVE) == 0;
  if (gained && !here) return Ask();  // ours may be gone, and this be it, made anew
  if (here && gained) has_address_ = true;
  if (here && message->nlmsg_type == RTM_DELADDR) {
    has_address_ = false;
    ask_ |= v4;  // it may be there with another prefix, as no IPv6 address is
  }
}

void UdpLinkMonitor::HandleMessage(const nlmsghdr* message) {
  if (message->nlmsg_type == RTM_NEWADDR || message->nlmsg_type == RTM_DELADDR) return HandleAddressMessage(message);
  if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK) return;
  const auto* link = static_cast<const ifinfomsg*>(NLMSG_DATA(message));
  // A bridge speaks of its ports with RTM_DELLINK of its own family: that is not the end of the interface.
  if (link->ifi_index != static_cast<int>(interface_index_) || link->ifi_family != AF_UNSPEC) return;
  link_up_ = message->nlmsg_type == RTM_NEWLINK && IsUp(link->ifi_flags);
  ask_ |= message->nlmsg_type == RTM_DELLINK;  // another interface may have had the address before
}

void UdpLinkMonitor::Poll() {
  std::array<uint32_t, 4096> buffer;
  for (;;) {
    const ssize_t bytes = recv(netlink_.get(), buffer.data(), sizeof(buffer), MSG_DONTWAIT);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == ENOBUFS) {  // what is still to be read is older than what was lost
      ask_ = true;
      continue;
    }
    if (bytes <= 0) {
      if (!std::exchange(ask_, false)) return;
      Ask();
      return Update();
    }
    auto left = static_cast<unsigned>(bytes);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      HandleMessage(message);
      Update();  // each by itself: down and up again between two looks is two changes
    }
  }
}

}  // namespace paceline
