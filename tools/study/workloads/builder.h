// What kinds of workloads build with: flows that start by themselves, ranks spread over hosts, random choices.
//
// Thread rule: one owner. Same seed and same calls, same workload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/study/workload.h"
#include "transport/base/random.h"

namespace paceline::tools {

class WorkloadBuilder {
 public:
  WorkloadBuilder(const WorkloadConfig& config, const WorkloadHosts& hosts, uint64_t seed);

  const WorkloadHosts& hosts() const { return hosts_; }
  // When flows that depend on nothing start, jitter apart.
  sim::Picos start() const { return start_; }
  Random& random() { return random_; }
  Workload& workload() { return workload_; }

  // A random part of the workload's jitter.
  sim::Picos Jitter();
  // Starts with the workload, jitter added. The reference holds until the next flow.
  Flow& AddFlow(uint32_t source, uint32_t destination, uint64_t bytes);

  // `ranks` hosts spread evenly over all (0: every host).
  absl::Status SpreadRanks(uint32_t ranks, std::vector<uint32_t>* hosts) const;
  std::vector<uint32_t> Shuffled(uint32_t count);
  // A random permutation in which nobody is mapped to itself: one cycle through all.
  std::vector<uint32_t> RandomCycle(uint32_t count);

  // workload.KEY = VALUE does not fit into fabric.hosts.
  absl::Status TooMany(const std::string& key, uint64_t value) const;

 private:
  const WorkloadHosts hosts_;
  const sim::Picos start_;
  const sim::Picos jitter_;
  Random random_;
  Workload workload_;
};

}  // namespace paceline::tools
