// Every path policy of the registry, and what each of them is for.
#include "transport/core/path/path_policy.h"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace paceline {
namespace {

constexpr uint64_t kMany = 40;  // under way

// A network in which every packet's fate is known a window of packets later.
class Walk {
 public:
  Walk(const std::string& name, uint32_t entropies) : policy_(CreatePathPolicy(name, entropies, random_)) {}

  // Sends one packet; its entropy.
  uint16_t Send() {
    const uint16_t entropy = policy_->Next();
    in_flight_.push_back(entropy);
    ++sent_[entropy];
    now_ = now_ + Duration::Nanos(333);
    if (in_flight_.size() > kWindow) Resolve();
    return entropy;
  }
  // How many of the next `packets` take `entropy`.
  uint64_t Count(uint16_t entropy, uint64_t packets) {
    sent_.clear();
    for (uint64_t i = 0; i < packets; ++i) Send();
    return sent_[entropy];
  }

  std::set<uint16_t> dead, marking;
  double mark_all = 0;                  // probability of a mark on any other path
  std::map<uint16_t, Duration> slower;  // by so much
  LossCause cause = LossCause::kPathGap;
  PathPolicy& policy() { return *policy_; }

 private:
  static constexpr size_t kWindow = 40;

  void Resolve() {
    const uint16_t entropy = in_flight_.front();
    in_flight_.pop_front();
    if (dead.contains(entropy)) return policy_->OnLoss(entropy, cause);
    const Duration queue = Duration::Nanos(static_cast<int64_t>(delays_.Below(3000)));
    if (++resolved_ % 2 == 0) policy_->OnDelay(entropy, Duration::Micros(14) + queue + slower[entropy], now_);
    policy_->OnAck(entropy, marking.contains(entropy) || marks_.Chance(mark_all), kWindow);
  }

  Random random_{7}, marks_{8}, delays_{9};
  std::unique_ptr<PathPolicy> policy_;
  std::deque<uint16_t> in_flight_;
  std::map<uint16_t, uint64_t> sent_;
  uint64_t resolved_ = 0;
  Time now_ = Time::FromNanos(1'000'000);
};

// ---- all of them

class EveryPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, StaysWithinItsEntropies) {
  for (const uint32_t entropies : {1u, 2u, 3u, 256u}) {
    Walk walk(GetParam(), entropies);
    walk.dead = {0};
    walk.mark_all = 0.3;
    for (int i = 0; i < 3000; ++i) ASSERT_LT(walk.Send(), entropies);
  }
}

TEST_P(EveryPolicy, TheSameSeedGivesTheSamePaths) {
  Walk one(GetParam(), 64), two(GetParam(), 64);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(one.Send(), two.Send());
}

std::vector<std::string> Names() { return {PathPolicyNames().begin(), PathPolicyNames().end()}; }
INSTANTIATE_TEST_SUITE_P(Registry, EveryPolicy, ::testing::ValuesIn(Names()),
                         [](const auto& name) { return name.param; });

TEST(PathPolicies, AreSortedAndDescribed) {
  std::string last;
  for (const PathPolicyInfo& policy : PathPolicies()) {
    EXPECT_LT(last, policy.name);
    EXPECT_FALSE(policy.summary.empty());
    last = policy.name;
  }
}

TEST(PathPolicies, AnUnknownNameGivesNone) {
  Random random(1);
  EXPECT_EQ(CreatePathPolicy("astray", 4, random), nullptr);
}

// ---- those that listen

class Listening : public ::testing::TestWithParam<std::string> {};

TEST_P(Listening, APathThatLosesIsAvoidedAndComesBack) {
  Walk walk(GetParam(), 16);
  walk.mark_all = 0.1;  // something has to make room for a path to come back
  walk.Count(3, 2000);
  walk.dead = {3};
  walk.Count(3, 2000);
  EXPECT_LT(walk.Count(3, 16'000), 500u);  // an equal share is 1000
  walk.dead = {};
  walk.Count(3, 4000);
  EXPECT_GT(walk.Count(3, 16'000), 500u);
}

TEST_P(Listening, ATimeOutIsHeldAgainstAPathForLonger) {
  uint64_t used[2];
  for (const LossCause cause : {LossCause::kPathGap, LossCause::kTimeout}) {
    Walk walk(GetParam(), 16);
    walk.cause = cause;
    walk.mark_all = 0.1;
    walk.dead = {3};
    walk.Count(3, 2000);
    used[cause == LossCause::kTimeout] = walk.Count(3, 16'000);
  }
  EXPECT_LE(used[1], used[0]);
}

TEST_P(Listening, WhenAllPathsLoseAllAreTried) {
  Walk walk(GetParam(), 8);
  for (uint16_t i = 0; i < 8; ++i) walk.dead.insert(i);
  walk.Count(0, 1000);
  for (uint16_t i = 0; i < 8; ++i) EXPECT_GT(walk.Count(i, 800), 20u) << i;
}

INSTANTIATE_TEST_SUITE_P(Registry, Listening, ::testing::Values("bitmap", "least_delay", "reps", "reps_plain"),
                         [](const auto& name) { return name.param; });

class Marked : public ::testing::TestWithParam<std::string> {};

TEST_P(Marked, APathThatMarksIsUsedLess) {
  Walk walk(GetParam(), 16);
  walk.marking = {3};
  walk.Count(3, 2000);
  EXPECT_LT(walk.Count(3, 16'000), 700u);  // an equal share is 1000
}

INSTANTIATE_TEST_SUITE_P(Registry, Marked, ::testing::Values("bitmap", "reps", "reps_plain"),
                         [](const auto& name) { return name.param; });

// ---- one by one

TEST(RoundRobin, GivesEveryPathTheSame) {
  Walk walk("round_robin", 16);
  walk.dead = {3};
  for (uint16_t i = 0; i < 16; ++i) EXPECT_EQ(walk.Count(i, 1600), 100u);
}

TEST(RandomPath, GivesEveryPathAboutTheSame) {
  Walk walk("random", 16);
  walk.dead = {3};
  for (uint16_t i = 0; i < 16; ++i) EXPECT_NEAR(static_cast<double>(walk.Count(i, 16'000)), 1000, 150);
}

TEST(Ecmp, KeepsItsPathWhateverHappens) {
  Walk walk("ecmp", 16);
  const uint16_t path = walk.Send();
  walk.dead = {path};
  EXPECT_EQ(walk.Count(path, 1000), 1000u);
}

TEST(Ecmp, ConnectionsDiffer) {
  Random random(1);
  std::set<uint16_t> paths;
  for (int i = 0; i < 100; ++i) paths.insert(CreatePathPolicy("ecmp", 256, random)->Next());
  EXPECT_GT(paths.size(), 50u);
}

TEST(Bitmap, AMarkCostsOneTurnALossFourATimeOutFifteen) {
  Random random(1);
  const auto policy = CreatePathPolicy("bitmap", 4, random);
  const auto turns_skipped = [&policy](uint16_t entropy) {
    for (int round = 0;; ++round) {
      std::set<uint16_t> seen;  // a round without it has three
      for (int i = 0; i < 3; ++i) seen.insert(policy->Next());
      if (seen.contains(entropy)) return round;
    }
  };
  const uint16_t other = policy->Next();
  const auto victim = static_cast<uint16_t>((other + 1) % 4);  // the next in turn
  policy->OnAck(victim, true, kMany);
  EXPECT_EQ(turns_skipped(victim), 1);
  while (policy->Next() != other) {
  }
  policy->OnLoss(victim, LossCause::kTrimmed);
  EXPECT_EQ(turns_skipped(victim), 4);
  while (policy->Next() != other) {
  }
  policy->OnLoss(victim, LossCause::kTimeout);
  EXPECT_EQ(turns_skipped(victim), 15);
}

TEST(Reps, UsesWhatCameBackOldestFirstAndElseGoesInTurn) {
  Random random(1);
  const auto policy = CreatePathPolicy("reps", 64, random);
  const uint16_t first = policy->Next();
  policy->OnAck(7, false, kMany);
  policy->OnAck(9, false, kMany);
  EXPECT_EQ(policy->Next(), 7);
  EXPECT_EQ(policy->Next(), 9);
  EXPECT_EQ(policy->Next(), (first + 1) % 64);
}

TEST(Reps, GoesInTurnWhileLittleIsUnderWay) {
  Random random(1);
  const auto policy = CreatePathPolicy("reps", 64, random);
  uint16_t last = policy->Next();
  for (int i = 0; i < 100; ++i) {
    policy->OnAck(last, false, 3);
    const uint16_t next = policy->Next();
    EXPECT_EQ(next, (last + 1) % 64);
    last = next;
  }
  policy->OnAck(7, false, 4);
  EXPECT_EQ(policy->Next(), 7);
}

TEST(Reps, WhatWaitsIsPassedOverOnceItIsPenalised) {
  Random random(1);
  const auto policy = CreatePathPolicy("reps", 64, random);
  policy->OnAck(7, false, kMany);
  policy->OnAck(9, false, kMany);
  policy->OnAck(7, true, kMany);
  EXPECT_EQ(policy->Next(), 9);
}

// A marked queue explains the loss: no path need be dead.
TEST(Reps, GoesOnExploringAfterALossBesideMarks) {
  Random random(1);
  const auto policy = CreatePathPolicy("reps", 64, random);
  policy->OnAck(8, true, 1);
  policy->OnAck(9, false, 1);
  policy->OnLoss(7, LossCause::kReorder);
  int kept = 0;
  for (int i = 0; i < 64; ++i) kept += policy->Next() == 9;
  EXPECT_LT(kept, 3);
}

TEST(Reps, ReusesTheAcknowledgedEntropyFor64ChoicesAfterALossWithoutMarks) {
  Random random(1);
  for (const LossCause cause : {LossCause::kTrimmed, LossCause::kReorder, LossCause::kTimeout}) {
    const auto policy = CreatePathPolicy("reps", 64, random);
    policy->OnAck(9, false, 1);
    policy->OnLoss(7, cause);
    policy->OnAck(9, false, 1);
    int kept = 0;
    for (int i = 0; i < 64; ++i) {
      kept += policy->Next() == 9;
      if (i % 4 == 0) policy->OnAck(9, false, 1);
    }
    if (cause == LossCause::kTrimmed) {
      EXPECT_LT(kept, 5) << "a queue was full, and nothing is dead";
    } else {
      EXPECT_EQ(kept, 64);
    }
    policy->OnLoss(9, cause);
    for (int i = 0; i < 32; ++i) EXPECT_NE(policy->Next(), 9);
  }
}

TEST(Reps, ReusesAPathEightTimesWithoutAnAcknowledgement) {
  Random random(1);
  const auto policy = CreatePathPolicy("reps", 64, random);
  policy->OnAck(9, false, 1);
  policy->OnLoss(7, LossCause::kReorder);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(i % 2 == 0 ? policy->Next() : policy->NextForLost(9), 9);
  std::set<uint16_t> others;
  for (int i = 0; i < 32; ++i) others.insert(i % 2 == 0 ? policy->Next() : policy->NextForLost(9));
  EXPECT_GT(others.size(), 24u) << "it may have died since";
}

TEST(Reps, ALostPacketTakesTheProvenPathUnlessThatIsCrowded) {
  Random random(1);
  const auto policy = CreatePathPolicy("reps", 64, random);
  policy->OnAck(9, false, 1);
  policy->OnLoss(7, LossCause::kTrimmed);
  EXPECT_EQ(policy->NextForLost(9), 9);
  policy->OnAck(9, true, 1);
  policy->OnLoss(7, LossCause::kReorder);
  std::set<uint16_t> others;
  for (int i = 0; i < 32; ++i) others.insert(policy->NextForLost(9));
  EXPECT_GT(others.size(), 24u);
}

TEST(RepsPlain, HoldsEightAndExploresAtRandomWithoutAny) {
  Random random(1);
  const auto policy = CreatePathPolicy("reps_plain", 256, random);
  for (uint16_t i = 0; i < 12; ++i) policy->OnAck(i, false, kMany);
  for (uint16_t i = 0; i < 8; ++i) EXPECT_EQ(policy->Next(), i);
  std::set<uint16_t> explored;
  for (int i = 0; i < 100; ++i) explored.insert(policy->Next());
  EXPECT_GT(explored.size(), 60u);
}

TEST(LeastDelay, TakesTheShorterOfTwo) {
  Walk walk("least_delay", 16);
  walk.slower = {{3, Duration::Micros(10)}};
  walk.Count(3, 1000);
  EXPECT_LT(walk.Count(3, 16'000), 400u);  // an equal share is 1000
}

TEST(LeastDelay, WhatWasSlowIsAskedAgain) {
  Walk walk("least_delay", 16);
  walk.slower = {{3, Duration::Micros(10)}};
  walk.Count(3, 1000);
  walk.slower = {};
  walk.Count(3, 1000);
  EXPECT_GT(walk.Count(3, 16'000), 700u);
}

}  // namespace
}  // namespace paceline
