#include "transport/lane/verbs/verbs_devices.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace paceline {
namespace {

constexpr uint32_t kMostGids = 256;  // entries of the table that are looked at

uint32_t MtuBytes(ibv_mtu mtu) { return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0; }

// active_speed is per lane of the link and active_width counts lanes (InfiniBand specification, PortInfo).
Rate LinkRate(uint8_t speed, uint8_t width) {
  double lane = 0;
  switch (speed) {
    case 1:
      lane = 2.5;
      break;
    case 2:
      lane = 5;
      break;
    case 4:
    case 8:
      lane = 10;
      break;
    case 16:
      lane = 14;
      break;
    case 32:
      lane = 25;
      break;
    case 64:
      lane = 50;
      break;
    case 128:
      lane = 100;
      break;
    default:
      return {};
  }
  switch (width) {
    case 1:
      return Rate::Gbps(lane);
    case 2:
      return Rate::Gbps(lane * 4);
    case 4:
      return Rate::Gbps(lane * 8);
    case 8:
      return Rate::Gbps(lane * 12);
    case 16:
      return Rate::Gbps(lane * 2);
    default:
      return {};
  }
}

int NumaNode(const ibv_device& device) {
  std::ifstream file(absl::StrCat(device.ibdev_path, "/device/numa_node"));
  int node = -1;
  return file >> node ? node : -1;
}

std::string SysfsOf(const ibv_device& device) {
  std::string path = absl::StrCat(device.ibdev_path, "/device");
  std::error_code error;
  return std::filesystem::exists(path, error) ? path : std::string();
}

// The larger the better.
int Preference(const VerbsGid& gid) {
  if (IsIpv4(gid)) return 3;
  return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? 1 : 2;  // fe80::/10 reaches one link only
}

// The entry of the port's table, if it is of the type that a lane speaks.
std::optional<VerbsGid> GidAt(VerbsCalls& calls, ibv_context* context, const VerbsPort& port, uint32_t index) {
  ibv_gid_entry entry{};
  if (calls.QueryGid(context, port.number, index, &entry) != 0) return std::nullopt;
  if (entry.gid_type != static_cast<uint32_t>(port.ethernet ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB)) {
    return std::nullopt;
  }
  VerbsGid gid;
  std::memcpy(gid.data(), entry.gid.raw, gid.size());
  return gid;
}

void ChooseGid(VerbsCalls& calls, ibv_context* context, uint32_t table, VerbsPort& port) {
  int best = 0;
  for (uint32_t index = 0; index < std::min(table, kMostGids); ++index) {
    const std::optional<VerbsGid> gid = GidAt(calls, context, port, index);
    if (!gid.has_value()) continue;
    const int preference = port.ethernet ? Preference(*gid) : 1;
    if (preference <= best) continue;
    best = preference;
    port.gid = *gid;
    port.gid_index = static_cast<uint8_t>(index);
    port.has_gid = true;
  }
}

// Asks for a registration of nothing by no descriptor: a card that could takes offence at the descriptor.
std::string DmaBufProblem(VerbsCalls& calls, ibv_context* context) {
  ibv_pd* pd = calls.AllocPd(context);
  if (pd == nullptr) return absl::StrCat("ibv_alloc_pd: ", std::strerror(errno));
  ibv_mr* mr = calls.RegDmabufMr(pd, 0, 0, 0, -1, 0);
  const int error = mr == nullptr ? errno : 0;
  if (mr != nullptr) calls.DeregMr(mr);
  calls.DeallocPd(pd);
  if (error != EOPNOTSUPP && error != EPROTONOSUPPORT) return "";
  return absl::StrCat("ibv_reg_dmabuf_mr: ", std::strerror(error));
}

// Calls `use` with each device of the machine, until it says that it has found what it wants.
template <typename Use>
void ForEachDevice(VerbsCalls& calls, const Use& use) {
  int count = 0;
  ibv_device** devices = calls.GetDeviceList(&count);
  if (devices == nullptr) return;
  for (int i = 0; i < count; ++i) {
    if (use(devices[i])) break;
  }
  calls.FreeDeviceList(devices);
}

}  // namespace

std::string VerbsPort::name() const { return absl::StrCat(device, ":", number); }

std::string VerbsPort::reason() const {
  if (!active) return "the port is not active";
  if (!has_gid) return ethernet ? "it has no RoCE v2 address (GID): give its interface an IP address" : "it has no GID";
  return "";
}

VerbsPort LookAtVerbsPort(VerbsCalls& calls, ibv_context* context, const std::string& device, uint8_t number) {
  VerbsPort port;
  port.device = device;
  port.number = number;
  ibv_port_attr attributes{};
  if (calls.QueryPort(context, number, &attributes) != 0) return port;
  port.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.active = attributes.state == IBV_PORT_ACTIVE;
  port.mtu = MtuBytes(attributes.active_mtu);
  port.rate = LinkRate(attributes.active_speed, attributes.active_width);
  port.lid = attributes.lid;
  ChooseGid(calls, context, static_cast<uint32_t>(std::max(attributes.gid_tbl_len, 0)), port);
  return port;
}

bool IsVerbsPortAsFound(VerbsCalls& calls, ibv_context* context, const VerbsPort& found) {
  ibv_port_attr attributes{};
  if (calls.QueryPort(context, found.number, &attributes) != 0 || attributes.state != IBV_PORT_ACTIVE) return false;
  return (found.ethernet || attributes.lid == found.lid) && GidAt(calls, context, found, found.gid_index) == found.gid;
}

std::vector<VerbsPort> ListVerbsPorts(VerbsCalls& calls) {
  std::vector<VerbsPort> ports;
  ForEachDevice(calls, [&calls, &ports](ibv_device* device) {
    ibv_context* context = calls.OpenDevice(device);
    if (context == nullptr) return false;
    ibv_device_attr attributes{};
    if (calls.QueryDevice(context, &attributes) == 0) {
      const std::string dma_buf_problem = DmaBufProblem(calls, context);
      for (uint32_t number = 1; number <= attributes.phys_port_cnt; ++number) {  // which may be all that a byte holds
        ports.push_back(LookAtVerbsPort(calls, context, device->name, static_cast<uint8_t>(number)));
        ports.back().numa_node = NumaNode(*device);
        ports.back().guid = be64toh(attributes.sys_image_guid);
        ports.back().sysfs = SysfsOf(*device);
        ports.back().dma_buf_problem = dma_buf_problem;
      }
    }
    calls.CloseDevice(context);
    return false;
  });
  return ports;
}

absl::StatusOr<VerbsPort> FindVerbsPort(VerbsCalls& calls, const std::string& name) {
  const std::vector<VerbsPort> ports = ListVerbsPorts(calls);
  const VerbsPort* found = nullptr;
  for (const VerbsPort& port : ports) {
    if (port.name() == name) return port;
    if (port.device == name && (found == nullptr || (!found->reason().empty() && port.reason().empty()))) found = &port;
  }
  if (found != nullptr) return *found;
  const std::string there_is =
      absl::StrJoin(ports, ", ", [](std::string* out, const VerbsPort& port) { absl::StrAppend(out, port.name()); });
  return absl::NotFoundError(
      absl::StrCat("no RDMA port \"", name, "\"; there is: ", ports.empty() ? "none" : there_is));
}

ibv_context* OpenVerbsDevice(VerbsCalls& calls, const std::string& name) {
  ibv_context* context = nullptr;
  ForEachDevice(calls, [&calls, &name, &context](ibv_device* device) {
    if (name != device->name) return false;
    context = calls.OpenDevice(device);
    return true;
  });
  return context;
}

}  // namespace paceline
