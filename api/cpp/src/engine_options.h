// The API's options as the engine, the lanes and the waiting want them, checked.
//
// Thread rule: pure functions, but for the operating system's randomness.
#pragma once

#include "paceline/options.h"
#include "paceline/status.h"
#include "transport/engine/engine.h"
#include "transport/engine/lane_factory.h"
#include "transport/engine/wait_policy.h"

namespace paceline::api {

Result<EngineOptions> ToEngineOptions(const ContextOptions& options);
Result<LaneFactoryOptions> ToLaneOptions(const ContextOptions& options);
WaitPolicyOptions ToWaitOptions(const ContextOptions& options);

}  // namespace paceline::api
