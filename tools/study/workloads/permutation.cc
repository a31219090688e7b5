// permutation: every rank sends to one other and receives from one other.
#include "tools/study/workloads/kinds.h"

namespace paceline::tools {
namespace {

class Permutation : public Pattern {
 public:
  explicit Permutation(PatternReader& reader)
      : ranks_(reader.Count("ranks", 0, 0, 65536)), bytes_(reader.Bytes("bytes", 1'000'000)) {}

  absl::Status Build(WorkloadBuilder& builder) const override {
    std::vector<uint32_t> hosts;
    if (absl::Status status = builder.SpreadRanks(ranks_, &hosts); !status.ok()) return status;
    const std::vector<uint32_t> to = builder.RandomCycle(static_cast<uint32_t>(hosts.size()));
    for (size_t i = 0; i < hosts.size(); ++i) builder.AddFlow(hosts[i], hosts[to[i]], bytes_);
    return absl::OkStatus();
  }

 private:
  const uint32_t ranks_;
  const uint64_t bytes_;
};

}  // namespace

LoadedPattern LoadPermutation(PatternReader& reader) { return std::make_unique<Permutation>(reader); }

}  // namespace paceline::tools
