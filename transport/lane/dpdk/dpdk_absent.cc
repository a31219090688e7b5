// The dpdk lane of a build without the headers of DPDK.
#include "transport/lane/dpdk/dpdk_lane.h"

namespace paceline {
namespace {

absl::Status Absent() {
  return absl::UnimplementedError("built without DPDK (Debian: libdpdk-dev, then configure and build again)");
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Lane>>> CreateDpdkLanes(const DpdkLaneOptions&) { return Absent(); }
absl::Status CheckDpdkLane() { return Absent(); }

}  // namespace paceline
