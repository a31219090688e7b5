// What the engines of a context have in common: who takes which request to connect, and the credit for each port, which
// all of them hand out.
//
// Thread rule: as its parts. Outlives the engines.
#pragma once

#include <array>

#include "api/cpp/src/request_spreader.h"
#include "cc/credit_pool.h"
#include "transport/base/limits.h"

namespace paceline::api {

struct EngineGroup {
  RequestSpreader spreader;
  std::array<CreditPool, limits::kMaxPorts> credit;  // by port
};

}  // namespace paceline::api
