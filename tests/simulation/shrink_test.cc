#include "tests/simulation/shrink.h"

#include <gtest/gtest.h>

namespace paceline::simulation {
namespace {

Scenario Big() {
  return *ParseScenario(
      "seed=1 carrier=packets ending=crash hosts=6 ports=3 connections=8 handshake=1 protection=encrypted "
      "operations=40 "
      "max_bytes=60000 receive_queues=2 late_names=0.5 claims=0.2 many=0.1 loss=0.1 duplicate=0.05 flaps=3 "
      "black_paths=2 fault_ms=60");
}

TEST(Shrink, KeepsOnlyWhatTheFailureNeeds) {
  const auto fails = [](const Scenario& s) { return s.loss > 0 && s.operations >= 7 && s.ending == Ending::kCrash; };
  const Scenario small = Shrink(Big(), fails);
  EXPECT_TRUE(fails(small));
  EXPECT_EQ(small.operations, 7u);
  EXPECT_EQ(small.hosts, 2u);
  EXPECT_EQ(small.ports, 1u);
  EXPECT_EQ(small.connections, 1u);
  EXPECT_EQ(small.max_bytes, 1u);
  EXPECT_EQ(small.flaps, 0u);
  EXPECT_EQ(small.receive_queues, 0u);
  EXPECT_EQ(small.duplicate, 0);
  EXPECT_FALSE(small.handshake);
  EXPECT_EQ(small.protection, Protection::kNone);
  EXPECT_EQ(Describe(*ParseScenario(Describe(small))), Describe(small));  // one line says it all
}

// Protection needs a handshake, so a failure with protection keeps both.
TEST(Shrink, WhatBelongsTogetherStays) {
  const Scenario small = Shrink(Big(), [](const Scenario& s) { return s.protection == Protection::kEncrypted; });
  EXPECT_TRUE(small.handshake);
  EXPECT_EQ(small.protection, Protection::kEncrypted);
}

TEST(Shrink, ReceiveQueuesBecomeFewAndPlain) {
  const Scenario small = Shrink(Big(), [](const Scenario& s) { return s.receive_queues > 0 && s.claims > 0; });
  EXPECT_TRUE(small.handshake);
  EXPECT_EQ(small.receive_queues, 1u);
  EXPECT_EQ(small.claims, 0.2);
  EXPECT_EQ(small.late_names, 0);
  EXPECT_EQ(small.many, 0);
}

TEST(Shrink, EndsWhenItsRunsAreUsedUp) {
  int runs = 0;
  Shrink(
      Big(),
      [&runs](const Scenario&) {
        ++runs;
        return true;
      },
      5);
  EXPECT_EQ(runs, 5);
}

}  // namespace
}  // namespace paceline::simulation
