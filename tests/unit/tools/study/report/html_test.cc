#include "tools/study/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::tools {
namespace {

TEST(EscapeHtml, LeavesNoMarkup) {
  EXPECT_EQ(EscapeHtml("a<b>&\"'c"), "a&lt;b&gt;&amp;&quot;&#39;c");
  EXPECT_EQ(EscapeHtml("\u00B5s"), "\u00B5s");
  EXPECT_EQ(EscapeHtml(std::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
}

TEST(ScriptJson, CannotEndItsElementAndStaysTheSameValue) {
  const nlohmann::json value = {{"name", "</script><script>alert(1)</script><!--"}, {"and", "a&b"}};
  const std::string text = ScriptJson(value);
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("<")));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr(">")));
  EXPECT_EQ(nlohmann::json::parse(text), value);
}

TEST(ScriptJson, ReplacesBytesThatAreNotUtf8) {
  const nlohmann::json value = {{"name", "a\xFF"}};
  EXPECT_EQ(nlohmann::json::parse(ScriptJson(value))["name"], "a\xEF\xBF\xBD");
}

TEST(FillTemplate, FillsInOnePass) {
  EXPECT_EQ(FillTemplate("{{a}}-{{b_c}}-{{a}}", {{"a", "{{b_c}}"}, {"b_c", "2"}}), "{{b_c}}-2-{{b_c}}");
}

TEST(FillTemplate, LeavesWhatItDoesNotKnow) {
  EXPECT_EQ(FillTemplate("{{x}} {{ a }} {{}} {{A}} {{a", {{"a", "1"}}), "{{x}} {{ a }} {{}} {{A}} {{a");
  EXPECT_EQ(FillTemplate("{{{a}}}", {{"a", "1"}}), "{1}");
}

TEST(TemplateNames, ListsThemInOrder) {
  EXPECT_THAT(TemplateNames("x{{b}}y{{a}}{{b}}{{A}}"), testing::ElementsAre("b", "a", "b"));
}

}  // namespace
}  // namespace paceline::tools
