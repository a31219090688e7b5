// What libpaceline-dpdk.so exports: one table, by the name of kDpdkModuleSymbol. Both sides are built together; a
// module of another build is refused by its version.
//
// Thread rule: the table is constant; its functions may be called from anywhere.
#pragma once

#include "transport/lane/dpdk/dpdk_lane.h"

namespace paceline {

struct DpdkModule {
  const char* version;      // of the Paceline it was built with
  absl::Status (*check)();  // whether create can work on this machine
  absl::StatusOr<std::vector<std::unique_ptr<Lane>>> (*create)(const DpdkLaneOptions& options);
};

inline constexpr char kDpdkModuleSymbol[] = "kPacelineDpdkModule";

}  // namespace paceline
