// Options of a context from PACELINE_* variables, for those who look some of them up elsewhere than in the environment
// alone.
//
// Thread rule: any thread, as far as `look_up` allows it.
#pragma once

#include <functional>

#include "paceline/options.h"

namespace paceline::api {

// As ContextOptions::FromEnvironment. `look_up` is given the name of each variable ("PACELINE_LANE"); nullptr: not set.
Result<ContextOptions> OptionsFromVariables(ContextOptions defaults,
                                            const std::function<const char*(const char*)>& look_up);

}  // namespace paceline::api
