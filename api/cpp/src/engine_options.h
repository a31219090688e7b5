// The API's options as the engine, the lanes and the waiting want them, checked.
//
// Thread rule: pure functions, but for the operating system's randomness.
#pragma once

#include "cc/credit_pool.h"
#include "paceline/options.h"
#include "paceline/status.h"
#include "transport/base/limits.h"
#include "transport/engine/engine.h"
#include "transport/engine/lane_factory.h"
#include "transport/engine/wait_policy.h"

namespace paceline::api {

constexpr uint32_t kMostEngines = 1u << limits::kMostIdPrefixBits;
static_assert(kMostEngines <= CreditPool::kMostMembers);

// Whether there can be so many engines.
Status CheckEngines(const ContextOptions& options);
// Of the engine with this number.
Result<EngineOptions> ToEngineOptions(const ContextOptions& options, size_t engine = 0);
Result<LaneFactoryOptions> ToLaneOptions(const ContextOptions& options, size_t engine = 0);
WaitPolicyOptions ToWaitOptions(const ContextOptions& options);

}  // namespace paceline::api
