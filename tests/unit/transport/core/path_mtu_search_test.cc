// The search for the largest packets that pass: exact on every path, undeterred by loss, over in a few rounds.
#include "transport/core/path_mtu_search.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "transport/base/random.h"

namespace paceline {
namespace {

constexpr uint32_t kPlain = 130;

struct Outcome {
  uint32_t found = 0;
  uint32_t rounds = 0;
  uint32_t most_in_round = 0;
};

// Lets it go on until it is done. A round without any answer goes out again.
Outcome Search(uint32_t most, const std::function<bool(uint32_t)>& passes) {
  PathMtuSearch search(kPlain, most);
  Outcome outcome;
  while (!search.done() && outcome.rounds < 1000) {
    std::vector<uint32_t> sent;
    for (; search.next() != 0; search.Next()) sent.push_back(search.next());
    EXPECT_EQ(sent.front(), kPlain);
    for (size_t i = 1; i < sent.size(); ++i) EXPECT_GT(sent[i], sent[i - 1]);
    EXPECT_LE(sent.back(), most);
    outcome.most_in_round = std::max(outcome.most_in_round, static_cast<uint32_t>(sent.size()));
    ++outcome.rounds;
    for (const uint32_t bytes : sent) {
      if (passes(bytes)) search.OnAnswer(bytes);
    }
    if (search.answered()) {
      search.EndRound();
    } else {
      search.RepeatRound();
    }
  }
  outcome.found = search.found();
  return outcome;
}

TEST(PathMtuSearchTest, OneRoundWhereThePortsLargestPasses) {
  const Outcome outcome = Search(9172, [](uint32_t) { return true; });
  EXPECT_EQ(outcome.found, 9172u);
  EXPECT_EQ(outcome.rounds, 1u);
  EXPECT_EQ(outcome.most_in_round, 2u);
}

TEST(PathMtuSearchTest, NothingToFindOutIsOneRequest) {
  const Outcome outcome = Search(kPlain, [](uint32_t) { return true; });
  EXPECT_EQ(outcome.found, kPlain);
  EXPECT_EQ(outcome.rounds, 1u);
  EXPECT_EQ(outcome.most_in_round, 1u);
}

TEST(PathMtuSearchTest, ExactForEveryPath) {
  for (const uint32_t most : {1472u, 4096u, 9172u, 65507u}) {
    for (uint32_t limit = kPlain; limit < most; limit += limit < 1600 ? 1 : 97) {
      const Outcome outcome = Search(most, [limit](uint32_t bytes) { return bytes <= limit; });
      ASSERT_EQ(outcome.found, limit) << "of " << most;
      ASSERT_LE(outcome.rounds, 9u) << limit << " of " << most;
      ASSERT_LE(outcome.most_in_round, 9u);
    }
  }
}

TEST(PathMtuSearchTest, AnswersThatCameToSmallerOnesOnlyEndNoSearch) {
  PathMtuSearch search(kPlain, 9172);
  search.OnAnswer(36);  // of a peer that does not answer in size
  EXPECT_FALSE(search.done());
  EXPECT_EQ(search.found(), kPlain);
  search.OnAnswer(kPlain);
  EXPECT_FALSE(search.done());
}

TEST(PathMtuSearchTest, AnAnswerToAnEarlierRoundCounts) {
  PathMtuSearch search(kPlain, 9172);
  for (; search.next() != 0; search.Next()) {
  }
  search.OnAnswer(kPlain);
  search.EndRound();
  search.OnAnswer(9172);
  EXPECT_TRUE(search.done());
  EXPECT_EQ(search.found(), 9172u);
}

TEST(PathMtuSearchTest, MoreThanThePortTakesIsNotBelieved) {
  PathMtuSearch search(kPlain, 1472);
  search.OnAnswer(9000);
  EXPECT_TRUE(search.done());
  EXPECT_EQ(search.found(), 1472u);
}

// What is lost by chance is asked for again in each round: the result is exact in nearly all searches, and never far
// off.
TEST(PathMtuSearchTest, LossByChanceIsNotTakenForANarrowPath) {
  for (const uint32_t limit : {1472u, 8922u, 9172u}) {
    uint32_t exact = 0;
    for (uint64_t seed = 1; seed <= 1000; ++seed) {
      Random random(seed);
      const Outcome outcome =
          Search(9172, [&](uint32_t bytes) { return bytes <= limit && !random.Chance(0.05) && !random.Chance(0.05); });
      EXPECT_LE(outcome.found, limit);
      EXPECT_GE(outcome.found, limit * 9 / 10) << "seed " << seed;
      exact += outcome.found == limit;
    }
    EXPECT_GE(exact, 950u) << limit;
  }
}

}  // namespace
}  // namespace paceline
