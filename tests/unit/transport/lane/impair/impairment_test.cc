#include "transport/lane/impair/impairment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using ::testing::HasSubstr;

TEST(Impairment, ReadsEveryKey) {
  const auto parsed = ParseImpairment("loss=1%,dup=0.05,reorder=5%,corrupt=100%,delay=50,reorder_delay=2ms,seed=9");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_DOUBLE_EQ(parsed->loss, 0.01);
  EXPECT_DOUBLE_EQ(parsed->duplicate, 0.05);
  EXPECT_DOUBLE_EQ(parsed->reorder, 0.05);
  EXPECT_DOUBLE_EQ(parsed->corrupt, 1);
  EXPECT_EQ(parsed->delay, Duration::Micros(50));
  EXPECT_EQ(parsed->reorder_delay, Duration::Millis(2));
  EXPECT_EQ(parsed->seed, 9u);
  EXPECT_FALSE(parsed->none());
  EXPECT_TRUE(ParseImpairment("")->none());
}

TEST(Impairment, NamesWhatIsWrong) {
  for (const auto& [text, part] :
       {std::pair{"loss=2", "loss=2"}, std::pair{"loss=-1%", "loss=-1%"}, std::pair{"loss=nan", "loss=nan"},
        std::pair{"loss", "key=value"}, std::pair{"theft=1%", "theft"}, std::pair{"delay=soon", "delay=soon"},
        std::pair{"delay=99999ms", "delay=99999ms"}, std::pair{"seed=x", "seed=x"}}) {
    const auto parsed = ParseImpairment(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(part));
  }
}

}  // namespace
}  // namespace paceline
