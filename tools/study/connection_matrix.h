// Connection matrices of the htsim simulators: text files that list flows.
//
//   Nodes 128                                    hosts
//   Connections 2                                how many lines of flows follow
//   Triggers 1                                   how many lines of triggers follow (left out: none)
//   0->5 id 1 start 0 size 2000000 send_done_trigger 1       start in picoseconds, size in bytes
//   5->0 id 2 trigger 1 size 1000000             starts when trigger 1 fires
//   trigger id 1 oneshot                         starts all its flows, once
//   trigger id 2 multishot                       starts its next flow each time that it is fired
//   trigger id 3 barrier count 4                 starts all its flows when it has been fired 4 times
//
// A flow may also have recv_done_trigger, and prio and msg, which mean nothing here. Lines that start with # and empty
// lines are skipped. A flow of size 0 (endless in htsim) and scheduled link failures are refused.
//
// Thread rule: pure functions but for reading the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/study/workload.h"

namespace paceline::tools {

struct ConnectionMatrix {
  uint32_t nodes = 0;
  Workload workload;
};

// An error begins with "NAME:LINE: ".
absl::StatusOr<ConnectionMatrix> ParseConnectionMatrix(std::string_view text, const std::string& name);
absl::StatusOr<ConnectionMatrix> LoadConnectionMatrix(const std::string& path);

}  // namespace paceline::tools
