// Two controllers as simple as can be, so that tests of the core do not depend on any real algorithm:
//   kWindow   a fixed window in bytes, no credit;
//   kCredit   receivers grant whatever is asked for at once, up to a budget in flight per flow.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "cc/congestion_control.h"

namespace paceline::support {

enum class TestControl : uint8_t { kWindow, kCredit };

// `bytes`: the window, or the budget.
std::unique_ptr<CongestionControl> NewTestCongestionControl(TestControl kind, uint64_t bytes);

}  // namespace paceline::support
