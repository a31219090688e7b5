// A DpdkPort as a Lane.
//
// Thread rule: Lane's.
#pragma once

#include <memory>

#include "transport/lane/dpdk/dpdk_device.h"
#include "transport/lane/dpdk/dpdk_lane.h"
#include "transport/lane/dpdk/dpdk_port.h"
#include "transport/lane/file_descriptor.h"

namespace paceline {

// `lock` is closed when the lane has let go of its port. Of the options only those of a lane count.
std::unique_ptr<Lane> MakeDpdkLane(std::unique_ptr<DpdkPort> port, FileDescriptor lock, const DpdkDevice& device,
                                   const DpdkLaneOptions& options);

// EAL is started if it does not run; see CreateDpdkLanes.
absl::StatusOr<std::vector<std::unique_ptr<Lane>>> OpenDpdkLanes(const DpdkLaneOptions& options);

}  // namespace paceline
