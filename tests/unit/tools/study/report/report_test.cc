#include "tools/study/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/study/report/sample_data.h"
#include "tools/study/report/assets.h"
#include "tools/study/report/html.h"

namespace paceline::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

// The JSON that the page's scripts read.
nlohmann::json EmbeddedData(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"study-data\">";
  const size_t begin = html.find(open) + open.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(RenderReport, FillsEveryPlaceholder) {
  const std::string html = RenderReport(SamplePage());
  for (const auto& name : TemplateNames(kPageTemplate)) EXPECT_THAT(html, Not(HasSubstr("{{" + name + "}}")));
  for (const auto& name : TemplateNames(kSectionTemplate)) EXPECT_THAT(html, Not(HasSubstr("{{" + name + "}}")));
  EXPECT_FALSE(TemplateNames(kPageTemplate).empty());
  EXPECT_FALSE(TemplateNames(kSectionTemplate).empty());
}

TEST(RenderReport, IsOneFileThatAsksTheNetworkForNothing) {
  const std::string html = RenderReport(SamplePage());
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  for (const char* part : {"src=\"", "href=\"http", "href=\"//", "url(", "@import", "<link rel=\"stylesheet"}) {
    EXPECT_THAT(html, Not(HasSubstr(part))) << part;
  }
  EXPECT_EQ(Count(html, "<script"), Count(html, "</script>"));
}

TEST(RenderReport, NoScriptEndsItsElementEarly) {
  for (const auto& script : {kChartLibraryJs, kFormatJs, kLineChartJs, kBarChartJs, kChartsJs, kReportJs}) {
    ASSERT_FALSE(script.empty());
    EXPECT_EQ(script.find("</script"), std::string_view::npos);
    EXPECT_EQ(script.find("<!--"), std::string_view::npos);
  }
}

TEST(RenderReport, ShowsTheScenarioAndTheResults) {
  const ReportSection section = SampleSection({});
  const std::string html = RenderReport(section.results, section.series);
  EXPECT_THAT(html, HasSubstr("<h1>Incast 32 to 1, 1 MB each</h1>"));
  EXPECT_THAT(html, HasSubstr("32 hosts out of 128 each send 1 MB"));
  EXPECT_THAT(html, HasSubstr("version 0.1.0"));
  EXPECT_THAT(html, HasSubstr("queue_bytes = 178880"));
  EXPECT_THAT(html, HasSubstr("paceline study scenario.toml"));
  const auto data = EmbeddedData(html);
  EXPECT_EQ(data["algorithms"][0]["name"], "tita");
  EXPECT_EQ(data["sections"][0]["series"].size(), 12U);
}

TEST(RenderReport, TakesSeveralScenarios) {
  const std::string html = RenderReport(SamplePage());
  EXPECT_THAT(html, HasSubstr("All scenarios at a glance"));
  EXPECT_EQ(Count(html, "<section class=\"study\""), 3U);
  EXPECT_THAT(html, HasSubstr("paceline study alltoall --out report"));
}

TEST(RenderReport, HostileNamesStayText) {
  const std::string evil = "</script><script>alert('x')</script><img src=x onerror=\"alert(1)\">{{title}}";
  SampleOptions options;
  options.algorithms = {"tita", evil, "__proto__", "a\xFF\xFE"};
  options.samples = 20;
  ReportSection section = SampleSection(options);
  section.title = evil;
  section.shows = evil;
  section.command = "paceline study '" + evil + "'";
  section.results["paceline"] = evil;
  section.results["scenario"]["fabric"]["topology"] = evil;
  section.results["scenario"]["workload"]["kind"] = evil;
  section.results["scenario"]["workload"][evil] = 7;
  section.results["scenario"]["fault"] = {{{"kind", evil}, {"target", evil}, {"at_us", 1}}};
  for (auto& run : section.series.runs) run.busiest_port = run.last_hop_port = evil;
  ReportPage page{.title = evil, .lead = evil, .sections = {section, section}};
  const std::string html = RenderReport(page);
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_EQ(Count(html, "<script"), Count(html, "</script>"));
  EXPECT_EQ(Count(html, "<script"), Count(std::string(kPageTemplate), "<script"));
  EXPECT_EQ(EmbeddedData(html)["algorithms"][1]["name"], evil);
}

TEST(RenderReport, HoldsWithoutSeries) {
  const ReportSection section = SampleSection({});
  const auto data = EmbeddedData(RenderReport(section.results, {}));
  EXPECT_TRUE(data["sections"][0]["series"].empty());
  EXPECT_TRUE(data["sections"][0]["fct"].empty());
}

TEST(RenderReport, HoldsWithoutFlows) {
  SampleOptions options;
  options.flows = 0;
  options.samples = 0;
  options.seeds = 1;
  const ReportSection section = SampleSection(options);
  EXPECT_THAT(RenderReport(section.results, section.series), HasSubstr("Incast 0 to 1"));
}

TEST(RenderReport, HoldsForOneRun) {
  SampleOptions options;
  options.algorithms = {"tita"};
  options.seeds = 1;
  const ReportSection section = SampleSection(options);
  EXPECT_THAT(RenderReport(section.results, section.series), HasSubstr("tita finished after"));
}

TEST(RenderReport, HoldsForNothingAtAll) {
  for (const auto& results :
       {nlohmann::json(), nlohmann::json::object(), nlohmann::json::array(), nlohmann::json{{"runs", nullptr}},
        nlohmann::json{{"runs", nlohmann::json::array({nullptr, 7})}}}) {
    EXPECT_THAT(RenderReport(results, {}), HasSubstr("<h1>Congestion study</h1>"));
  }
  EXPECT_THAT(RenderReport(ReportPage{}), HasSubstr("<h1>Congestion study</h1>"));
}

TEST(RenderReport, StaysSmallHoweverMuchWasRecorded) {
  SampleOptions options;
  options.algorithms = {"tita", "swift"};
  options.seeds = 5;
  options.samples = 50000;
  options.flows = 16256;
  const ReportSection ten_runs = SampleSection(options);
  EXPECT_LT(RenderReport(ten_runs.results, ten_runs.series).size(), 2'000'000U);
  options.algorithms = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
  options.seeds = 10;
  options.samples = 3000;
  options.flows = 100;
  const ReportSection many_runs = SampleSection(options);
  EXPECT_LT(RenderReport(many_runs.results, many_runs.series).size(), 2'000'000U);
}

TEST(RenderReport, SameResultsGiveTheSameBytesWhateverTheWallClock) {
  ReportSection section = SampleSection({});
  const std::string first = RenderReport(section.results, section.series);
  for (auto& run : section.results["runs"]) run["wall_s"] = 99.5;
  EXPECT_EQ(RenderReport(section.results, section.series), first);
}

}  // namespace
}  // namespace paceline::tools
