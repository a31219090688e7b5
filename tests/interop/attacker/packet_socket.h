// Sees the UDP packets over IPv4 that pass an interface, and sends such packets from any address to any other: what
// somebody with access to the wire can do (packet(7)). Needs the right to open packet sockets.
//
// Thread rule: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace paceline::interop {

struct Datagram {
  std::array<uint8_t, 6> source_mac{}, destination_mac{};
  uint32_t source = 0, destination = 0;  // IPv4, host order
  uint16_t source_port = 0, destination_port = 0;
  std::vector<uint8_t> payload;
};

class PacketSocket {
 public:
  // Ends the program with a message when it cannot.
  explicit PacketSocket(const std::string& interface);
  ~PacketSocket();
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  // The next datagram that has passed, of several that travel as one (segmentation offload) the first; nullopt: none
  // now. Whole datagrams only: fragments are passed over.
  std::optional<Datagram> Capture();
  // False: the kernel had no room.
  bool Send(const Datagram& datagram);

 private:
  int fd_ = -1;
  std::vector<uint8_t> buffer_;
};

}  // namespace paceline::interop
