// The resolved scenario as the TOML that `paceline study` reads.
//
// Who calls it: the report only; pure function, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace paceline::tools {

// TOML has no null: a key without a value is left out.
std::string ScenarioToml(const nlohmann::json& scenario);

}  // namespace paceline::tools
