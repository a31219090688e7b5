// Gathers what `paceline info` shows, as JSON; the text form is made from it.
//
// Thread rule: control path; looks at the operating system.
#pragma once

#include "nlohmann/json.hpp"

namespace paceline::tools {

// Each entry of a list has at least "name", "usable" and, where not usable, "reason".
nlohmann::json GatherLanes();
nlohmann::json GatherInterfaces();
// {"devices": [...], "reason": "..."}: reason when there are none.
nlohmann::json GatherHcas();
nlohmann::json GatherGpus();
nlohmann::json GatherPlugins();
nlohmann::json GatherAlgorithms();
nlohmann::json GatherPathPolicies();
nlohmann::json GatherContexts();

}  // namespace paceline::tools
