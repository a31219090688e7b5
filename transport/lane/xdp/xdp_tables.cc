#include "transport/lane/xdp/xdp_tables.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "transport/lane/file_descriptor.h"

namespace paceline {
namespace {

// A neighbour that frames may be sent to; all but PERMANENT and NOARP are on their way to or from REACHABLE.
constexpr uint16_t kValidStates = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;

size_t AddressBytes(IpVersion version) { return version == IpVersion::kV4 ? 4 : 16; }
uint8_t Family(IpVersion version) { return version == IpVersion::kV4 ? AF_INET : AF_INET6; }

std::span<const uint8_t> AddressOf(const SocketAddress& address) {
  if (address.family() == AF_INET) return {reinterpret_cast<const uint8_t*>(&address.v4.sin_addr), 4};
  return {reinterpret_cast<const uint8_t*>(&address.v6.sin6_addr), 16};
}

// A message with a fixed part of kind Body and attributes behind it.
template <typename Body>
class Request {
 public:
  Request(uint16_t type, uint16_t flags) {
    message_.header.nlmsg_type = type;
    message_.header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    message_.header.nlmsg_len = NLMSG_LENGTH(sizeof(Body));
  }
  Body& body() { return message_.body; }
  nlmsghdr& header() { return message_.header; }

  void Add(uint16_t type, std::span<const uint8_t> value) {
    const size_t at = NLMSG_ALIGN(message_.header.nlmsg_len);
    const rtattr attribute{.rta_len = static_cast<uint16_t>(RTA_LENGTH(value.size())), .rta_type = type};
    uint8_t* out = reinterpret_cast<uint8_t*>(&message_) + at;
    std::memcpy(out, &attribute, sizeof(attribute));
    std::memcpy(out + RTA_LENGTH(0), value.data(), value.size());
    message_.header.nlmsg_len = static_cast<uint32_t>(at + RTA_ALIGN(attribute.rta_len));
  }
  void Add(uint16_t type, uint32_t value) { Add(type, {reinterpret_cast<const uint8_t*>(&value), sizeof(value)}); }

 private:
  struct {
    nlmsghdr header{};
    Body body{};
    std::array<uint8_t, 128> attributes{};
  } message_;
};

// Calls `take` with type and value of each attribute behind the fixed part of a message.
template <typename Body, typename Take>
void ForEachAttribute(const nlmsghdr* message, const Take& take) {
  if (message->nlmsg_len < NLMSG_LENGTH(sizeof(Body))) return;
  const auto* body = static_cast<const uint8_t*>(NLMSG_DATA(message));
  const auto* attribute = reinterpret_cast<const rtattr*>(body + NLMSG_ALIGN(sizeof(Body)));
  for (auto left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof(Body))); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    take(attribute->rta_type,
         std::span<const uint8_t>(static_cast<const uint8_t*>(RTA_DATA(attribute)), RTA_PAYLOAD(attribute)));
  }
}

bool TakeAddress(std::span<const uint8_t> value, IpVersion version, XdpHop& hop) {
  if (value.size() != AddressBytes(version)) return false;
  hop.version = version;
  hop.address = {};
  std::memcpy(hop.address.data(), value.data(), value.size());
  return true;
}

class KernelTables final : public XdpTables {
 public:
  KernelTables(FileDescriptor questions, FileDescriptor news, uint32_t interface_index, const SocketAddress& own)
      : questions_(std::move(questions)), news_(std::move(news)), interface_index_(interface_index), own_(own) {}

  std::optional<XdpHop> NextHop(const SocketAddress& to) override {
    Request<rtmsg> request(RTM_GETROUTE, 0);
    const std::span<const uint8_t> destination = AddressOf(to);
    request.body().rtm_family = static_cast<uint8_t>(to.family());
    request.body().rtm_dst_len = static_cast<uint8_t>(destination.size() * 8);
    request.body().rtm_src_len = request.body().rtm_dst_len;
    request.Add(RTA_DST, destination);
    request.Add(RTA_SRC, AddressOf(own_));
    request.Add(RTA_OIF, interface_index_);
    std::optional<XdpHop> result;
    Ask(request, [&](const nlmsghdr* answer) {
      if (answer->nlmsg_type == RTM_NEWROUTE) result = ReadRoute(answer, to);
    });
    return result;
  }

  XdpNeighbour Neighbour(const XdpHop& hop) override {
    Request<ndmsg> request(RTM_GETNEIGH, 0);
    Name(hop, request);
    XdpNeighbour result;
    Ask(request, [&](const nlmsghdr* answer) {
      XdpHop other;
      if (answer->nlmsg_type == RTM_NEWNEIGH) ReadNeighbour(answer, other, result);
    });
    return result;
  }

  void Probe(const XdpHop& hop) override {
    Request<ndmsg> request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK);
    Name(hop, request);
    request.body().ndm_flags = NTF_USE;
    Ask(request, [](const nlmsghdr*) {});
  }

  bool Poll(const News& news) override {
    for (bool complete = true;;) {
      const ssize_t bytes = recv(news_.get(), buffer_.data(), sizeof(buffer_), MSG_DONTWAIT);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0 && errno == ENOBUFS) {
        complete = false;
        continue;
      }
      if (bytes <= 0) return complete;
      auto left = static_cast<unsigned>(bytes);
      for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer_.data()); NLMSG_OK(message, left);
           message = NLMSG_NEXT(message, left)) {
        XdpHop hop;
        XdpNeighbour neighbour;
        if (ReadNeighbour(message, hop, neighbour)) news(hop, neighbour);
      }
    }
  }

  int descriptor() const override { return news_.get(); }

 private:
  void Name(const XdpHop& hop, Request<ndmsg>& request) const {
    request.body().ndm_family = Family(hop.version);
    request.body().ndm_ifindex = static_cast<int>(interface_index_);
    request.Add(NDA_DST, {hop.address.data(), AddressBytes(hop.version)});
  }

  // Calls `take` with what answers; the kernel has answered when send returns. An error is an answer too.
  template <typename Body, typename Take>
  void Ask(Request<Body>& request, const Take& take) {
    request.header().nlmsg_seq = ++sequence_;
    if (send(questions_.get(), &request.header(), request.header().nlmsg_len, 0) < 0) return;
    for (;;) {
      const ssize_t bytes = recv(questions_.get(), buffer_.data(), sizeof(buffer_), MSG_DONTWAIT);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) return;
      auto left = static_cast<unsigned>(bytes);
      for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer_.data()); NLMSG_OK(message, left);
           message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_seq == sequence_) take(message);
      }
    }
  }

  std::optional<XdpHop> ReadRoute(const nlmsghdr* message, const SocketAddress& to) const {
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof(rtmsg))) return std::nullopt;
    const auto* route = static_cast<const rtmsg*>(NLMSG_DATA(message));
    if (route->rtm_type != RTN_UNICAST) return std::nullopt;
    const IpVersion version = to.family() == AF_INET ? IpVersion::kV4 : IpVersion::kV6;
    XdpHop hop;
    TakeAddress(AddressOf(to), version, hop);
    bool by_us = false;
    bool understood = true;
    ForEachAttribute<rtmsg>(message, [&](uint16_t type, std::span<const uint8_t> value) {
      uint32_t index = 0;
      switch (type) {
        case RTA_OIF:
          if (value.size() != sizeof(index)) return;
          std::memcpy(&index, value.data(), sizeof(index));
          by_us = index == interface_index_;
          return;
        case RTA_GATEWAY:
          understood &= TakeAddress(value, version, hop);
          return;
        case RTA_VIA: {  // a gateway of the other IP version
          if (value.size() < sizeof(rtvia)) return;
          uint16_t family = 0;
          std::memcpy(&family, value.data(), sizeof(family));
          const IpVersion via = family == AF_INET ? IpVersion::kV4 : IpVersion::kV6;
          understood &= TakeAddress(value.subspan(sizeof(rtvia)), via, hop);
          return;
        }
        case RTA_ENCAP:
          understood = false;  // tunnels
          return;
        default:
          return;
      }
    });
    if (!by_us || !understood) return std::nullopt;
    return hop;
  }

  // False when the message is not about a neighbour of this interface.
  bool ReadNeighbour(const nlmsghdr* message, XdpHop& hop, XdpNeighbour& neighbour) const {
    if (message->nlmsg_type != RTM_NEWNEIGH && message->nlmsg_type != RTM_DELNEIGH) return false;
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof(ndmsg))) return false;
    const auto* info = static_cast<const ndmsg*>(NLMSG_DATA(message));
    if (info->ndm_ifindex != static_cast<int>(interface_index_)) return false;
    if (info->ndm_family != AF_INET && info->ndm_family != AF_INET6) return false;  // a bridge's own table
    const IpVersion version = info->ndm_family == AF_INET ? IpVersion::kV4 : IpVersion::kV6;
    bool named = false;
    bool has_mac = false;
    ForEachAttribute<ndmsg>(message, [&](uint16_t type, std::span<const uint8_t> value) {
      if (type == NDA_DST) named = TakeAddress(value, version, hop);
      if (type == NDA_LLADDR && value.size() == neighbour.mac.bytes.size()) {
        std::memcpy(neighbour.mac.bytes.data(), value.data(), value.size());
        has_mac = true;
      }
    });
    neighbour.valid = message->nlmsg_type == RTM_NEWNEIGH && (info->ndm_state & kValidStates) != 0 && has_mac;
    neighbour.stale = (info->ndm_state & NUD_STALE) != 0;
    return named;
  }

  FileDescriptor questions_, news_;
  uint32_t interface_index_;
  SocketAddress own_;
  uint32_t sequence_ = 0;
  alignas(nlmsghdr) std::array<uint8_t, 16384> buffer_{};
};

}  // namespace

absl::StatusOr<std::unique_ptr<XdpTables>> OpenXdpTables(uint32_t interface_index, const SocketAddress& own) {
  FileDescriptor questions(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  FileDescriptor news(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!questions.valid() || !news.valid()) {
    return absl::ErrnoToStatus(errno, "cannot open a netlink socket to look up neighbours");
  }
  sockaddr_nl group{};
  group.nl_family = AF_NETLINK;
  group.nl_groups = RTMGRP_NEIGH;
  if (bind(news.get(), reinterpret_cast<const sockaddr*>(&group), sizeof(group)) != 0) {
    return absl::ErrnoToStatus(errno, "cannot subscribe to changes of neighbours");
  }
  return std::make_unique<KernelTables>(std::move(questions), std::move(news), interface_index, own);
}

}  // namespace paceline
