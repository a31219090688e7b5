// incast: random senders to one random receiver. victim: the same, beside a permutation among the hosts that take no
// part in it.
#include <algorithm>

#include "tools/study/workloads/kinds.h"

namespace paceline::tools {
namespace {

class Incast : public Pattern {
 public:
  Incast(PatternReader& reader, bool victims)
      : fan_in_(reader.Count("fan_in", 8, 1, 65535)),
        bytes_(reader.Bytes("bytes", 1'000'000)),
        victim_bytes_(victims ? reader.Bytes("victim_bytes", 1'000'000) : 0) {}

  absl::Status Build(WorkloadBuilder& builder) const override {
    const uint32_t hosts = builder.hosts().count;
    if (fan_in_ >= hosts) return builder.TooMany("fan_in", fan_in_);
    const std::vector<uint32_t> order = builder.Shuffled(hosts);
    for (uint32_t i = 1; i <= fan_in_; ++i) builder.AddFlow(order[i], order[0], bytes_);
    return victim_bytes_ == 0 ? absl::OkStatus() : AddVictims(builder, {order.begin() + fan_in_ + 1, order.end()});
  }

 private:
  absl::Status AddVictims(WorkloadBuilder& builder, std::vector<uint32_t> others) const {
    if (others.size() < 2) return builder.TooMany("fan_in", fan_in_);
    std::sort(others.begin(), others.end());
    const std::vector<uint32_t> to = builder.RandomCycle(static_cast<uint32_t>(others.size()));
    for (size_t i = 0; i < others.size(); ++i) {
      builder.AddFlow(others[i], others[to[i]], victim_bytes_).victim = true;
    }
    return absl::OkStatus();
  }

  const uint32_t fan_in_;
  const uint64_t bytes_;
  const uint64_t victim_bytes_;  // 0: no victims
};

}  // namespace

LoadedPattern LoadIncast(PatternReader& reader) { return std::make_unique<Incast>(reader, false); }
LoadedPattern LoadVictim(PatternReader& reader) { return std::make_unique<Incast>(reader, true); }

}  // namespace paceline::tools
