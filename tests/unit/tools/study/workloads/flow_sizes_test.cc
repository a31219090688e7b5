#include "tools/study/workloads/flow_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

// The means that papers give for these distributions: 1138 and 5117 packets of 1460 bytes.
TEST(FlowSizesTest, BuiltInDistributionsHaveTheirPublishedMeans) {
  EXPECT_NEAR(FlowSizes::Load("web_search", "")->mean(), 1138 * 1460, 0.003 * 1138 * 1460);
  EXPECT_NEAR(FlowSizes::Load("data_mining", "")->mean(), 5117 * 1460, 0.001 * 5117 * 1460);
}

TEST(FlowSizesTest, StraightLinesBetweenPoints) {
  const auto sizes = FlowSizes::Parse("# sizes\n100 0.5\n\n200 0.75\n1000 1\n", "sizes");
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->At(0), 100u);
  EXPECT_EQ(sizes->At(0.5), 100u);
  EXPECT_EQ(sizes->At(0.625), 150u);
  EXPECT_EQ(sizes->At(0.75), 200u);
  EXPECT_EQ(sizes->At(1), 1000u);
  EXPECT_DOUBLE_EQ(sizes->mean(), 0.5 * 100 + 0.25 * 150 + 0.25 * 600);
}

TEST(FlowSizesTest, ANumberIsTheSizeOfAll) {
  const auto sizes = FlowSizes::Load("1024", "");
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->At(0), 1024u);
  EXPECT_EQ(sizes->At(1), 1024u);
  EXPECT_EQ(sizes->mean(), 1024);
  EXPECT_FALSE(FlowSizes::Load("0", "").ok());
}

TEST(FlowSizesTest, RefusesWhatIsNoDistributionWithItsLine) {
  const auto message = [](const char* text) { return std::string(FlowSizes::Parse(text, "sizes").status().message()); };
  EXPECT_THAT(message(""), HasSubstr("last share must be 1"));
  EXPECT_THAT(message("100 0.5\n"), HasSubstr("last share must be 1"));
  EXPECT_THAT(message("100 0.5\n90 1\n"), HasSubstr("sizes:2: bytes"));
  EXPECT_THAT(message("100 0.5\n200 0.4\n"), HasSubstr("sizes:2: shares"));
  EXPECT_THAT(message("100 50\n"), HasSubstr("sizes:1: shares"));
  EXPECT_THAT(message("0 0.5\n"), HasSubstr("sizes:1: bytes"));
  EXPECT_THAT(message("0.4 1\n"), HasSubstr("sizes:1: bytes"));  // no flow has no bytes
  EXPECT_THAT(message("many 0.5\n"), HasSubstr("sizes:1: must be"));
  EXPECT_THAT(std::string(FlowSizes::Load("none.txt", "/nowhere").status().message()), HasSubstr("none.txt"));
}

}  // namespace
}  // namespace paceline::tools
