// A scenario and its outcome in words.
//
// Who calls it: the report only; pure functions, any thread. All results are plain text, not HTML, unless they say so.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace paceline::tools {

// A short title: "Incast 32 to 1, 1 MB each".
std::string DescribeTitle(const nlohmann::json& scenario);

// What the hosts do, in a sentence or two.
std::string DescribeWorkload(const nlohmann::json& scenario);

// One property of the fabric or of the run.
struct Fact {
  std::string name;
  std::string value;
  std::string help;  // what it means, one sentence
};

std::vector<Fact> DescribeFabric(const nlohmann::json& results);

// Who came first, by how much, and who lost packets. Empty without runs.
std::string DescribeOutcome(const nlohmann::json& results);

}  // namespace paceline::tools
