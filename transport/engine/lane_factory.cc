#include "transport/engine/lane_factory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "transport/base/limits.h"
#include "transport/lane/dpdk/dpdk_lane.h"
#include "transport/lane/impair/impair_lane.h"
#include "transport/lane/shm/shm_address.h"
#include "transport/lane/shm/shm_lane.h"
#include "transport/lane/udp/udp_address.h"
#include "transport/lane/udp/udp_interfaces.h"
#include "transport/lane/udp/udp_lane.h"
#include "transport/lane/verbs/verbs_lane.h"
#include "transport/lane/xdp/xdp_lane.h"

namespace paceline {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

// "192.0.2.1" and "fd00::2" are good enough for people; the lane wants a port and brackets.
std::string WithPort(const std::string& device) {
  const auto colons = std::count(device.begin(), device.end(), ':');
  if (colons > 1 && device.front() != '[') return absl::StrCat("[", device, "]:0");
  if (colons == 0 && device.find('.') != std::string::npos &&
      device.find_first_not_of("0123456789.") == std::string::npos) {
    return absl::StrCat(device, ":0");
  }
  if (device.front() == '[' && device.back() == ']') return absl::StrCat(device, ":0");
  return device;
}

absl::StatusOr<std::unique_ptr<Lane>> CreateUdp(const std::string& device, const LaneFactoryOptions& options) {
  UdpLaneOptions udp;
  udp.bind_address = WithPort(device);
  if (const size_t colon = udp.bind_address.rfind(':'); options.any_udp_port && colon != std::string::npos) {
    udp.bind_address.replace(colon, std::string::npos, ":0");
  }
  udp.mtu = options.mtu;
  udp.link_rate = options.link_rate;
  udp.traffic_class = options.traffic_class;
  if (options.entropies != 0) udp.tx_sockets = static_cast<uint16_t>(options.entropies);
  udp.bind_to_device = options.devices.size() > 1;
  auto lane = CreateUdpLane(udp);
  if (!lane.ok() && udp.bind_to_device && absl::IsPermissionDenied(lane.status())) {
    udp.bind_to_device = false;  // only matters for several interfaces in one subnet
    lane = CreateUdpLane(udp);
  }
  return lane;
}

using Lanes = std::vector<std::unique_ptr<Lane>>;

absl::StatusOr<Lanes> CreateUdpLanes(const LaneFactoryOptions& options) {
  std::vector<std::string> devices = options.devices;
  if (devices.empty()) devices.push_back(kLoopback);
  Lanes lanes;
  for (const std::string& device : devices) {
    if (device.empty()) return absl::InvalidArgumentError("an empty device name; give an interface or an address");
    auto lane = CreateUdp(device, options);
    if (!lane.ok()) return lane.status();
    lanes.push_back(*std::move(lane));
  }
  return lanes;
}

absl::StatusOr<Lanes> CreateShmLanes(const LaneFactoryOptions& options) {
  if (!options.devices.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("lane \"shm\" has no devices or addresses; \"", options.devices.front(), "\" was given"));
  }
  ShmLaneOptions shm;
  shm.link_rate = options.link_rate;
  if (options.mtu != 0) shm.max_packet_bytes = options.mtu;
  auto lane = CreateShmLane(shm);
  if (!lane.ok()) return lane.status();
  Lanes lanes;
  lanes.push_back(*std::move(lane));
  return lanes;
}

// The network for all, and shared memory for who is here. That lane comes first, so that it is in short addresses too.
absl::StatusOr<Lanes> CreateAutoLanes(const LaneFactoryOptions& options) {
  absl::StatusOr<Lanes> lanes = CreateUdpLanes(options);
  if (!lanes.ok() || lanes->size() >= limits::kMaxPorts) return lanes;
  if (auto shm = CreateShmLane(ShmLaneOptions()); shm.ok()) lanes->insert(lanes->begin(), *std::move(shm));
  return lanes;
}

// Every port that is usable, when none is named.
absl::StatusOr<Lanes> CreateVerbsLanes(const LaneFactoryOptions& options) {
  std::vector<std::string> devices = options.devices;
  if (devices.empty()) {
    if (absl::Status status = CheckVerbsLane(); !status.ok()) {
      return absl::UnavailableError(absl::StrCat("lane \"verbs\": ", status.message()));
    }
    for (const VerbsPortInfo& port : ListVerbsLanePorts()) {
      if (port.reason.empty() && devices.size() < limits::kMaxPorts) devices.push_back(port.name);
    }
  }
  Lanes lanes;
  for (const std::string& device : devices) {
    VerbsLaneOptions verbs;
    verbs.device = device;
    verbs.mtu = options.mtu;
    verbs.link_rate = options.link_rate;
    verbs.reliable = options.verbs_reliable;
    verbs.traffic_class = options.traffic_class;
    if (options.entropies != 0) verbs.entropies = std::min(options.entropies, kMostVerbsEntropies);
    auto lane = CreateVerbsLane(verbs);
    if (!lane.ok()) return lane.status();
    lanes.push_back(*std::move(lane));
  }
  return lanes;
}

// No default: which interface is given up to a lane is for people to say.
absl::StatusOr<Lanes> CreateXdpLanes(const LaneFactoryOptions& options) {
  if (options.devices.empty()) {
    return absl::InvalidArgumentError(
        "lane \"xdp\" needs to be told its interfaces, or an address of each: --device eth0, PACELINE_BIND=eth0");
  }
  Lanes lanes;
  for (const std::string& device : options.devices) {
    XdpLaneOptions xdp;
    xdp.bind_address = WithPort(device);
    xdp.mtu = options.mtu;
    xdp.link_rate = options.link_rate;
    xdp.traffic_class = options.traffic_class;
    if (options.entropies != 0) xdp.entropies = static_cast<uint16_t>(options.entropies);
    auto lane = CreateXdpLane(xdp);
    if (!lane.ok()) return lane.status();
    lanes.push_back(*std::move(lane));
  }
  return lanes;
}

absl::StatusOr<Lanes> CreateDpdk(const LaneFactoryOptions& options) {
  DpdkLaneOptions dpdk;
  dpdk.devices = options.devices;
  dpdk.eal_arguments = options.dpdk_eal;
  dpdk.mtu = options.mtu;
  dpdk.link_rate = options.link_rate;
  dpdk.traffic_class = options.traffic_class;
  return CreateDpdkLanes(dpdk);
}

bool HasUdpAddresses(const std::string& kind) { return kind == "udp" || kind == "xdp" || kind == "dpdk"; }

// Why there are no lanes of a kind that nobody makes.
absl::Status NoSuchLane(const std::string& kind_wanted) {
  std::vector<std::string> usable;
  for (const LaneKindInfo& kind : ListLaneKinds()) {
    if (kind.name == kind_wanted) {
      return absl::UnimplementedError(absl::StrCat("lane \"", kind_wanted, "\": ", kind.reason));
    }
    if (kind.usable) usable.push_back(kind.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("lane \"", kind_wanted, "\" is unknown; usable here: ", absl::StrJoin(usable, ", ")));
}

// `status`, and, where a device that could not be had is an RDMA card, what drives that.
absl::Status WithWayToCards(const absl::Status& status, const std::vector<std::string>& devices) {
  for (const VerbsPortInfo& port : ListVerbsLanePorts()) {
    for (const std::string& device : devices) {
      if (device.empty() || (port.name != device && !port.name.starts_with(device + ":"))) continue;
      return absl::Status(status.code(), absl::StrCat(status.message(), "; \"", device,
                                                      "\" is an RDMA card, which lane \"verbs\" drives: --lane verbs, "
                                                      "PACELINE_LANE=verbs"));
    }
  }
  return status;
}

absl::StatusOr<Lanes> CreateKind(const LaneFactoryOptions& options) {
  if (options.kind == "auto") return CreateAutoLanes(options);
  if (options.kind == "udp") return CreateUdpLanes(options);
  if (options.kind == "shm") return CreateShmLanes(options);
  if (options.kind == "verbs") return CreateVerbsLanes(options);
  if (options.kind == "xdp") return CreateXdpLanes(options);
  if (options.kind == "dpdk") return CreateDpdk(options);
  return NoSuchLane(options.kind);
}

absl::StatusOr<std::vector<LaneDeviceInfo>> ListVerbsDevices() {
  std::vector<LaneDeviceInfo> list;
  for (const VerbsPortInfo& port : ListVerbsLanePorts()) {
    list.push_back({.name = port.name,
                    .usable = port.reason.empty(),
                    .is_virtual = port.sysfs.empty(),
                    .mtu = port.mtu,
                    .rate = port.rate,
                    .port = port.number,
                    .guid = port.guid,
                    .sysfs = port.sysfs,
                    .places = true,
                    .dma_buf_problem = port.dma_buf_problem});
  }
  if (list.empty()) {
    if (absl::Status status = CheckVerbsLane(); !status.ok()) return status;
  }
  return list;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Lane>>> CreateLanes(const LaneFactoryOptions& options) {
  auto lanes = CreateKind(options);
  if (!lanes.ok() && options.kind != "verbs") return WithWayToCards(lanes.status(), options.devices);
  if (!lanes.ok() || options.impairment.none()) return lanes;
  Impairment impairment = options.impairment;
  for (std::unique_ptr<Lane>& lane : *lanes) {
    auto impaired = ImpairLane::Create(std::move(lane), impairment);
    if (!impaired.ok()) return impaired.status();
    lane = *std::move(impaired);
    ++impairment.seed;  // ports fail each in their own way
  }
  return lanes;
}

bool LanesMayShareDevices(const std::string& kind) { return kind != "xdp" && kind != "dpdk"; }

absl::StatusOr<LaneAddress> ParsePeerAddress(const std::string& kind, const std::string& text) {
  if (HasUdpAddresses(kind)) return ParseLaneAddress(text);
  return absl::UnimplementedError(absl::StrCat("lane \"", kind, "\" has no addresses that people write"));
}

bool IsOfThisHost(const LaneAddress& address) {
  ShmToken token;
  return ToShmToken(address, token);
}

std::string FormatPeerAddress(const std::string& kind, const LaneAddress& address) {
  return HasUdpAddresses(kind) ? FormatLaneAddress(address) : "";
}

absl::StatusOr<std::vector<LaneDeviceInfo>> ListLaneDevices(const std::string& kind) {
  if (kind == "verbs") return ListVerbsDevices();
  if (kind != "auto" && kind != "shm" && !HasUdpAddresses(kind)) return NoSuchLane(kind);
  const auto interfaces = ListUdpInterfaces();
  if (!interfaces.ok()) return interfaces.status();
  std::vector<LaneDeviceInfo> list;
  for (const UdpInterface& interface : *interfaces) {
    list.push_back({.name = interface.name,
                    .usable = interface.up && !interface.addresses.empty(),
                    .loopback = interface.loopback,
                    .is_virtual = interface.is_virtual,
                    .mtu = interface.mtu,
                    .rate = interface.speed,
                    .guid = interface.hardware_address,
                    .sysfs = interface.is_virtual ? "" : absl::StrCat("/sys/class/net/", interface.name, "/device")});
  }
  return list;
}

std::vector<LaneKindInfo> ListLaneKinds() {
  const absl::Status shm = CheckShmLane();
  const absl::Status verbs = CheckVerbsLane();
  const absl::Status xdp = CheckXdpLane();
  const absl::Status dpdk = CheckDpdkLane();
  return {
      {"auto", true, "udp, and shm with peers that it reaches", ""},
      {"udp", true, "kernel UDP sockets, no privilege needed", ""},
      {"shm", shm.ok(), "shared memory between processes of one host and user", std::string(shm.message())},
      {"xdp", xdp.ok(), "AF_XDP sockets of an Ethernet interface, past the kernel's stack", std::string(xdp.message())},
      {"dpdk", dpdk.ok(), "ports that DPDK drives", std::string(dpdk.message())},
      {"verbs", verbs.ok(), "RDMA cards by rdma-core (UD and UC)", std::string(verbs.message())},
      {"sim", false, "the simulated fabric", "used by `paceline study`, carries no real traffic"},
  };
}

}  // namespace paceline
