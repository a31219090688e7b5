#include "tools/study/workloads/poisson.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tools/study/workloads/kinds.h"

namespace paceline::tools {
namespace {

class Poisson : public Pattern {
 public:
  explicit Poisson(PatternReader& reader)
      : load_(reader.Number("load", 0.5, 0.001, 2)), flows_(reader.Integer("flows", 1000, 1, 10'000'000)) {
    const std::string name = reader.Text("sizes", "web_search");
    absl::StatusOr<FlowSizes> sizes = FlowSizes::Load(name, reader.directory());
    if (sizes.ok()) {
      sizes_ = *std::move(sizes);
    } else {
      reader.Fail("sizes", absl::StrCat("= ", std::string(sizes.status().message())));
    }
  }

  absl::Status Build(WorkloadBuilder& builder) const override {
    builder.workload().flows =
        PoissonFlows({.load = load_, .most_flows = flows_}, sizes_, builder.hosts(), builder.start(), builder.random());
    for (Flow& flow : builder.workload().flows) flow.start += builder.Jitter();
    return absl::OkStatus();
  }

  bool independent() const override { return false; }  // an open loop has no window

 private:
  const double load_;
  const uint64_t flows_;
  FlowSizes sizes_;
};

}  // namespace

std::vector<Flow> PoissonFlows(const PoissonLoad& load, const FlowSizes& sizes, const WorkloadHosts& hosts,
                               sim::Picos start, Random& random) {
  const double gap = sizes.mean() * 8000 / (load.load * hosts.gbps * hosts.count);  // picoseconds, in the mean
  std::vector<Flow> flows;
  auto at = static_cast<double>(start);
  while (flows.size() < load.most_flows) {
    at += -std::log(1 - random.Unit()) * gap;
    if (at >= static_cast<double>(load.until)) break;
    Flow flow;
    flow.source = static_cast<uint32_t>(random.Below(hosts.count));
    flow.destination = static_cast<uint32_t>((flow.source + 1 + random.Below(hosts.count - 1)) % hosts.count);
    flow.bytes = sizes.At(random.Unit());
    flow.start = static_cast<sim::Picos>(at);
    flows.push_back(flow);
  }
  return flows;
}

LoadedPattern LoadPoisson(PatternReader& reader) { return std::make_unique<Poisson>(reader); }

}  // namespace paceline::tools
