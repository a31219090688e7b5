// Which engine of several takes a request to connect.
#include "api/cpp/src/request_spreader.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "transport/core/cookie.h"

namespace paceline::api {
namespace {

constexpr uint64_t kListener = 77;

class FakeEngine final : public RequestTaker {
 public:
  size_t load() const override { return connections; }
  bool Bring(const ConnectionRequest& request) override {
    if (full) return false;
    brought.push_back(request.client);
    return true;
  }

  size_t connections = 0;
  bool full = false;
  std::vector<ConnectionId> brought;
};

class RequestSpreaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (FakeEngine& engine : engines_) spreader_.Join(&engine);
    spreader_.AddListener(kListener, nullptr);
  }
  // A request that has come to the first engine; which one has it now.
  size_t Ask(ConnectionId client, uint64_t nonce = 1, uint64_t listener = kListener) {
    std::array<size_t, 3> before;
    for (size_t i = 0; i < before.size(); ++i) before[i] = engines_[i].brought.size();
    const PassedOn answer =
        spreader_.PassOn(&engines_[0], {.listener = listener, .client_nonce = nonce, .client = client}, now_);
    EXPECT_NE(answer, PassedOn::kFull);
    size_t taker = 0, takers = answer == PassedOn::kYes ? 0 : 1;
    for (size_t i = 0; i < before.size(); ++i) {
      if (engines_[i].brought.size() == before[i]) continue;
      EXPECT_EQ(engines_[i].brought.back(), client);
      taker = i;
      ++takers;
    }
    EXPECT_EQ(takers, 1u);
    return taker;
  }

  RequestSpreader spreader_;
  std::array<FakeEngine, 3> engines_;
  Time now_ = Time() + Duration::Seconds(100);
};

TEST_F(RequestSpreaderTest, ManyAtATimeAreSharedEvenly) {
  engines_[1].connections = 4;
  std::array<int, 3> got{};
  for (ConnectionId client = 1; client <= 20; ++client) ++got[Ask(client)];  // before any engine sees one of them
  EXPECT_EQ(got, (std::array<int, 3>{8, 4, 8}));
}

TEST_F(RequestSpreaderTest, LaterOnTheEnginesConnectionsCount) {
  for (ConnectionId client = 1; client <= 6; ++client) Ask(client);
  engines_[0].connections = engines_[1].connections = 2;  // those of the third have ended
  now_ = now_ + Duration::Seconds(1);
  EXPECT_EQ(Ask(7), 2u);
  EXPECT_EQ(Ask(8), 2u);
}

TEST_F(RequestSpreaderTest, OneThatComesAgainGoesWhereItWent) {
  std::vector<size_t> first;
  for (ConnectionId client = 1; client <= 30; ++client) first.push_back(Ask(client, client % 2));
  engines_[0].connections = 100;
  now_ = now_ + Duration::Seconds(10);
  for (ConnectionId client = 30; client >= 1; --client) EXPECT_EQ(Ask(client, client % 2), first[client - 1]);
  // Another client may have the same number.
  EXPECT_NE(Ask(1, 999), 0u);
}

TEST_F(RequestSpreaderTest, OneThatComesAgainGoesThereAlsoWhenItsListenerIsClosed) {
  spreader_.AddListener(5, &engines_[2]);
  std::vector<size_t> first;
  for (ConnectionId client = 1; client <= 6; ++client) first.push_back(Ask(client));
  for (ConnectionId client = 7; client <= 9; ++client) first.push_back(Ask(client, 1, 5));
  spreader_.RemoveListener(kListener);
  spreader_.RemoveListener(5);
  for (ConnectionId client = 1; client <= 6; ++client) EXPECT_EQ(Ask(client), first[client - 1]);
  for (ConnectionId client = 7; client <= 9; ++client) EXPECT_EQ(Ask(client, 1, 5), 2u);
}

TEST_F(RequestSpreaderTest, ALongTryIsRememberedToItsEnd) {
  const size_t first = Ask(1), second = Ask(2);
  for (FakeEngine& engine : engines_) engine.connections = 100;
  engines_[2].connections = 0;
  for (int i = 0; i < 300; ++i) {
    now_ = now_ + Duration::Seconds(1);
    EXPECT_EQ(Ask(2), second);
  }
  EXPECT_NE(Ask(1), first) << "it has been silent";
}

TEST_F(RequestSpreaderTest, WhoKeepsOnAskingIsCountedAnewNowAndThen) {
  engines_[1].connections = engines_[2].connections = 1000;
  for (ConnectionId client = 1; client <= 100; ++client) {
    now_ = now_ + Duration::Millis(50);  // never long without one
    EXPECT_EQ(Ask(client), 0u);
  }
  engines_[0].connections = 2000;
  std::array<int, 3> got{};
  for (ConnectionId client = 101; client <= 120; ++client) {
    now_ = now_ + Duration::Millis(50);
    ++got[Ask(client)];
  }
  EXPECT_LE(got[0], 3) << "from before it was looked at again";
}

TEST_F(RequestSpreaderTest, ReportsAnEngineWithoutRoom) {
  engines_[1].full = engines_[2].full = true;
  std::array<int, 3> answers{};
  for (ConnectionId client = 1; client <= 9; ++client) {
    ++answers[static_cast<size_t>(
        spreader_.PassOn(&engines_[0], {.listener = kListener, .client_nonce = 1, .client = client}, now_))];
  }
  EXPECT_EQ(answers[static_cast<size_t>(PassedOn::kNo)], 3);
  EXPECT_EQ(answers[static_cast<size_t>(PassedOn::kFull)], 6);
}

TEST_F(RequestSpreaderTest, NothingIsRememberedForLongerThanItsCookieIsGood) {
  EXPECT_EQ(Ask(1), 0u);
  engines_[0].connections = 100;
  now_ = now_ + CookieJar::kLife;
  EXPECT_NE(Ask(1), 0u);
}

TEST_F(RequestSpreaderTest, AListenerWithAHomeHasAllItsRequestsThere) {
  spreader_.AddListener(5, &engines_[2]);
  spreader_.AddListener(6, &engines_[0]);
  for (ConnectionId client = 1; client <= 5; ++client) {
    EXPECT_EQ(Ask(client, 1, 5), 2u);
    EXPECT_EQ(Ask(client, 2, 6), 0u);
  }
}

TEST_F(RequestSpreaderTest, UnknownListenersAreLeftToTheEngineThatWasAsked) {
  spreader_.RemoveListener(kListener);
  for (ConnectionId client = 1; client <= 5; ++client) EXPECT_EQ(Ask(client), 0u);
}

TEST_F(RequestSpreaderTest, EnginesThatHaveLeftGetNothing) {
  spreader_.AddListener(5, &engines_[2]);
  for (ConnectionId client = 1; client <= 9; ++client) Ask(client);
  const size_t had = engines_[2].brought.size();
  spreader_.Leave(&engines_[2]);
  for (ConnectionId client = 1; client <= 20; ++client) Ask(client);
  for (ConnectionId client = 1; client <= 5; ++client) EXPECT_EQ(Ask(client, 3, 5), 0u);
  EXPECT_EQ(engines_[2].brought.size(), had);
}

TEST_F(RequestSpreaderTest, WhatItRemembersIsBounded) {
  for (ConnectionId client = 1; client <= 50'000; ++client) Ask(client);
  std::array<size_t, 3> again{};
  for (ConnectionId client = 50'000; client > 40'000; --client) {
    const size_t where = Ask(client);
    const size_t expected = (client - 1) % 3;  // all were alike
    EXPECT_EQ(where, expected);
    ++again[where];
  }
}

}  // namespace
}  // namespace paceline::api
