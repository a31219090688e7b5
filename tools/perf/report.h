// From the results of all ranks to what the user sees: a row of a table and a JSON object for each size.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/perf/result.h"
#include "tools/perf/spec.h"

namespace paceline::tools {

// What the ranks measured at one size, joined.
struct SizeReport {
  uint64_t size = 0;
  nlohmann::json json;    // as docs/tuning.md lists it
  std::string histogram;  // text
  bool verified = false;
};

SizeReport JoinResults(const TestSpec& spec, const std::string& lane, uint64_t size, uint32_t window,
                       const std::vector<RankResult>& ranks);

// Heading and one row; below it, what else is to be said of it.
std::string TableHeading(const TestSpec& spec, uint32_t ranks);
std::string TableRow(const TestSpec& spec, const SizeReport& report);

// One size: its object; several: {"paceline": version, "runs": [...]}.
nlohmann::json ReportJson(const std::vector<SizeReport>& reports, const std::string& version);

}  // namespace paceline::tools
