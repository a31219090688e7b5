// Addresses of shm lanes: a random token, which names an abstract unix socket. It is in one network namespace, goes
// with its process, and leaves no file. Whoever can connect to a socket of that name is on this host; a lane elsewhere,
// or in a container with a network of its own, cannot be reached, and that is how one finds out.
//
//   byte 0        's', which no address of another kind of lane begins with
//   bytes 1..16   the token
//
// Thread rule: pure functions, free to call from anywhere.
#pragma once

#include <array>
#include <string>

#include "transport/base/lane_address.h"

namespace paceline {

using ShmToken = std::array<uint8_t, 16>;

LaneAddress ToLaneAddress(const ShmToken& token);
// False: an address of another kind.
bool ToShmToken(const LaneAddress& address, ShmToken& token);
// Its name in the abstract namespace, without the zero byte in front: "paceline-" and 32 hexadecimal digits.
std::string SocketName(const ShmToken& token);

}  // namespace paceline
