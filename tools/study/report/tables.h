// The tables of the page, as HTML.
//
// Who calls it: the report only; pure functions, any thread. Every name from outside is escaped here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/study/report/report.h"

namespace paceline::tools {

// How an algorithm is drawn; the same in every section, table and chart.
struct SeriesStyle {
  int colour = 0;  // --series-N of the style sheet, 0 to 7
  int dash = 0;    // 0 is a full line; used when there are more algorithms than colours
};
using StyleOf = std::map<std::string, SeriesStyle>;

// `tita` alone has colour 0, the others follow in order of first appearance.
StyleOf AssignStyles(const ReportPage& page);

// One row for each algorithm: means over the seeds, the worst seed in small, the best of each column marked.
std::string ComparisonTable(const nlohmann::json& results, const StyleOf& styles);

// One row for each run.
std::string RunTable(const nlohmann::json& results, const StyleOf& styles);

// One row for each section, one column for each algorithm: ratio to the ideal and packets lost.
std::string OverviewTable(const ReportPage& page, const StyleOf& styles);

// What each column of the comparison means, as a definition list.
std::string Glossary(const ReportPage& page);

}  // namespace paceline::tools
