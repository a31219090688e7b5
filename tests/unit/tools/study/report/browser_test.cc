// Opens pages of the report in a real browser, where one is installed, and counts the charts that it drew.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/tools/study/report/sample_data.h"

namespace paceline::tools {
namespace {

// What a command prints to stdout.
std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> chunk;
  for (size_t got; (got = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) output.append(chunk.data(), got);
  pclose(pipe);
  return output;
}

class BrowserTest : public testing::Test {
 protected:
  void SetUp() override {
    browser_ = OutputOf("command -v chromium || command -v chromium-browser || command -v google-chrome");
    if (browser_.empty()) GTEST_SKIP() << "no Chromium on this machine (Debian package chromium)";
    browser_.erase(browser_.find_last_not_of('\n') + 1);
    std::string pattern = (std::filesystem::path(testing::TempDir()) / "paceline_report_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    if (!Open("<!doctype html><title>works</title>") || title_ != "works") {
      GTEST_SKIP() << browser_ << " does not start headless on this machine";
    }
  }

  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Opens a page. True when the browser showed it.
  bool Open(const std::string& html) {
    const auto page = folder_ / "page.html";
    std::ofstream(page) << html;
    const std::string seen = OutputOf("timeout 60 '" + browser_ +
                                      "' --headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
                                      " --disable-background-networking --disable-component-update --disable-sync"
                                      " --enable-logging=stderr --user-data-dir='" +
                                      (folder_ / "profile").string() + "' --window-size=1400,3000 --dump-dom 'file://" +
                                      page.string() + "' 2>&1");
    title_ = Between(seen, "<title>", "</title>");
    charts_ = Between(seen, "data-drawn=\"", "\"");
    complaint_ = Between(seen, ":CONSOLE", "\n");
    return seen.find("</html>") != std::string::npos;
  }

  static std::string Between(const std::string& text, const std::string& before, const std::string& after) {
    const size_t found = text.find(before);
    if (found == std::string::npos) return "";
    const size_t begin = found + before.size();
    return text.substr(begin, text.find(after, begin) - begin);
  }

  // What the last page looked like once its scripts had run.
  std::string title_;
  std::string charts_;     // how many it says that it drew
  std::string complaint_;  // the first line on the browser's console

  std::string browser_;
  std::filesystem::path folder_;
};

TEST_F(BrowserTest, DrawsEveryChartOfEverySection) {
  ASSERT_TRUE(Open(RenderReport(SamplePage())));
  EXPECT_EQ(charts_, "28");  // 8 of the incast, 10 of the mixed sizes, 10 of the permutation, whose faults have one
  EXPECT_EQ(complaint_, "");
}

TEST_F(BrowserTest, HoldsForHostileNames) {
  SampleOptions options;
  options.algorithms = {"tita", "</script><script>document.title='broken'</script>", "__proto__", "a\"b'c<d>"};
  ReportSection section = SampleSection(options);
  section.series.runs[0].busiest_port = "<img src=x onerror=\"document.title='broken'\">";
  ASSERT_TRUE(Open(RenderReport(section.results, section.series)));
  EXPECT_EQ(title_, "Incast 32 to 1, 1 MB each");
  EXPECT_EQ(charts_, "9");
  EXPECT_EQ(complaint_, "");
}

TEST_F(BrowserTest, HoldsForNothingAndForBareResults) {
  const auto bare = nlohmann::json::array({nullptr, {{"algorithm", "tita"}, {"seed", 1}}});
  for (const auto& results : {nlohmann::json(), nlohmann::json{{"runs", bare}}}) {
    ASSERT_TRUE(Open(RenderReport(results, {})));
    EXPECT_EQ(charts_, "0");
    EXPECT_EQ(complaint_, "");
  }
}

}  // namespace
}  // namespace paceline::tools
