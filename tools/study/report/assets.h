// The files of the page, embedded at build time (tools/study/report/embed_files.cmake writes the definitions).
//
// Who calls it: the report and its tests; read-only for the life of the program.
#pragma once

#include <string_view>

namespace paceline::tools {

extern const std::string_view kPageTemplate;     // page/page.html
extern const std::string_view kSectionTemplate;  // page/section.html
extern const std::string_view kPageCss;          // page/report.css
extern const std::string_view kChartsCss;        // page/charts.css
extern const std::string_view kPrintCss;         // page/print.css
extern const std::string_view kChartLibraryCss;  // vendor/uplot-1.6.32
extern const std::string_view kChartLibraryJs;   // vendor/uplot-1.6.32
extern const std::string_view kFormatJs;         // page/format.js
extern const std::string_view kLineChartJs;      // page/line_chart.js
extern const std::string_view kBarChartJs;       // page/bar_chart.js
extern const std::string_view kChartsJs;         // page/charts.js
extern const std::string_view kReportJs;         // page/report.js

}  // namespace paceline::tools
