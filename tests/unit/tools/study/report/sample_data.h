// Made-up but plausible results and series, for the tests of the report and for looking at the page.
#pragma once

#include <string>
#include <vector>

#include "tools/study/report/report.h"

namespace paceline::tools {

struct SampleOptions {
  std::string kind = "incast";
  std::vector<std::string> algorithms = {"tita", "swift", "dcqcn", "fixed_window"};
  int seeds = 3;
  int flows = 32;
  int samples = 2000;  // points of each time series
  bool mixed_sizes = false;
  bool faults = false;
};

// The same options give the same section, on any machine.
ReportSection SampleSection(const SampleOptions& options);

// Three scenarios on one page.
ReportPage SamplePage();

}  // namespace paceline::tools
