#include "tools/study/workload.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/study/connection_matrix.h"
#include "transport/base/random.h"

namespace paceline::tools {
namespace {

std::vector<uint32_t> Shuffled(uint32_t count, Random& random) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

// A random permutation in which nobody is mapped to itself: one cycle through all (Sattolo).
std::vector<uint32_t> RandomCycle(uint32_t count, Random& random) {
  std::vector<uint32_t> to(count);
  std::iota(to.begin(), to.end(), 0u);
  for (uint32_t i = count; i > 1; --i) std::swap(to[i - 1], to[random.Below(i - 1)]);
  return to;
}

absl::Status TooFew(const std::string& key, uint64_t value, uint64_t hosts) {
  return absl::InvalidArgumentError(
      absl::StrCat("workload.", key, " = ", value, " does not fit into fabric.hosts = ", hosts));
}

class Builder {
 public:
  Builder(const WorkloadConfig& config, uint32_t hosts, uint64_t seed)
      : config_(config), hosts_(hosts), random_(seed ^ 0x776f726b6c6f6164) {}

  absl::StatusOr<Workload> Build() {
    absl::Status status;
    if (config_.kind == "incast") {
      status = AddIncast(nullptr);
    } else if (config_.kind == "alltoall") {
      status = AddAllToAll();
    } else if (config_.kind == "permutation") {
      status = AddPermutation();
    } else if (config_.kind == "victim") {
      status = AddVictim();
    } else {
      return absl::InvalidArgumentError(absl::StrCat("workload.kind = \"", config_.kind, "\" is not known"));
    }
    if (!status.ok()) return status;
    if (config_.window > 0) AddWindows();
    return std::move(workload_);
  }

 private:
  void AddFlow(uint32_t source, uint32_t destination, uint64_t bytes, bool victim = false) {
    Flow flow;
    flow.source = source;
    flow.destination = destination;
    flow.bytes = bytes;
    flow.start = config_.start;
    if (config_.start_jitter > 0) {
      flow.start += static_cast<sim::Picos>(random_.Below(static_cast<uint64_t>(config_.start_jitter) + 1));
    }
    flow.victim = victim;
    workload_.flows.push_back(flow);
  }

  // Ranks spread evenly over the hosts.
  absl::Status Ranks(std::vector<uint32_t>* hosts) const {
    const uint32_t ranks = config_.ranks == 0 ? hosts_ : config_.ranks;
    if (ranks < 2 || ranks > hosts_) return TooFew("ranks", ranks, hosts_);
    for (uint64_t i = 0; i < ranks; ++i) hosts->push_back(static_cast<uint32_t>(i * hosts_ / ranks));
    return absl::OkStatus();
  }

  // Random senders to a random receiver; `others` gets the hosts that take no part.
  absl::Status AddIncast(std::vector<uint32_t>* others) {
    if (config_.fan_in < 1 || config_.fan_in >= hosts_) return TooFew("fan_in", config_.fan_in, hosts_);
    const std::vector<uint32_t> order = Shuffled(hosts_, random_);
    for (uint32_t i = 1; i <= config_.fan_in; ++i) AddFlow(order[i], order[0], config_.bytes);
    if (others != nullptr) others->assign(order.begin() + config_.fan_in + 1, order.end());
    return absl::OkStatus();
  }

  absl::Status AddAllToAll() {
    std::vector<uint32_t> hosts;
    if (absl::Status status = Ranks(&hosts); !status.ok()) return status;
    const size_t ranks = hosts.size();
    // In the order in which the sources post: the first message of each, then the second of each, ...
    for (size_t step = 1; step < ranks; ++step) {
      for (size_t i = 0; i < ranks; ++i) AddFlow(hosts[i], hosts[(i + step) % ranks], config_.bytes);
    }
    return absl::OkStatus();
  }

  absl::Status AddPermutation() {
    std::vector<uint32_t> hosts;
    if (absl::Status status = Ranks(&hosts); !status.ok()) return status;
    const std::vector<uint32_t> to = RandomCycle(static_cast<uint32_t>(hosts.size()), random_);
    for (size_t i = 0; i < hosts.size(); ++i) AddFlow(hosts[i], hosts[to[i]], config_.bytes);
    return absl::OkStatus();
  }

  absl::Status AddVictim() {
    std::vector<uint32_t> others;
    if (absl::Status status = AddIncast(&others); !status.ok()) return status;
    if (others.size() < 2) return TooFew("fan_in", config_.fan_in, hosts_);
    std::sort(others.begin(), others.end());
    const std::vector<uint32_t> to = RandomCycle(static_cast<uint32_t>(others.size()), random_);
    for (size_t i = 0; i < others.size(); ++i) AddFlow(others[i], others[to[i]], config_.victim_bytes, true);
    return absl::OkStatus();
  }

  // Of each source's flows the first `window` start by themselves, each that completes starts the next.
  void AddWindows() {
    std::vector<std::vector<uint32_t>> by_source(hosts_);
    for (uint32_t i = 0; i < workload_.flows.size(); ++i) by_source[workload_.flows[i].source].push_back(i);
    for (const std::vector<uint32_t>& flows : by_source) {
      if (flows.size() <= config_.window) continue;
      const auto number = static_cast<uint32_t>(workload_.triggers.size());
      Trigger trigger;
      trigger.one_at_a_time = true;
      for (size_t i = 0; i < flows.size(); ++i) {
        Flow& flow = workload_.flows[flows[i]];
        flow.fires_when_sent = number;
        if (i < config_.window) continue;
        flow.trigger = number;
        trigger.flows.push_back(flows[i]);
      }
      workload_.triggers.push_back(std::move(trigger));
    }
  }

  const WorkloadConfig& config_;
  const uint32_t hosts_;
  Random random_;
  Workload workload_;
};

}  // namespace

absl::StatusOr<Workload> BuildWorkload(const WorkloadConfig& config, uint32_t hosts, uint64_t seed) {
  if (config.kind != "connection_matrix") return Builder(config, hosts, seed).Build();
  absl::StatusOr<ConnectionMatrix> matrix = LoadConnectionMatrix(config.file);
  if (!matrix.ok()) return matrix.status();
  if (matrix->nodes > hosts) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.file, " is for ", matrix->nodes, " nodes: fabric.hosts = ", hosts, " must not be less"));
  }
  for (Flow& flow : matrix->workload.flows) flow.start += config.start;
  return std::move(matrix->workload);
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
