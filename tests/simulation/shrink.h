// Makes a failing scenario small: what is not needed for it to fail is taken out, setting by setting.
#pragma once

#include <functional>

#include "tests/simulation/scenario.h"

namespace paceline::simulation {

// `failing` must fail; the result does too. Each setting is tried at its simplest, and counts are halved, as long as
// any such change leaves a failure, at most `most_runs` calls of `fails`.
Scenario Shrink(const Scenario& failing, const std::function<bool(const Scenario&)>& fails, int most_runs = 400);

}  // namespace paceline::simulation
