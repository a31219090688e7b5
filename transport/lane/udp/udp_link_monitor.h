// Watches the interface and the address that a UDP lane stands on: carrier lost, interface gone, address taken away.
//
// The kernel tells by rtnetlink (RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR) within milliseconds; a UDP socket
// tells nothing of the kind. Only this end is seen: that the peer's end or a switch is dead shows as silence alone.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "transport/lane/lane.h"
#include "transport/lane/udp/udp_address.h"
#include "transport/lane/udp/udp_socket.h"

struct nlmsghdr;

namespace paceline {

class UdpLinkMonitor {
 public:
  // Watches from now on, and then looks whether the interface is up. `address` is the one to watch on it. `moves`: when
  // the interface is gone, another that has the address takes its place, as the same one made anew is. Not for sockets
  // that are bound to the interface: they stay with the dead one.
  static absl::StatusOr<std::unique_ptr<UdpLinkMonitor>> Create(uint32_t interface_index, const SocketAddress& address,
                                                                bool moves);

  // Reads what the kernel had to say, without waiting. One system call when that is nothing.
  void Poll();

  const LaneStatus& status() const { return status_; }
  // Readable when Poll has something to read.
  int descriptor() const { return netlink_.get(); }

 private:
  UdpLinkMonitor(FileDescriptor netlink, uint32_t interface_index, const SocketAddress& address, bool moves);

  void HandleMessage(const nlmsghdr* message);
  void HandleAddressMessage(const nlmsghdr* message);
  // Asks for the state of the interface.
  void AskLinkState();
  // Whether the address is still there, and where.
  void AskAddress();
  // For both: when messages were lost, when another interface got the address, and when this one lost it or has gone.
  void Ask();
  void Update();

  FileDescriptor netlink_;
  uint32_t interface_index_;
  SocketAddress address_;
  bool moves_;
  bool link_up_ = true;
  bool has_address_ = true;
  bool ask_ = false;  // once all messages have been read: they do not tell all
  LaneStatus status_;
};

}  // namespace paceline
