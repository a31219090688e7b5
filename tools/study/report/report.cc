#include "tools/study/report/report.h"

#include <string>

#include "tools/study/report/assets.h"
#include "tools/study/report/describe.h"
#include "tools/study/report/html.h"
#include "tools/study/report/page_data.h"
#include "tools/study/report/run_stats.h"
#include "tools/study/report/scenario_toml.h"
#include "tools/study/report/tables.h"

namespace paceline::tools {
namespace {

std::string Paragraph(const std::string& classes, const std::string& text) {
  return text.empty() ? "" : "<p class=\"" + classes + "\">" + EscapeHtml(text) + "</p>";
}

std::string FactsHtml(const nlohmann::json& results) {
  std::string html;
  for (const auto& fact : DescribeFabric(results)) {
    html += "<div title=\"" + EscapeHtml(fact.help) + "\"><dt>" + EscapeHtml(fact.name) + "</dt><dd>" +
            EscapeHtml(fact.value) + "</dd></div>";
  }
  return html.empty() ? "" : "<dl class=\"facts\">" + html + "</dl>";
}

bool SeveralSeeds(const nlohmann::json& results) { return Runs(results).size() > AlgorithmsOf(results).size(); }

std::string ComparisonNote(const nlohmann::json& results) {
  std::string text = SeveralSeeds(results) ? "Mean over the seeds, the worst seed in small below it." : "One seed.";
  if (AlgorithmsOf(results).size() > 1) text += " The best of each column is marked.";
  return text + " Point at a heading to see what it means; click it to sort.";
}

std::string TitleOf(const ReportSection& section) {
  return section.title.empty() ? DescribeTitle(Scenario(section.results)) : section.title;
}

std::string SectionHtml(const ReportPage& page, size_t index, const StyleOf& styles) {
  const ReportSection& section = page.sections[index];
  const nlohmann::json& results = section.results;
  const bool alone = page.sections.size() == 1;
  const std::string command = section.command.empty() ? "paceline study scenario.toml" : section.command;
  return FillTemplate(kSectionTemplate, {{"number", std::to_string(index + 1)},
                                         {"index", std::to_string(index)},
                                         {"heading", alone ? "" : "<h2>" + EscapeHtml(TitleOf(section)) + "</h2>"},
                                         {"shows", Paragraph("shows", section.shows)},
                                         {"workload", Paragraph("workload", DescribeWorkload(Scenario(results)))},
                                         {"outcome", Paragraph("outcome", DescribeOutcome(results))},
                                         {"facts", FactsHtml(results)},
                                         {"comparison_note", EscapeHtml(ComparisonNote(results))},
                                         {"comparison", ComparisonTable(results, styles)},
                                         {"runs", RunTable(results, styles)},
                                         {"open", alone ? " open" : ""},
                                         {"command", EscapeHtml(command)},
                                         {"scenario", EscapeHtml(ScenarioToml(Scenario(results)))}});
}

}  // namespace

std::string RenderReport(const nlohmann::json& results, const ReportSeries& series) {
  ReportPage page;
  page.title = DescribeTitle(Scenario(results));
  page.sections.push_back({.title = page.title, .shows = "", .command = "", .results = results, .series = series});
  return RenderReport(page);
}

std::string RenderReport(const ReportPage& page) {
  const StyleOf styles = AssignStyles(page);
  std::string title = page.title;
  if (title.empty()) title = page.sections.size() == 1 ? TitleOf(page.sections[0]) : "Congestion study";
  std::string sections;
  for (size_t i = 0; i < page.sections.size(); ++i) sections += SectionHtml(page, i, styles);
  std::string overview;
  if (page.sections.size() > 1) {
    overview =
        "<section class=\"overall\"><h2>All scenarios at a glance</h2><p class=\"note\">Completion over the ideal one, "
        "mean over the seeds (1.000 is the bound of the fabric); below it, the packets that switches dropped or "
        "trimmed. The best of each row is marked.</p><div class=\"scroll\">" +
        OverviewTable(page, styles) + "</div></section>";
  }
  const std::string version = VersionOf(page);
  return FillTemplate(kPageTemplate, {{"title", EscapeHtml(title)},
                                      {"lead", Paragraph("lead", page.lead)},
                                      {"version", EscapeHtml(version.empty() ? "" : "version " + version)},
                                      {"overview", overview},
                                      {"sections", sections},
                                      {"glossary", Glossary(page)},
                                      {"data", ScriptJson(PageData(page, styles))},
                                      {"library_css", std::string(kChartLibraryCss)},
                                      {"page_css", std::string(kPageCss)},
                                      {"charts_css", std::string(kChartsCss)},
                                      {"print_css", std::string(kPrintCss)},
                                      {"library_js", std::string(kChartLibraryJs)},
                                      {"format_js", std::string(kFormatJs)},
                                      {"line_chart_js", std::string(kLineChartJs)},
                                      {"bar_chart_js", std::string(kBarChartJs)},
                                      {"charts_js", std::string(kChartsJs)},
                                      {"report_js", std::string(kReportJs)}});
}

}  // namespace paceline::tools
