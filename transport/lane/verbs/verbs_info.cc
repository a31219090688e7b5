// What there is to say of the ports of this machine, without making a lane.
#include <arpa/inet.h>

#include <array>

#include "transport/lane/verbs/verbs_devices.h"
#include "transport/lane/verbs/verbs_lane.h"
#include "transport/lane/verbs/verbs_library.h"

namespace paceline {

std::vector<VerbsPortInfo> ListVerbsLanePorts() {
  std::vector<VerbsPortInfo> list;
  const auto calls = LoadVerbsLibrary();
  if (!calls.ok()) return list;
  for (const VerbsPort& port : ListVerbsPorts(**calls)) {
    VerbsPortInfo& info = list.emplace_back();
    info.name = port.name();
    info.link = port.ethernet ? "Ethernet" : "InfiniBand";
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (port.has_gid && inet_ntop(AF_INET6, port.gid.data(), text.data(), text.size()) != nullptr) {
      info.address = text.data();
    }
    info.rate = port.rate;
    info.mtu = port.mtu;
    info.numa_node = port.numa_node;
    info.number = port.number;
    info.guid = port.guid;
    info.sysfs = port.sysfs;
    info.reason = port.reason();
    info.dma_buf_problem = port.dma_buf_problem;
  }
  return list;
}

absl::Status CheckVerbsLane() {
  const auto calls = LoadVerbsLibrary();
  if (!calls.ok()) return calls.status();
  const std::vector<VerbsPortInfo> ports = ListVerbsLanePorts();
  if (ports.empty()) return absl::NotFoundError("no RDMA device on this machine, or none that may be opened");
  std::string reasons;
  for (const VerbsPortInfo& port : ports) {
    if (port.reason.empty()) return absl::OkStatus();
    reasons += (reasons.empty() ? "" : "; ") + port.name + ": " + port.reason;
  }
  return absl::FailedPreconditionError(reasons);
}

}  // namespace paceline
