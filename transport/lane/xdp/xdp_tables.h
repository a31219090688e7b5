// The kernel's route and neighbour tables, as far as one interface is concerned: questions by rtnetlink, which the
// kernel answers within the call, and its own news of neighbours.
//
// Source: rtnetlink(7), Linux include/uapi/linux/{rtnetlink,neighbour}.h.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "transport/lane/ethernet/frame.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline {

// Whom a frame is handed to: the peer itself or the gateway to it. Not always of the peer's IP version.
struct XdpHop {
  IpVersion version = IpVersion::kV4;
  IpAddress address{};

  bool operator==(const XdpHop&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const XdpHop& hop) {
    return H::combine(std::move(state), hop.version, hop.address);
  }
};

struct XdpNeighbour {
  bool valid = false;  // frames may be sent to `mac`
  bool stale = false;  // the kernel wants to hear of it again before it trusts it for long
  MacAddress mac;
};

class XdpTables {
 public:
  // Called with each neighbour of the interface of which there is news.
  using News = std::function<void(const XdpHop&, const XdpNeighbour&)>;

  virtual ~XdpTables() = default;

  // The next hop towards `to` by this interface; nothing when there is none: no route, or one that stays in this
  // machine.
  virtual std::optional<XdpHop> NextHop(const SocketAddress& to) = 0;
  virtual XdpNeighbour Neighbour(const XdpHop& hop) = 0;
  // Has the kernel ask the neighbour where it is (ARP, neighbour discovery), as if it had a packet for it.
  virtual void Probe(const XdpHop& hop) = 0;
  // Reads what the kernel had to say, without waiting. False: some of it was lost.
  virtual bool Poll(const News& news) = 0;
  // Readable when Poll has something to read.
  virtual int descriptor() const = 0;
};

// `own`: the address that packets are sent from.
absl::StatusOr<std::unique_ptr<XdpTables>> OpenXdpTables(uint32_t interface_index, const SocketAddress& own);

}  // namespace paceline
