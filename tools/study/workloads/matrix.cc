// connection_matrix: the flows and triggers of a file.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tools/study/connection_matrix.h"
#include "tools/study/workloads/kinds.h"

namespace paceline::tools {
namespace {

class Matrix : public Pattern {
 public:
  explicit Matrix(PatternReader& reader) {
    const std::filesystem::path file = reader.Text("file", "");
    if (file.empty()) reader.Fail("file", "must name a connection matrix");
    path_ = file.is_absolute() || reader.directory().empty() ? file : std::filesystem::path(reader.directory()) / file;
  }

  absl::Status Build(WorkloadBuilder& builder) const override {
    absl::StatusOr<ConnectionMatrix> matrix = LoadConnectionMatrix(path_.string());
    if (!matrix.ok()) return matrix.status();
    const uint32_t hosts = builder.hosts().count;
    if (matrix->nodes > hosts) {
      return absl::InvalidArgumentError(absl::StrCat(path_.string(), " is for ", matrix->nodes,
                                                     " nodes: fabric.hosts = ", hosts, " must not be less"));
    }
    for (Flow& flow : matrix->workload.flows) {
      flow.start += builder.start();
      if (flow.trigger == kNoTrigger) flow.start += builder.Jitter();
    }
    builder.workload() = std::move(matrix->workload);
    return absl::OkStatus();
  }

  bool independent() const override { return false; }

  absl::StatusOr<uint32_t> DefaultHosts() const override {
    absl::StatusOr<ConnectionMatrix> matrix = LoadConnectionMatrix(path_.string());
    if (!matrix.ok()) return matrix.status();
    return matrix->nodes;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

LoadedPattern LoadMatrix(PatternReader& reader) { return std::make_unique<Matrix>(reader); }

}  // namespace paceline::tools
