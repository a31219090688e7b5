#include "tools/study/report/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/study/report/sample_data.h"
#include "tools/study/report/columns.h"

namespace paceline::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

nlohmann::json MakeRun(const std::string& algorithm, int seed, double completion_us, double drops) {
  return {{"algorithm", algorithm},
          {"seed", seed},
          {"flows", 2},
          {"finished", 2},
          {"completion_us", completion_us},
          {"ratio", completion_us / 100},
          {"drops", drops},
          {"ecn_marks", drops},
          {"goodput_gbps", 50}};
}

// The results of a study with these runs.
nlohmann::json Results(const std::vector<nlohmann::json>& runs) { return {{"runs", runs}}; }

// The row of an algorithm, from its head to the next row.
std::string RowOf(const std::string& html, const std::string& algorithm) {
  const size_t begin = html.find("data-algorithm=\"" + algorithm + "\"");
  return begin == std::string::npos ? "" : html.substr(begin, html.find("</tr>", begin) - begin);
}

StyleOf Styles(const nlohmann::json& results) {
  ReportPage page;
  page.sections.push_back({.title = "", .shows = "", .command = "", .results = results, .series = {}});
  return AssignStyles(page);
}

TEST(AssignStyles, KeepsTheFirstColourForTitaAndWrapsTheOthers) {
  nlohmann::json runs = nlohmann::json::array();
  for (int i = 0; i < 9; ++i) runs.push_back(MakeRun("other" + std::to_string(i), 1, 1, 0));
  runs.push_back(MakeRun("tita", 1, 1, 0));
  const StyleOf styles = Styles({{"runs", runs}});
  EXPECT_EQ(styles.at("tita").colour, 0);
  EXPECT_EQ(styles.at("other0").colour, 1);
  EXPECT_EQ(styles.at("other6").colour, 7);
  EXPECT_EQ(styles.at("other6").dash, 0);
  EXPECT_EQ(styles.at("other7").colour, 1);
  EXPECT_EQ(styles.at("other7").dash, 1);
}

TEST(ComparisonTable, ShowsTheMeanAndTheWorstSeedAndMarksTheBest) {
  const nlohmann::json results = Results({MakeRun("tita", 1, 100, 0), MakeRun("tita", 2, 102, 0),
                                          MakeRun("swift", 1, 110, 3), MakeRun("swift", 2, 112, 7)});
  const std::string html = ComparisonTable(results, Styles(results));
  EXPECT_THAT(RowOf(html, "tita"), HasSubstr("best\" data-value=\"101.0\">101.0<small>102.0</small>"));
  EXPECT_THAT(RowOf(html, "swift"), HasSubstr(">111.0<small>112.0</small>"));
  EXPECT_THAT(RowOf(html, "swift"), Not(HasSubstr("best")));
  EXPECT_THAT(html, HasSubstr("title=\""));
  EXPECT_THAT(html, HasSubstr("<span class=\"unit\">Gb/s</span>"));
}

TEST(ComparisonTable, MarksNothingWhereAllAreLevelOrOneIsAlone) {
  const nlohmann::json level = Results({MakeRun("tita", 1, 100, 0), MakeRun("swift", 1, 100.01, 0)});
  EXPECT_THAT(ComparisonTable(level, Styles(level)), Not(HasSubstr("best")));
  const nlohmann::json alone = Results({MakeRun("tita", 1, 100, 0)});
  EXPECT_THAT(ComparisonTable(alone, Styles(alone)), Not(HasSubstr("best")));
}

TEST(ComparisonTable, NeverCallsAnUnfinishedOneBest) {
  nlohmann::json late = MakeRun("swift", 1, 50, 0);
  late["finished"] = 1;
  const nlohmann::json results = Results({MakeRun("tita", 1, 100, 4), late});
  const std::string html = ComparisonTable(results, Styles(results));
  EXPECT_THAT(RowOf(html, "swift"), HasSubstr("1 of 2 flows unfinished"));
  EXPECT_THAT(RowOf(html, "swift"), Not(HasSubstr("best")));
  EXPECT_THAT(RowOf(html, "tita"), HasSubstr("best"));
}

TEST(ComparisonTable, ComputingMayBeUnfinishedToo) {
  nlohmann::json late = MakeRun("swift", 1, 50, 0);
  late["missed_deadline"] = true;
  const nlohmann::json results = Results({MakeRun("tita", 1, 100, 0), late});
  const std::string html = ComparisonTable(results, Styles(results));
  EXPECT_THAT(RowOf(html, "swift"), HasSubstr("computing unfinished"));
  EXPECT_THAT(RowOf(html, "swift"), Not(HasSubstr("best")));
}

TEST(ComparisonTable, HoldsWithoutRunsAndWithoutFigures) {
  EXPECT_THAT(ComparisonTable(nlohmann::json::object(), {}), HasSubstr("no runs"));
  const nlohmann::json bare = {{"runs", {{{"algorithm", "tita"}}, nlohmann::json()}}};
  EXPECT_THAT(ComparisonTable(bare, Styles(bare)), HasSubstr("tita"));
}

TEST(ColumnsFor, ShowsPausesAndFaultsOnlyWhenThereWereAny) {
  nlohmann::json run = MakeRun("tita", 1, 100, 0);
  run["pfc_pauses"] = 0;
  const auto has_pauses = [](const nlohmann::json& results) {
    const auto columns = ColumnsFor(results);
    return std::any_of(columns.begin(), columns.end(), [](const Column& c) { return c.path == "pfc_pauses"; });
  };
  EXPECT_FALSE(has_pauses(Results({run})));
  run["pfc_pauses"] = 3;
  EXPECT_TRUE(has_pauses(Results({run})));
}

TEST(ColumnsFor, TakesTheTimeUnitThatFits) {
  EXPECT_EQ(ColumnsFor(Results({MakeRun("a", 1, 2600, 0)}))[0].unit, "\u00B5s");
  EXPECT_EQ(ColumnsFor(Results({MakeRun("a", 1, 2.6e5, 0)}))[0].unit, "ms");
  EXPECT_EQ(ColumnsFor(Results({MakeRun("a", 1, 2.6e9, 0)}))[0].unit, "s");
}

TEST(RunTable, HasARowForEachRun) {
  const ReportSection section = SampleSection({});
  const std::string html = RunTable(section.results, Styles(section.results));
  size_t rows = 0;
  for (size_t at = html.find("<tr data-algorithm"); at != std::string::npos;
       at = html.find("<tr data-algorithm", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, section.results["runs"].size());
}

TEST(OverviewTable, LinksEverySection) {
  const ReportPage page = SamplePage();
  const std::string html = OverviewTable(page, AssignStyles(page));
  EXPECT_THAT(html, HasSubstr("href=\"#section-3\""));
  EXPECT_THAT(html, HasSubstr("no loss"));
}

TEST(Glossary, ExplainsEachColumnOnce) {
  const std::string html = Glossary(SamplePage());
  EXPECT_EQ(html.find("<dt>Goodput</dt>"), html.rfind("<dt>Goodput</dt>"));
  EXPECT_NE(html.find("<dt>Goodput</dt>"), std::string::npos);
}

}  // namespace
}  // namespace paceline::tools
