#include "tools/study/workload.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "tools/study/workloads/builder.h"
#include "tools/study/workloads/pattern.h"
#include "tools/study/workloads/poisson.h"

namespace paceline::tools {
namespace {

constexpr uint64_t kMostBackgroundFlows = 10'000'000;

// Of each source's flows the first `window` start by themselves, each that completes starts the next. A flow
// that waits starts no earlier than the first of its source.
void AddWindows(uint32_t window, uint32_t hosts, Workload& workload) {
  std::vector<std::vector<uint32_t>> by_source(hosts);
  for (uint32_t i = 0; i < workload.flows.size(); ++i) by_source[workload.flows[i].source].push_back(i);
  for (const std::vector<uint32_t>& flows : by_source) {
    if (flows.size() <= window) continue;
    const auto number = static_cast<uint32_t>(workload.triggers.size());
    Trigger trigger;
    trigger.one_at_a_time = true;
    sim::Picos first = workload.flows[flows[0]].start;
    for (size_t i = 1; i < window; ++i) first = std::min(first, workload.flows[flows[i]].start);
    for (size_t i = 0; i < flows.size(); ++i) {
      Flow& flow = workload.flows[flows[i]];
      flow.fires_when_sent = number;
      if (i < window) continue;
      flow.trigger = number;
      flow.start = first;
      trigger.flows.push_back(flows[i]);
    }
    workload.triggers.push_back(std::move(trigger));
  }
}

void AddBackground(const WorkloadConfig& config, const WorkloadHosts& hosts, uint64_t seed, Workload& workload) {
  const Background& background = config.background;
  Random random(seed ^ 0x6261636b67726f75);
  const PoissonLoad load = {
      .load = background.load, .most_flows = kMostBackgroundFlows, .until = config.start + background.lasts};
  for (Flow& flow : PoissonFlows(load, *background.sizes, hosts, config.start, random)) {
    flow.background = true;
    workload.flows.push_back(flow);
  }
}

}  // namespace

absl::StatusOr<Workload> BuildWorkload(const WorkloadConfig& config, const WorkloadHosts& hosts, uint64_t seed) {
  WorkloadBuilder builder(config, hosts, seed);
  if (absl::Status status = config.pattern->Build(builder); !status.ok()) return status;
  Workload workload = std::move(builder.workload());
  if (workload.flows.empty()) {
    return absl::InvalidArgumentError(
        "workload: nothing of it crosses the network; spread its ranks over two hosts or more (ranks, ranks_per_host)");
  }
  if (config.window > 0 && config.pattern->independent()) AddWindows(config.window, hosts.count, workload);
  if (config.background.load > 0) AddBackground(config, hosts, seed, workload);
  return workload;
}

Workload WithoutBackground(const Workload& workload) {
  Workload rest = workload;
  std::erase_if(rest.flows, [](const Flow& flow) { return flow.background; });
  return rest;
}

Workload VictimsAlone(const Workload& workload) {
  Workload alone;
  for (const Flow& flow : workload.flows) {
    if (!flow.victim) continue;
    alone.flows.push_back(flow);
    alone.flows.back().trigger = alone.flows.back().fires_when_sent = kNoTrigger;
  }
  return alone;
}

}  // namespace paceline::tools
