// A fabric of the user's own, from a TOML or (by its name) JSON file:
//
//   hosts = ["a", "b", "c"]            # or how many: they are then h0, h1, ...
//   switches = ["s0", "s1"]
//   [[link]]
//   between = ["a", "s0"]              # a host's links are its NICs, in this order
//   gbps = 100                         # unless given: fabric.link_gbps
//   delay_ns = 1000                    # unless given: fabric.link_delay_ns
//   count = 1                          # so many of these
//
// In JSON the links are the list "link".
// Thread rule: control path; values.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "transport/lane/sim/topology.h"

namespace paceline::tools {

// Refuses what it does not understand, naming file, link and key. Whether the graph makes a fabric is for Topology.
absl::StatusOr<sim::Graph> LoadTopologyFile(const std::string& path, double link_gbps, int64_t link_delay_ns);

}  // namespace paceline::tools
