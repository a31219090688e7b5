#include "tests/interop/udp_pingpong/raw_socket.h"
#include "tests/interop/udp_pingpong/ring_socket.h"

namespace paceline::interop {

std::unique_ptr<RingSocket> OpenRingSocket(int) {
  Fail("--io-uring: liburing was missing when this program was built; on Debian 12: apt-get install liburing-dev");
}

}  // namespace paceline::interop
