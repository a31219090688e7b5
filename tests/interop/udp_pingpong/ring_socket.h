// A UDP socket by io_uring, as far as the yardsticks need one: what the lane's calls would cost if they were entries of
// a ring. Nothing else of the tree uses io_uring; docs/lanes/udp.md says why.
//
// Thread rule: single-threaded programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/lane/udp/udp_address.h"

namespace paceline::interop {

class RingSocket {
 public:
  struct Arrived {
    const uint8_t* data = nullptr;
    size_t bytes = 0;
    const SocketAddress* from = nullptr;
  };

  virtual ~RingSocket() = default;
  // To where the socket is connected if `to` is nullptr. Has left, or is lost, when it returns; receives that wait to
  // be armed go along, so it is one call of the kernel.
  virtual void Send(const uint8_t* data, size_t bytes, const SocketAddress* to) = 0;
  // Looks once; false: nothing. What arrived stays where it is until the next call.
  virtual bool Receive(Arrived& arrived) = 0;
};

// Takes over `fd`, a UDP socket. Ends the program with a message where there is no io_uring: neither in the kernel, or
// no liburing when this was built.
std::unique_ptr<RingSocket> OpenRingSocket(int fd);

}  // namespace paceline::interop
