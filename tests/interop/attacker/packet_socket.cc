#include "tests/interop/attacker/packet_socket.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace paceline::interop {
namespace {

// What the kernel puts before each packet: virtio_net_hdr of linux/virtio_net.h, which no C++ compiler reads.
struct OffloadHeader {
  uint8_t flags = 0;
  uint8_t gso_type = 0;  // 0: one datagram
  uint16_t header_bytes = 0;
  uint16_t gso_size = 0;
  uint16_t checksum_start = 0, checksum_offset = 0;
};
static_assert(sizeof(OffloadHeader) == 10);

constexpr size_t kHeaders = sizeof(OffloadHeader) + sizeof(ether_header) + sizeof(iphdr) + sizeof(udphdr);

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "attacker: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(2);
}

uint16_t IpChecksum(std::span<const uint8_t> header) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < header.size(); i += 2) sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

template <typename T>
T Read(std::span<const uint8_t> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <typename T>
void Append(std::vector<uint8_t>& bytes, const T& value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(T));
}

}  // namespace

PacketSocket::PacketSocket(const std::string& interface) : buffer_(kHeaders + 65536) {
  fd_ = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_IP));
  if (fd_ < 0) Fail("a packet socket");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);  // also what this machine sends
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  if (address.sll_ifindex == 0) Fail("interface " + interface);
  const int on = 1;
  if (setsockopt(fd_, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) != 0) Fail("PACKET_VNET_HDR");
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) Fail("interface " + interface);
}

PacketSocket::~PacketSocket() { close(fd_); }

std::optional<Datagram> PacketSocket::Capture() {
  for (;;) {
    const ssize_t size = recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (size < 0) return std::nullopt;
    if (static_cast<size_t>(size) < kHeaders) continue;
    std::span<const uint8_t> rest(buffer_.data(), static_cast<size_t>(size));
    const auto offload = Read<OffloadHeader>(rest);
    rest = rest.subspan(sizeof(OffloadHeader));
    const auto ethernet = Read<ether_header>(rest);
    rest = rest.subspan(sizeof(ether_header));
    const auto ip = Read<iphdr>(rest);
    const bool fragment = (ntohs(ip.frag_off) & 0x3fff) != 0;
    if (ethernet.ether_type != htons(ETH_P_IP) || ip.version != 4 || ip.ihl != 5 || ip.protocol != IPPROTO_UDP ||
        fragment) {
      continue;
    }
    rest = rest.subspan(sizeof(iphdr));
    const auto udp = Read<udphdr>(rest);
    rest = rest.subspan(sizeof(udphdr));
    if (offload.gso_type != 0) rest = rest.first(std::min<size_t>(rest.size(), offload.gso_size));
    Datagram datagram;
    std::copy_n(ethernet.ether_shost, 6, datagram.source_mac.begin());
    std::copy_n(ethernet.ether_dhost, 6, datagram.destination_mac.begin());
    datagram.source = ntohl(ip.saddr);
    datagram.destination = ntohl(ip.daddr);
    datagram.source_port = ntohs(udp.source);
    datagram.destination_port = ntohs(udp.dest);
    datagram.payload.assign(rest.begin(), rest.end());
    return datagram;
  }
}

void PacketSocket::Look(bool at_what_passes) {
  sock_filter nothing = {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog program = {.len = 1, .filter = &nothing};
  const int what = at_what_passes ? SO_DETACH_FILTER : SO_ATTACH_FILTER;
  if (setsockopt(fd_, SOL_SOCKET, what, &program, sizeof(program)) != 0) Fail("a socket filter");
}

bool PacketSocket::Send(const Datagram& datagram) {
  std::vector<uint8_t> frame;
  frame.reserve(kHeaders + datagram.payload.size());
  Append(frame, OffloadHeader{});
  ether_header ethernet{};
  std::copy(datagram.source_mac.begin(), datagram.source_mac.end(), ethernet.ether_shost);
  std::copy(datagram.destination_mac.begin(), datagram.destination_mac.end(), ethernet.ether_dhost);
  ethernet.ether_type = htons(ETH_P_IP);
  Append(frame, ethernet);
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.tot_len = htons(static_cast<uint16_t>(sizeof(iphdr) + sizeof(udphdr) + datagram.payload.size()));
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.saddr = htonl(datagram.source);
  ip.daddr = htonl(datagram.destination);
  ip.check = htons(IpChecksum({reinterpret_cast<const uint8_t*>(&ip), sizeof(ip)}));
  Append(frame, ip);
  udphdr udp{};  // without a checksum, which IPv4 allows
  udp.source = htons(datagram.source_port);
  udp.dest = htons(datagram.destination_port);
  udp.len = htons(static_cast<uint16_t>(sizeof(udphdr) + datagram.payload.size()));
  Append(frame, udp);
  frame.insert(frame.end(), datagram.payload.begin(), datagram.payload.end());
  return send(fd_, frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size());
}

}  // namespace paceline::interop
