// alltoall: every rank sends to every other.
#include "tools/study/workloads/kinds.h"

namespace paceline::tools {
namespace {

class AllToAll : public Pattern {
 public:
  explicit AllToAll(PatternReader& reader)
      : ranks_(reader.Count("ranks", 0, 0, 65536)), bytes_(reader.Bytes("bytes", 1'000'000)) {}

  absl::Status Build(WorkloadBuilder& builder) const override {
    std::vector<uint32_t> hosts;
    if (absl::Status status = builder.SpreadRanks(ranks_, &hosts); !status.ok()) return status;
    const size_t ranks = hosts.size();
    // In the order in which the sources post: the first message of each, then the second of each, ...
    for (size_t step = 1; step < ranks; ++step) {
      for (size_t i = 0; i < ranks; ++i) builder.AddFlow(hosts[i], hosts[(i + step) % ranks], bytes_);
    }
    return absl::OkStatus();
  }

 private:
  const uint32_t ranks_;
  const uint64_t bytes_;
};

}  // namespace

LoadedPattern LoadAllToAll(PatternReader& reader) { return std::make_unique<AllToAll>(reader); }

}  // namespace paceline::tools
