// The one place that names the kinds of lanes: makes lanes for an engine by the name of their kind and the devices or
// addresses they are to use, and says which kinds work on this machine.
//
// Thread rule: control path, callable from anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/lane/impair/impairment.h"
#include "transport/lane/lane.h"

namespace paceline {

struct LaneFactoryOptions {
  std::string kind = "udp";  // or one more of ListLaneKinds
  // udp, auto: one lane each: interface ("eth0"), address ("192.0.2.1", "[fd00::2]:4791"). Empty: the loopback address.
  // shm: empty, as there is only one lane.
  // verbs: one lane each: "mlx5_0" (its first usable port), "mlx5_0:1". Empty: every usable port.
  // xdp: as udp, but never empty.
  // dpdk: one lane each: a port and its settings, see lane/dpdk/dpdk_device.h. Empty: an end of a memif pair.
  std::vector<std::string> devices;
  // Bytes of the largest IP packet (kind shm: of the largest packet; verbs: of its payload; xdp: of one chunk at most);
  // 0: the port's.
  uint32_t mtu = 0;
  bool any_udp_port = false;    // udp, auto: of an address with a port only the address counts
  Rate link_rate;               // zero: as the driver states it
  uint32_t entropies = 0;       // udp, xdp, verbs: routes to a peer, at most 64 of verbs; 0: the lane's own number
  Impairment impairment;        // none: lanes as they are
  std::string dpdk_eal;         // dpdk: arguments for EAL, instead of or beside those that are chosen
  bool verbs_reliable = false;  // verbs: writes on RC instead of UC
  // udp, xdp, dpdk, verbs: the IP header's byte of that name (InfiniBand: the GRH's), but for its two ECN bits, which
  // are the lane's.
  uint8_t traffic_class = 0;
};

// An error names the kind or device at fault and what there is instead.
absl::StatusOr<std::vector<std::unique_ptr<Lane>>> CreateLanes(const LaneFactoryOptions& options);

// Whether several lanes of this kind, each of another engine, can be on one device, or in one process.
bool LanesMayShareDevices(const std::string& kind);

// The address by which lanes of this kind find somebody, of text for people; and back. udp, xdp, dpdk:
// "192.0.2.1:4791", "[fd00::2]:4791". Other kinds have none.
absl::StatusOr<LaneAddress> ParsePeerAddress(const std::string& kind, const std::string& text);
std::string FormatPeerAddress(const std::string& kind, const LaneAddress& address);
// Whether only processes of the host that it was made on can send there.
bool IsOfThisHost(const LaneAddress& address);

struct LaneKindInfo {
  std::string name;
  bool usable = false;
  std::string summary;  // what it is
  std::string reason;   // why it is not usable here
};

// Every kind that Paceline has, usable here or not.
std::vector<LaneKindInfo> ListLaneKinds();

// What a lane may be made on: a network interface of this machine (udp, and xdp if it is an Ethernet one), a port of an
// RDMA card (verbs).
struct LaneDeviceInfo {
  std::string name;     // as LaneFactoryOptions::devices takes it
  bool usable = false;  // up, with a carrier and an address
  bool loopback = false;
  bool is_virtual = false;      // no device of its own behind it
  uint32_t mtu = 0;             // bytes of an IP packet; verbs: of its payload
  Rate rate;                    // zero: the driver states none
  uint32_t port = 0;            // which of its card's ports, from 1; 0: they are not numbered
  uint64_t guid = 0;            // of the card, the same in every process; 0: not known
  std::string sysfs;            // folder of the card; empty: there is none behind it
  bool places = false;          // lanes on it place data by their card (LaneCapabilities::remote_placement)
  std::string dma_buf_problem;  // of such a card: why it takes no memory of GPUs by dma-buf; empty when it does
};

// For lanes of this kind, usable or not; of kinds that have no devices of their own, the network interfaces. An error
// says why there are none, or that no such lanes can be made.
absl::StatusOr<std::vector<LaneDeviceInfo>> ListLaneDevices(const std::string& kind);

}  // namespace paceline
