// The xdp lane of a build without libxdp, libbpf or clang.
#include "transport/lane/xdp/xdp_lane.h"

namespace paceline {
namespace {

absl::Status Absent() {
  return absl::UnimplementedError(
      "built without AF_XDP (Debian: libxdp-dev, libbpf-dev and clang, then configure and build again)");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> CreateXdpLane(const XdpLaneOptions&) { return Absent(); }
absl::Status CheckXdpLane() { return Absent(); }

}  // namespace paceline
