// Options of a context from PACELINE_* variables, for those who look some of them up elsewhere than in the environment
// alone, and parts of their values.
//
// Thread rule: any thread, as far as `look_up` allows it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "paceline/options.h"

namespace paceline::api {

// As ContextOptions::FromEnvironment. `look_up` is given the name of each variable ("PACELINE_LANE"); nullptr: not set.
Result<ContextOptions> OptionsFromVariables(ContextOptions defaults,
                                            const std::function<const char*(const char*)>& look_up);

// Puts "key=value,key=value" over what is there. False: a part is none of these.
bool AddPairs(const std::string& text, std::map<std::string, std::string>& pairs);

}  // namespace paceline::api
