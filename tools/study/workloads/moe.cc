// moe: the exchange of a mixture-of-experts layer. Every rank sends each expert's rank what it has for it (dispatch);
// a rank that has received all of it computes and sends everything back where it came from (combine).
//
// How much an expert gets falls with its place in the order of popularity as 1 / place^skew (Zipf); the seed chooses
// who is how popular. `bytes` are the mean per pair: with skew 0 every pair has as many. What a rank has for its own
// experts does not travel.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tools/study/micros.h"
#include "tools/study/workloads/kinds.h"
#include "tools/study/workloads/rank_graph.h"

namespace paceline::tools {
namespace {

class MixtureOfExperts : public Pattern {
 public:
  explicit MixtureOfExperts(PatternReader& reader)
      : keys_(RankKeys::Read(reader, 1)),
        bytes_(reader.Bytes("bytes", 65536)),
        experts_(reader.Count("experts", 0, 0, 65536)),
        skew_(reader.Number("skew", 0.5, 0, 10)),
        compute_(MicrosToPicos(reader.Number("compute_us", 0, 0, kMaxMicros))) {}

  absl::Status Build(WorkloadBuilder& builder) const override {
    absl::StatusOr<RankGraph> graph = RankGraph::Create(builder, keys_);
    if (!graph.ok()) return graph.status();
    const uint32_t ranks = graph->ranks();
    const uint32_t experts = experts_ == 0 ? ranks : experts_;
    if (experts % ranks != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("workload.experts = ", experts, " must be a multiple of the ", ranks, " ranks"));
    }
    const std::vector<uint64_t> bytes = BytesTo(builder, ranks, experts);
    std::vector<Event> computed;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      computed.push_back(graph->NewCompute(rank, compute_, ranks - 1));
    }
    for (uint32_t step = 1; step < ranks; ++step) {
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const uint32_t to = (rank + step) % ranks;
        graph->Send(rank, to, bytes[to], kAtStart, computed[to]);
      }
    }
    for (uint32_t step = 1; step < ranks; ++step) {
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        graph->Send(rank, (rank + step) % ranks, bytes[rank], computed[rank]);
      }
    }
    return absl::OkStatus();
  }

  bool independent() const override { return false; }

 private:
  // What each rank gets from each other.
  std::vector<uint64_t> BytesTo(WorkloadBuilder& builder, uint32_t ranks, uint32_t experts) const {
    const std::vector<uint32_t> place = builder.Shuffled(experts);
    std::vector<double> weight(ranks);
    double total = 0;
    for (uint32_t expert = 0; expert < experts; ++expert) {
      const double own = std::pow(place[expert] + 1, -skew_);
      weight[expert % ranks] += own;
      total += own;
    }
    std::vector<uint64_t> bytes;
    for (double own : weight) {
      bytes.push_back(static_cast<uint64_t>(std::llround(static_cast<double>(bytes_) * ranks * own / total)));
    }
    return bytes;
  }

  const RankKeys keys_;
  const uint64_t bytes_;
  const uint32_t experts_;
  const double skew_;
  const sim::Picos compute_;
};

}  // namespace

LoadedPattern LoadMoe(PatternReader& reader) { return std::make_unique<MixtureOfExperts>(reader); }

}  // namespace paceline::tools
