#include "tools/perf/collective_length.h"

#include <gtest/gtest.h>

#include <memory>

namespace paceline::tools {
namespace {

class CollectiveLength : public ::testing::Test {
 protected:
  void SetUp() override {
    api::ContextOptions options;
    options.lane = "udp";
    auto session = Session::Create(options, &alone_);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }

  // Rounds, where ten took `warm_seconds`.
  uint64_t Agree(const TestSpec& spec, double warm_seconds) {
    const auto rounds = AgreeOnIterations(*session_, spec, 10, warm_seconds);
    EXPECT_TRUE(rounds.ok()) << rounds.status();
    return rounds.value_or(0);
  }

  Rendezvous alone_{0, 1, {-1}};
  std::unique_ptr<Session> session_;
};

TEST_F(CollectiveLength, AsManyAsFillTheTimeHoweverLong) {
  TestSpec spec;
  spec.seconds = 2;
  EXPECT_EQ(Agree(spec, 0.01), 2000u);
  EXPECT_EQ(Agree(spec, 1000), 1u);
  spec.seconds = 86400;
  EXPECT_NEAR(static_cast<double>(Agree(spec, 1e-4)), 8.64e9, 1);
}

TEST_F(CollectiveLength, AsManyAsGiven) {
  TestSpec spec;
  spec.iterations = 7;
  EXPECT_EQ(Agree(spec, 1e-4), 7u);
}

}  // namespace
}  // namespace paceline::tools
