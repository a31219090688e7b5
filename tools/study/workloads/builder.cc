#include "tools/study/workloads/builder.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace paceline::tools {

WorkloadBuilder::WorkloadBuilder(const WorkloadConfig& config, const WorkloadHosts& hosts, uint64_t seed)
    : hosts_(hosts), start_(config.start), jitter_(config.start_jitter), random_(seed ^ 0x776f726b6c6f6164) {}

sim::Picos WorkloadBuilder::Jitter() {
  return jitter_ > 0 ? static_cast<sim::Picos>(random_.Below(static_cast<uint64_t>(jitter_) + 1)) : 0;
}

Flow& WorkloadBuilder::AddFlow(uint32_t source, uint32_t destination, uint64_t bytes) {
  Flow flow;
  flow.source = source;
  flow.destination = destination;
  flow.bytes = bytes;
  flow.start = start_ + Jitter();
  workload_.flows.push_back(flow);
  return workload_.flows.back();
}

absl::Status WorkloadBuilder::SpreadRanks(uint32_t ranks, std::vector<uint32_t>* hosts) const {
  const uint32_t count = ranks == 0 ? hosts_.count : ranks;
  if (count < 2 || count > hosts_.count) return TooMany("ranks", count);
  for (uint64_t i = 0; i < count; ++i) hosts->push_back(static_cast<uint32_t>(i * hosts_.count / count));
  return absl::OkStatus();
}

std::vector<uint32_t> WorkloadBuilder::Shuffled(uint32_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
  return order;
}

// Sattolo's algorithm.
std::vector<uint32_t> WorkloadBuilder::RandomCycle(uint32_t count) {
  std::vector<uint32_t> to(count);
  std::iota(to.begin(), to.end(), 0u);
  for (uint32_t i = count; i > 1; --i) std::swap(to[i - 1], to[random_.Below(i - 1)]);
  return to;
}

absl::Status WorkloadBuilder::TooMany(const std::string& key, uint64_t value) const {
  return absl::InvalidArgumentError(
      absl::StrCat("workload.", key, " = ", value, " does not fit into fabric.hosts = ", hosts_.count));
}

}  // namespace paceline::tools
