#include "transport/core/routes.h"

#include <algorithm>
#include <bit>

#include "transport/core/context.h"

namespace paceline {
namespace {

// A peer of this host that is busy at first is not given up for the network at once: 750 ms with the usual back-off.
constexpr int kSharedTries = 4;

constexpr uint32_t Bit(uint32_t port) { return 1u << port; }

// The n-th of the ports in `set`, from 0; counts on from the first when there are fewer.
uint8_t NthOf(uint32_t set, uint32_t n) {
  for (n %= static_cast<uint32_t>(std::popcount(set)); n > 0; --n) set &= set - 1;
  return static_cast<uint8_t>(std::countr_zero(set));
}

// The peer's ports that a local one reaches, a bit for each. A card asks the network for each address, which may take
// it a second: where it reaches the one that is its own, all are believed to be within reach.
uint32_t RemotesOf(EndpointEnvironment& environment, const Port& port, std::span<const LaneAddress> addresses) {
  const uint32_t local = port.index;
  uint32_t remotes = 0, believed = 0;
  for (uint32_t remote = 0; remote < addresses.size(); ++remote) {
    if (addresses[remote].size != 0) believed |= Bit(remote);
  }
  if (port.capabilities.remote_placement && !addresses.empty()) {
    const uint32_t handle = environment.OpenPeer(local, addresses[local % addresses.size()]);
    if (handle != 0) environment.ClosePeer(local, handle);
    if (handle != 0) return believed;
  }
  for (uint32_t remote = 0; remote < addresses.size(); ++remote) {
    if (addresses[remote].size == 0) continue;
    const uint32_t handle = environment.OpenPeer(local, addresses[remote]);
    if (handle == 0) continue;
    remotes |= Bit(remote);
    environment.ClosePeer(local, handle);
  }
  return remotes;
}

using RemoteSets = std::array<uint32_t, limits::kMaxPorts>;

// By local port.
RemoteSets Reachable(EndpointEnvironment& environment, std::span<const Port> ports,
                     std::span<const LaneAddress> addresses) {
  RemoteSets remotes{};
  for (const Port& port : ports) remotes[port.index] = RemotesOf(environment, port, addresses);
  return remotes;
}

// The peer's port for a local one, on the first try and in later rounds.
uint8_t RemoteOf(const RemoteSets& remotes, uint32_t local, uint32_t round = 0) {
  const auto like_it = std::count(remotes.begin(), remotes.begin() + local, remotes[local]);
  return NthOf(remotes[local], static_cast<uint32_t>(like_it) + round);
}

}  // namespace

Routes OpenRoutes(EndpointEnvironment& environment, std::span<const Port> ports,
                  std::span<const LaneAddress> addresses) {
  addresses = addresses.first(std::min<size_t>(addresses.size(), limits::kMaxPorts));
  const RemoteSets remotes = Reachable(environment, ports, addresses);
  const bool shares_memory = std::any_of(ports.begin(), ports.end(), [&remotes](const Port& port) {
    return remotes[port.index] != 0 && port.capabilities.shares_memory;
  });
  Routes routes;
  for (const Port& port : ports) {
    if (remotes[port.index] == 0 || port.capabilities.shares_memory != shares_memory) continue;
    routes.remote_of[port.index] = RemoteOf(remotes, port.index);
    routes.handle[port.index] = environment.OpenPeer(port.index, addresses[routes.remote_of[port.index]]);
  }
  return routes;
}

void CloseRoutes(EndpointEnvironment& environment, const Routes& routes) {
  for (uint32_t port = 0; port < limits::kMaxPorts; ++port) {
    if (routes.handle[port] != 0) environment.ClosePeer(port, routes.handle[port]);
  }
}

std::vector<PortPair> PairsToTry(EndpointEnvironment& environment, std::span<const Port> ports,
                                 std::span<const LaneAddress> addresses) {
  const RemoteSets remotes = Reachable(environment, ports, addresses);
  std::vector<PortPair> pairs;
  const auto add = [&](bool shares_memory) {
    for (uint32_t round = 0; round < addresses.size(); ++round) {
      for (const Port& port : ports) {
        if (port.capabilities.shares_memory != shares_memory) continue;
        if (round >= static_cast<uint32_t>(std::popcount(remotes[port.index]))) continue;
        pairs.push_back({static_cast<uint8_t>(port.index), RemoteOf(remotes, port.index, round), shares_memory});
      }
    }
  };
  add(true);
  const size_t shared = pairs.size();
  for (int more = 1; more < kSharedTries; ++more) {
    for (size_t i = 0; i < shared; ++i) pairs.push_back(pairs[i]);
  }
  add(false);
  return pairs;
}

}  // namespace paceline
