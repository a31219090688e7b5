// The columns of the comparison table: which figure each shows, how, and what it means.
//
// Who calls it: the tables only; pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::tools {

enum class Better { kLower, kHigher, kNeither };

struct Column {
  std::string path;   // in a run of the results
  std::string group;  // the heading over several columns
  std::string name;
  std::string unit;
  std::string help;  // what it means, one or two sentences
  Better better = Better::kLower;
  double divisor = 1;             // the results' unit to the shown one
  std::string (*format)(double);  // the shown value as text
};

// The columns for these results. Times are in the unit that fits them; columns that are zero or missing everywhere are
// left out when they are of interest only then (pauses, faults, lost control packets).
std::vector<Column> ColumnsFor(const nlohmann::json& results);

}  // namespace paceline::tools
