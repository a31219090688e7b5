#include "tools/study/time_left.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::tools {
namespace {

TEST(TimeLeftTest, NothingIsKnownBeforeSomethingIsDone) {
  EXPECT_FALSE(SecondsLeft({}, 2).has_value());
  EXPECT_FALSE(SecondsLeft(std::vector<SectionProgress>{{.effort = 100, .seconds = 3}}, 2).has_value());
}

TEST(TimeLeftTest, EverySectionHasItsOwnPace) {
  // 0.01 and 0.1 seconds a unit.
  const std::vector<SectionProgress> sections = {{.effort = 1000, .done = 500, .seconds = 5},
                                                 {.effort = 1000, .done = 100, .seconds = 10}};
  EXPECT_DOUBLE_EQ(*SecondsLeft(sections, 1), 5 + 90);
  EXPECT_DOUBLE_EQ(*SecondsLeft(sections, 2), (5 + 90) / 2.0);
}

TEST(TimeLeftTest, ASectionNotBegunGoesAtThePaceOfAll) {
  const std::vector<SectionProgress> sections = {{.effort = 100, .done = 100, .seconds = 10},
                                                 {.effort = 300, .done = 300, .seconds = 10},
                                                 {.effort = 1000, .seconds = 0.5}};
  EXPECT_DOUBLE_EQ(*SecondsLeft(sections, 1), 1000 * 20 / 400.0);
}

TEST(TimeLeftTest, NothingIsLeftOfWhatTookMoreThanItShould) {
  EXPECT_DOUBLE_EQ(*SecondsLeft(std::vector<SectionProgress>{{.effort = 10, .done = 12, .seconds = 1}}, 0), 0);
}

}  // namespace
}  // namespace paceline::tools
