#include "transport/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/support/fake_device_memory.h"
#include "tests/unit/transport/engine/memory_lane.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

EngineOptions Options(bool replies_first = false) {
  EngineOptions options;
  options.endpoint.congestion_control = "none";
  options.endpoint.prompt_acks = true;
  options.replies_first = replies_first;
  return options;
}

// Two engines joined in memory, with one connection between them; once with replies first.
class EngineTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (uint8_t side = 0; side < 2; ++side) {
      auto lane = std::make_unique<MemoryLane>(side);
      lanes_[side] = lane.get();
      std::vector<std::unique_ptr<Lane>> list;
      list.push_back(std::move(lane));
      EngineOptions options = Options(GetParam());
      options.device_copier = &copier_;
      auto engine = Engine::Create(options, std::move(list));
      ASSERT_TRUE(engine.ok()) << engine.status();
      engines_[side] = *std::move(engine);
    }
    MemoryLane::Join(*lanes_[0], *lanes_[1]);
    const uint32_t listener = engines_[0]->endpoint().Listen();
    out_ = engines_[1]->endpoint().Connect(engines_[0]->endpoint().listen_address(listener), now_);
    ConnectionEvent event;
    for (int i = 0; i < 1000 && !(in_up_ && out_up_); ++i) {
      Step();
      while (engines_[0]->endpoint().PollConnectionEvents({&event, 1}) == 1) {
        if (event.kind == ConnectionEventKind::kRequest) {
          in_ = event.connection;
          engines_[0]->endpoint().Accept(in_, now_);
        }
        in_up_ |= event.kind == ConnectionEventKind::kEstablished;
      }
      while (engines_[1]->endpoint().PollConnectionEvents({&event, 1}) == 1) {
        out_up_ |= event.kind == ConnectionEventKind::kEstablished;
      }
    }
    ASSERT_TRUE(in_up_ && out_up_);
  }

  struct Copier final : DeviceCopier {
    const support::FakeDeviceMemory* memory = nullptr;
    bool FromDevice(int, void* to, const void* from, size_t bytes) override {
      std::memcpy(to, memory->Reach(from, bytes), bytes);
      return true;
    }
    bool ToDevice(int, void*, const void*, size_t) override { return false; }
  };

  // One pass of both, 10 us later.
  void Step() {
    now_ = now_ + Duration::Micros(10);
    for (auto& engine : engines_) {
      const Time next = engine->Poll(now_);
      EXPECT_TRUE(next == now_ || next == std::max(now_, engine->endpoint().PollTimeout()));
    }
  }

  void Exchange(std::vector<uint8_t>& from, std::vector<uint8_t>& to) {
    ASSERT_EQ(engines_[0]->endpoint().PostReceive(in_, {.buffer = {to.data(), to.size()}}, now_), PostResult::kOk);
    ASSERT_EQ(engines_[1]->endpoint().PostSend(out_, {.buffer = {from.data(), from.size()}}, now_), PostResult::kOk);
  }
  bool StepUntilReceived() {
    Completion completion;
    for (int i = 0; i < 200000; ++i) {
      Step();
      if (engines_[0]->endpoint().PollCompletions({&completion, 1}) == 1)
        return completion.status == OperationStatus::kOk;
    }
    return false;
  }

  Time now_ = Time::FromNanos(1'000'000'000);
  Copier copier_;
  MemoryLane* lanes_[2] = {};
  std::unique_ptr<Engine> engines_[2];
  ConnectionId in_ = kNoConnection, out_ = kNoConnection;
  bool in_up_ = false, out_up_ = false;
};

TEST_P(EngineTest, CarriesAMessage) {
  std::vector<uint8_t> from(100'000), to(100'000);
  std::iota(from.begin(), from.end(), uint8_t{1});
  Exchange(from, to);
  EXPECT_TRUE(StepUntilReceived());
  EXPECT_EQ(from, to);
}

TEST_P(EngineTest, KeepsWhatALaneTookOnlyPartlyAndOffersItFirst) {
  std::vector<uint8_t> from(12'000), to(12'000);
  std::iota(from.begin(), from.end(), uint8_t{7});
  Exchange(from, to);
  lanes_[1]->take = 3;
  lanes_[1]->sends.clear();
  now_ = now_ + Duration::Micros(10);
  engines_[1]->Poll(now_);
  EXPECT_TRUE(engines_[1]->blocked_on_room());
  ASSERT_FALSE(lanes_[1]->sends.empty());
  const size_t offered = lanes_[1]->sends[0];
  ASSERT_GT(offered, 3u);
  // The core's headers and pointers are gone by now; what waits is a copy, and it goes first.
  lanes_[1]->sends.clear();
  lanes_[1]->take = SIZE_MAX;
  engines_[1]->Poll(now_);
  ASSERT_FALSE(lanes_[1]->sends.empty());
  EXPECT_EQ(lanes_[1]->sends[0], offered - 3);
  EXPECT_FALSE(engines_[1]->blocked_on_room());
  EXPECT_TRUE(StepUntilReceived());
  EXPECT_EQ(from, to);
  EXPECT_EQ(engines_[1]->endpoint().counters().retransmits, 0u);
}

// Nor does it keep what only a card can read, as its owner may have it back before it is sent. (An access to it by the
// processor ends the process.)
TEST_P(EngineTest, WhatOnlyACardReadsIsLostWhereTheLaneDoesNotTakeIt) {
  support::FakeDeviceMemory memory(12'000);
  std::iota(memory.bytes(), memory.bytes() + memory.size(), uint8_t{7});
  copier_.memory = &memory;
  lanes_[1]->reach_gpu = [&memory](const uint8_t* payload, size_t bytes) { return memory.Reach(payload, bytes); };
  const RegionId region = engines_[1]->endpoint().RegisterDeviceMemory(memory.memory(), kLocalOnly);
  std::vector<uint8_t> to(memory.size());
  ASSERT_EQ(engines_[0]->endpoint().PostReceive(in_, {.buffer = {to.data(), to.size()}}, now_), PostResult::kOk);
  ASSERT_EQ(engines_[1]->endpoint().PostSend(out_, {.buffer = {memory.address(), memory.size(), region}}, now_),
            PostResult::kOk);
  lanes_[1]->take = 3;
  now_ = now_ + Duration::Micros(10);
  engines_[1]->Poll(now_);
  lanes_[1]->take = SIZE_MAX;
  EXPECT_TRUE(StepUntilReceived());
  EXPECT_EQ(std::memcmp(to.data(), memory.bytes(), memory.size()), 0);
  const EndpointCounters& counters = engines_[1]->endpoint().counters();
  EXPECT_GT(counters.retransmits, 0u);
  EXPECT_EQ(counters.device_copies, counters.retransmits);
  engines_[1]->endpoint().DeregisterMemory(region, now_);
}

TEST_P(EngineTest, TransmitsWhatIsPostedAndOwedWithoutALookAtTheLanes) {
  std::vector<uint8_t> from(100, 3), to(100);
  Exchange(from, to);
  const int looks[] = {lanes_[0]->looks, lanes_[1]->looks};
  engines_[1]->Transmit(now_);
  EXPECT_TRUE(engines_[1]->last_poll_was_busy());
  EXPECT_EQ(lanes_[1]->looks, looks[1]);
  engines_[0]->Poll(now_);
  const int after = lanes_[0]->looks;
  EXPECT_GT(after, looks[0]);
  engines_[0]->Transmit(now_);  // the acknowledgement, if Poll left it
  EXPECT_EQ(lanes_[0]->looks, after);
  Completion completion;
  ASSERT_EQ(engines_[0]->endpoint().PollCompletions({&completion, 1}), 1u);
  EXPECT_EQ(from, to);
  EXPECT_EQ(engines_[1]->endpoint().PollCompletions({&completion, 1}), 0u);
  for (int i = 0; i < 2; ++i) engines_[1]->Poll(now_);
  EXPECT_EQ(engines_[1]->endpoint().PollCompletions({&completion, 1}), 1u);
}

TEST_P(EngineTest, TakesNothingForLostThatWasAnsweredWhileTheProcessPaused) {
  std::vector<uint8_t> from(12'000), to(12'000);
  Exchange(from, to);
  engines_[1]->Poll(now_);
  for (int i = 0; i < 20; ++i) {
    now_ = now_ + Duration::Micros(10);
    engines_[0]->Poll(now_);
  }
  const EndpointCounters& counters = engines_[1]->endpoint().counters();
  ASSERT_GT(counters.tx_data_packets, 0u);
  Completion completion;
  ASSERT_EQ(engines_[0]->endpoint().PollCompletions({&completion, 1}), 1u);
  ASSERT_EQ(engines_[1]->endpoint().PollCompletions({&completion, 1}), 0u);
  now_ = now_ + Duration::Millis(500);
  ASSERT_EQ(engines_[1]->endpoint().PostSend(out_, {.buffer = {from.data(), 100}}, now_), PostResult::kOk);
  for (int i = 0; i < 3; ++i) engines_[1]->Poll(now_);
  EXPECT_EQ(engines_[1]->endpoint().PollCompletions({&completion, 1}), 1u);
  EXPECT_EQ(counters.tail_probes, 0u);
  EXPECT_EQ(counters.timeouts, 0u);
  EXPECT_EQ(counters.retransmits, 0u);
}

INSTANTIATE_TEST_SUITE_P(Orders, EngineTest, ::testing::Bool(), [](const ::testing::TestParamInfo<bool>& order) {
  return order.param ? "RepliesFirst" : "AtOnce";
});

// An engine with one lane, at whose other end is no engine.
struct LoneEngine {
  explicit LoneEngine(const EngineOptions& options) {
    auto near = std::make_unique<MemoryLane>(0);
    MemoryLane::Join(*near, far);
    lane = near.get();
    std::vector<std::unique_ptr<Lane>> lanes;
    lanes.push_back(std::move(near));
    engine = Engine::Create(options, std::move(lanes)).value();
  }
  void Noise(int packets) {
    const uint8_t noise[4] = {};
    TxSegment segment;
    segment.header = noise;
    segment.header_bytes = sizeof(noise);
    for (int i = 0; i < packets; ++i) far.Send({&segment, 1});
  }

  const Time now = Time::FromNanos(1'000'000);
  MemoryLane far{1};
  MemoryLane* lane = nullptr;
  std::unique_ptr<Engine> engine;
};

TEST(EngineRepliesFirst, WhatAPassReceivesIsAnsweredByTheNext) {
  LoneEngine lone(Options(true));
  lone.engine->Poll(lone.now);
  lone.Noise(1);
  lone.lane->sends.clear();
  EXPECT_EQ(lone.engine->Poll(lone.now), lone.now);  // again at once
  EXPECT_TRUE(lone.engine->last_poll_was_busy());
  EXPECT_TRUE(lone.lane->sends.empty());
  EXPECT_GT(lone.engine->Poll(lone.now), lone.now);
}

TEST(EngineTransmit, ForgetsNothingThatWaitsInALane) {
  LoneEngine lone(Options());
  lone.Noise(300);
  lone.engine->Poll(lone.now);
  ASSERT_GT(lone.lane->waiting(), 0u) << "a look ends somewhere";
  EXPECT_EQ(lone.engine->Transmit(lone.now), lone.now);
  for (int i = 0; i < 3; ++i) lone.engine->Poll(lone.now);
  EXPECT_EQ(lone.lane->waiting(), 0u);
  EXPECT_GT(lone.engine->Transmit(lone.now), lone.now);
}

// Not while another lane is busy, that is; and it misses nothing.
TEST(EngineLooks, AtACostlyLaneThatNobodyUsesOnlyNowAndThen) {
  auto used = std::make_unique<MemoryLane>(0), costly = std::make_unique<MemoryLane>(1);
  MemoryLane to_used(2), to_costly(3);
  MemoryLane::Join(*used, to_used);
  MemoryLane::Join(*costly, to_costly);
  costly->set_costly_receive();
  MemoryLane* const lane = costly.get();
  std::vector<std::unique_ptr<Lane>> lanes;
  lanes.push_back(std::move(used));
  lanes.push_back(std::move(costly));
  auto engine = Engine::Create(Options(false), std::move(lanes));
  ASSERT_TRUE(engine.ok()) << engine.status();
  const uint8_t noise[20] = {};
  TxSegment segment;
  segment.header = noise;
  segment.header_bytes = sizeof(noise);
  Time now;
  const auto looks_in = [&](int micros, bool busy) {
    const int before = lane->looks;
    for (int i = 0; i < micros; ++i) {
      now = now + Duration::Micros(1);
      if (busy) to_used.Send({&segment, 1});
      (*engine)->Poll(now);
    }
    return lane->looks - before;
  };
  looks_in(1, true);
  EXPECT_EQ(looks_in(1000, true), 200);
  to_costly.Send({&segment, 1});
  looks_in(5, true);
  EXPECT_EQ(lane->counters().rx_packets, 1u);
  EXPECT_EQ(looks_in(500, true), 500) << "it is in use";
  looks_in(1000, true);
  EXPECT_EQ(looks_in(1000, true), 200);
  looks_in(1000, false);
  EXPECT_EQ(looks_in(1000, false), 1000) << "nothing else is";
}

TEST_P(EngineTest, AsksTheCoreForNothingWhileThereIsNoRoom) {
  std::vector<uint8_t> from(5'000), to(5'000);
  Exchange(from, to);
  lanes_[1]->promised = 0;
  lanes_[1]->sends.clear();
  engines_[1]->Poll(now_);
  EXPECT_TRUE(engines_[1]->blocked_on_room());
  EXPECT_TRUE(lanes_[1]->sends.empty());
  lanes_[1]->promised = SIZE_MAX;
  EXPECT_TRUE(StepUntilReceived());
}

TEST_P(EngineTest, TellsTheCoreOfAPortThatChanges) {
  lanes_[1]->current_status.up = false;
  lanes_[1]->current_status.change_count = 1;
  Step();
  EXPECT_EQ(engines_[1]->endpoint().counters().port_changes, 1u);
  Step();
  EXPECT_EQ(engines_[1]->endpoint().counters().port_changes, 1u);
}

TEST_P(EngineTest, WantsNothingForALongTimeWhenIdle) {
  for (int i = 0; i < 100; ++i) Step();
  const Time next = engines_[1]->Poll(now_);
  EXPECT_FALSE(engines_[1]->last_poll_was_busy());
  EXPECT_GT(next - now_, Duration::Millis(1));
}

TEST_P(EngineTest, DoesNotWaitForRoomThatItHasNoUseFor) {
  for (int i = 0; i < 100; ++i) Step();
  lanes_[1]->promised = 0;
  engines_[1]->Poll(now_);
  EXPECT_FALSE(engines_[1]->blocked_on_room());
}

TEST(EngineCreate, NamesWhatIsWrong) {
  EXPECT_THAT(std::string(Engine::Create(Options(), {}).status().message()), HasSubstr("at least one lane"));
  const auto create = [](const EngineOptions& options) {
    std::vector<std::unique_ptr<Lane>> list;
    list.push_back(std::make_unique<MemoryLane>(0));
    return std::string(Engine::Create(options, std::move(list)).status().message());
  };
  EngineOptions options = Options();
  options.endpoint.congestion_control = "nonsense";
  EXPECT_THAT(create(options), HasSubstr("nonsense"));
  options = Options();
  options.congestion_control_parameters["no_such_parameter"] = 1.0;
  EXPECT_THAT(create(options), HasSubstr("no_such_parameter"));
}

TEST(EngineCreate, RefusesAnAlgorithmThatNeedsWhatNoLaneBrings) {
  EngineOptions options = Options();
  options.endpoint.congestion_control = "hpcc";
  std::vector<std::unique_ptr<Lane>> lanes;
  lanes.push_back(std::make_unique<MemoryLane>(0));
  const auto engine = Engine::Create(options, std::move(lanes));
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("'hpcc' needs in-band telemetry"));
}

}  // namespace
}  // namespace paceline
