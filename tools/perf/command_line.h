// The command line of `paceline perf`: its options, their meaning and their checks.
//
// Thread rule: control path, one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "paceline/options.h"
#include "tools/perf/spec.h"

namespace paceline::tools {

// As typed.
struct PerfArguments {
  std::string mode;  // server, client, local, alltoall, incast, allreduce, permutation
  std::string host;  // client
  uint16_t port = 0;
  std::string listen;  // server
  std::string op = "send", size, sizes, rate, lane, device, memory = "host", impair, json, cc, progress;
  std::vector<std::string> cc_set;
  uint64_t iterations = 0, seed = 1;
  std::optional<uint64_t> warmup;
  double seconds = 0, interval = 0, link_gbps = 0, base_rtt_us = 0;
  uint32_t window = 0, mtu = 0, engines = 0;
  std::optional<uint32_t> ranks;
  bool bidirectional = false, histogram = false;
};

// Declares options and modes on `app`.
void DeclarePerfOptions(CLI::App& app, PerfArguments& arguments);

// Errors name the option at fault and what it may be.
absl::StatusOr<TestSpec> ToTestSpec(const PerfArguments& arguments);
// On top of what the environment says.
absl::StatusOr<api::ContextOptions> ToContextOptions(const PerfArguments& arguments);

}  // namespace paceline::tools
