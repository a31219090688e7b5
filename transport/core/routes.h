// Which of our ports reach a peer, and which of its ports each of them sends to. Lanes of unlike kinds do not reach
// each other; where one of ours shares memory with the peer, that one alone is used.
//
// Thread rule: the endpoint's thread. Ownership: who opens routes closes them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/base/lane_address.h"
#include "transport/base/limits.h"

namespace paceline {

class EndpointEnvironment;
struct Port;

struct Routes {
  std::array<uint8_t, limits::kMaxPorts> remote_of{};  // the peer's port that a local port sends to
  std::array<uint32_t, limits::kMaxPorts> handle{};    // lane's peer handle, by local port; 0: does not reach it

  static_assert(limits::kMaxPorts <= 8, "a bit for each port");
  uint8_t Reach() const {  // bit per local port that leads to the peer
    uint8_t reach = 0;
    for (uint32_t port = 0; port < limits::kMaxPorts; ++port)
      reach |= static_cast<uint8_t>((handle[port] != 0) << port);
    return reach;
  }
};

// `addresses`: by the peer's port; an empty one is not for us to use. Among the ports that reach the same of them, the
// first sends to the first, the second to the second, and so on in turn.
Routes OpenRoutes(EndpointEnvironment& environment, std::span<const Port> ports,
                  std::span<const LaneAddress> addresses);
void CloseRoutes(EndpointEnvironment& environment, const Routes& routes);

// Every pair of ports by which a first packet may find its way, in the order in which to try them: those that share
// memory, a few times, before the others; then all of our ports before the next of the peer's.
struct PortPair {
  uint8_t local = 0, remote = 0;
  bool shares_memory = false;
  bool operator==(const PortPair&) const = default;
};
std::vector<PortPair> PairsToTry(EndpointEnvironment& environment, std::span<const Port> ports,
                                 std::span<const LaneAddress> addresses);

}  // namespace paceline
