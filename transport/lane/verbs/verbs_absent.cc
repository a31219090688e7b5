// The verbs lane of a build without the headers of libibverbs.
#include "transport/lane/verbs/verbs_lane.h"

namespace paceline {
namespace {

absl::Status Absent() {
  return absl::UnimplementedError("built without libibverbs (Debian: libibverbs-dev, then configure and build again)");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> CreateVerbsLane(const VerbsLaneOptions&, VerbsCalls*) { return Absent(); }
absl::Status CheckVerbsLane() { return Absent(); }
std::vector<VerbsPortInfo> ListVerbsLanePorts() { return {}; }

}  // namespace paceline
