// Sees the UDP packets over IPv4 that pass an interface, and sends such packets from any address to any other: what
// somebody with access to the wire can do (packet(7)). Needs the right to open packet sockets.
//
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/interop/attacker/datagram.h"

namespace paceline::interop {

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
  // Looks away: from now on the kernel shows nothing of what passes (and copies nothing), or everything again.
  void Look(bool at_what_passes);
  // False: the kernel had no room.
  bool Send(const Datagram& datagram);

 private:
  int fd_ = -1;
  std::vector<uint8_t> buffer_;
};

}  // namespace paceline::interop
