// Two engines with two cards each, in memory: the first card of either side, or the cable between the two, dies for
// good while one side sends to the other. No operation is lost, and what the network has kept back lands nowhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_verbs.h"
#include "transport/engine/engine.h"
#include "transport/lane/verbs/verbs_lane.h"

namespace paceline::support {
namespace {

constexpr size_t kBytes = 1'000'000;
// Cards of side 0 are 0 and 1, of side 1 are 2 and 3; the first of each are cabled to one another.
constexpr uint32_t kOwn = 0, kPeers = 2;

class VerbsFailoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t side = 0; side < 2; ++side) {
      std::vector<std::unique_ptr<Lane>> lanes;
      for (uint32_t card = 0; card < 2; ++card) {
        VerbsLaneOptions options;
        options.device = "fake" + std::to_string(2 * side + card);
        auto lane = CreateVerbsLane(options, &cards_);
        ASSERT_TRUE(lane.ok()) << lane.status();
        lanes.push_back(*std::move(lane));
      }
      EngineOptions options;
      options.endpoint.congestion_control = "tita";
      options.endpoint.seed = side + 1;
      auto engine = Engine::Create(options, std::move(lanes));
      ASSERT_TRUE(engine.ok()) << engine.status();
      engines_[side] = *std::move(engine);
    }
    const uint32_t listener = endpoint(1).Listen();
    connection_[0] = endpoint(0).Connect(endpoint(1).listen_address(listener), now_);
    ASSERT_TRUE(RunUntil([&] { return up_[0] && up_[1]; }));
    in_.resize(kBytes);
    out_.resize(kBytes);
    region_ = endpoint(1).RegisterMemory(in_.data(), in_.size(), kRemoteWrite);
    out_region_ = endpoint(0).RegisterMemory(out_.data(), out_.size(), 0);
  }
  void TearDown() override {
    for (auto& engine : engines_) engine.reset();
    EXPECT_EQ(cards_.violations(), std::vector<std::string>());
  }
  Endpoint& endpoint(uint32_t side) { return engines_[side]->endpoint(); }

  bool RunUntil(const std::function<bool()>& done, Duration limit = Duration::Seconds(3)) {
    for (const Time end = now_ + limit; now_ < end;) {
      now_ = now_ + Duration::Micros(20);
      for (uint32_t side = 0; side < 2; ++side) {
        engines_[side]->Poll(now_);
        for (ConnectionEvent event; endpoint(side).PollConnectionEvents({&event, 1}) == 1;) OnEvent(side, event);
        Completion completion;
        while (endpoint(side).PollCompletions({&completion, 1}) == 1) completions_[side].push_back(completion);
      }
      if (done()) return true;
    }
    return false;
  }
  void OnEvent(uint32_t side, const ConnectionEvent& event) {
    if (event.kind == ConnectionEventKind::kRequest) {
      connection_[1] = event.connection;
      endpoint(1).Accept(event.connection, now_);
    }
    if (event.kind == ConnectionEventKind::kEstablished) up_[side] = true;
  }

  // Messages into the same buffer, which is the user's between them; `strike` comes in the midst of the second.
  void Rounds(const std::function<void()>& strike) {
    for (uint8_t round = 1; round <= 6; ++round) {
      std::fill(out_.begin(), out_.end(), round);
      completions_[0].clear(), completions_[1].clear();
      ASSERT_EQ(endpoint(1).PostReceive(connection_[1], {.buffer = {in_.data(), kBytes, region_}}, now_),
                PostResult::kOk);
      ASSERT_EQ(endpoint(0).PostSend(connection_[0], {.buffer = {out_.data(), kBytes, out_region_}}, now_),
                PostResult::kOk);
      if (round == 2) {
        const uint64_t half = endpoint(0).counters().tx_data_bytes + kBytes / 2;
        ASSERT_TRUE(RunUntil([&] { return endpoint(0).counters().tx_data_bytes > half; }));
        strike();
      }
      ASSERT_TRUE(RunUntil([&] { return completions_[1].size() == 1; })) << "round " << int{round};
      EXPECT_EQ(completions_[1][0].status, OperationStatus::kOk) << "round " << int{round};
      EXPECT_EQ(in_, out_) << "round " << int{round};
      std::fill(in_.begin(), in_.end(), 0xaa);  // the user's again
      ASSERT_TRUE(RunUntil([&] { return completions_[0].size() == 1; })) << "round " << int{round};
      EXPECT_EQ(completions_[0][0].status, OperationStatus::kOk) << "round " << int{round};
    }
    EXPECT_GE(endpoint(0).counters().fences_asked, 1u);
    cards_.hook = nullptr;
    cards_.ReleaseParked();
    RunUntil([] { return false; }, Duration::Millis(20));
    EXPECT_EQ(in_, std::vector<uint8_t>(kBytes, 0xaa)) << "a write landed in memory that was given back";
    EXPECT_GT(cards_.writes_placed(), 200u);
  }
  // Of what the first cards send: writes are kept back, the rest is lost.
  void CutCable() {
    cards_.hook = [](const FakeVerbs::Packet& packet) {
      if (packet.from_device != kOwn && packet.from_device != kPeers) return FakeVerbs::Fate::kDeliver;
      return packet.write ? FakeVerbs::Fate::kPark : FakeVerbs::Fate::kDrop;
    };
  }

  FakeVerbs cards_{4};
  Time now_ = Time::FromNanos(1'000'000'000);
  std::array<std::unique_ptr<Engine>, 2> engines_;
  std::array<ConnectionId, 2> connection_{};
  std::array<bool, 2> up_{};
  std::array<std::vector<Completion>, 2> completions_;
  std::vector<uint8_t> in_, out_;
  RegionId region_ = kUnregistered, out_region_ = kUnregistered;
};

TEST_F(VerbsFailoverTest, TheCableIsDeadForGood) {
  Rounds([&] { CutCable(); });
}

TEST_F(VerbsFailoverTest, AnOwnPortIsDownForGood) {
  Rounds([&] {
    CutCable();
    RunUntil([] { return false; }, Duration::Micros(100));
    cards_.SetPort(kOwn, false);
  });
}

TEST_F(VerbsFailoverTest, AnOwnCardIsDeadForGood) {
  Rounds([&] {
    CutCable();
    RunUntil([] { return false; }, Duration::Micros(100));
    cards_.TellDevice(kOwn, IBV_EVENT_DEVICE_FATAL);
  });
}

TEST_F(VerbsFailoverTest, APortOfThePeerIsDownForGood) {
  Rounds([&] {
    CutCable();
    cards_.SetPort(kPeers, false);
  });
}

TEST_F(VerbsFailoverTest, ACardOfThePeerIsDeadForGood) {
  Rounds([&] {
    CutCable();
    cards_.TellDevice(kPeers, IBV_EVENT_DEVICE_FATAL);
  });
}

}  // namespace
}  // namespace paceline::support
