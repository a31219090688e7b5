// When a sender is told of credit and of receives that stand ready, what it asks for, and what it does with what it
// gets: the allocator grants what the test says.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/wire/frames.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr size_t kSegment = 4096;
constexpr uint32_t kBurstSegments = 16;
constexpr uint64_t kBurst = kBurstSegments * kSegment;

// Of one port; grants its only flow, once, what it is told to.
class ScriptedReceiver final : public ReceiverController {
 public:
  void Give(uint64_t credit_end) {
    credit_end_ = credit_end;
    due_ = true;
  }
  void AddFlow(uint32_t flow, const FlowInfo&, Time) override { flow_ = flow; }
  void RemoveFlow(uint32_t, Time) override {}
  void OnDemand(uint32_t, uint64_t, Rate, Time) override {}
  void OnArrival(uint32_t, const ArrivalSample&) override {}
  Time PollTimeout() const override { return due_ ? Time() : Time::Never(); }
  size_t PollGrants(Time, std::span<Grant> out) override {
    if (!std::exchange(due_, false)) return 0;
    out[0] = {.flow = flow_, .credit_end = credit_end_};
    return 1;
  }
  uint64_t outstanding_credit_bytes() const override { return 0; }

 private:
  uint32_t flow_ = 0;
  uint64_t credit_end_ = 0;
  bool due_ = false;
};

struct Script {
  std::vector<ScriptedReceiver*> receivers;  // of host 1, by port
  bool holds = false;
  Rate pace = Rate::Unlimited();
};

// Sends what it has credit for, unless it holds all of it.
class CreditedSender final : public SenderController {
 public:
  explicit CreditedSender(const Script* script) : script_(script) {}
  void OnAck(const AckSample&) override {}
  void OnLoss(const LossSample&) override {}
  void OnGrant(const GrantSample& sample) override { credit_end_ = std::max(credit_end_, sample.credit_end); }
  Allowance allowance() const override {
    return {.credit_end = script_->holds ? 0 : credit_end_,
            .pacing_rate = script_->pace,
            .held_end = script_->holds ? credit_end_ : 0};
  }

 private:
  const Script* const script_;
  uint64_t credit_end_ = 0;
};

class ScriptedControl final : public CongestionControl {
 public:
  ScriptedControl(Script* script, bool is_receiver) : script_(script), is_receiver_(is_receiver) {}
  std::unique_ptr<SenderController> NewSender(const FlowInfo&, const PortInfo&, Time) override {
    return std::make_unique<CreditedSender>(script_);
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo&) override {
    auto receiver = std::make_unique<ScriptedReceiver>();
    if (is_receiver_) script_->receivers.push_back(receiver.get());
    return receiver;
  }

 private:
  Script* const script_;
  const bool is_receiver_;
};

// Host 0 sends, host 1 receives.
class CreditNewsTest : public CoreFixture {
 protected:
  struct News {
    Time at;
    uint32_t port = 0;
    uint64_t credit_end = 0;
    uint32_t clear_limit = 0;
    uint64_t arrived = 0;  // bytes, when it was said
  };

  void Begin(uint32_t burst_segments = kBurstSegments, uint32_t ports = 1) { Begin({}, burst_segments, ports); }
  void Begin(WorldOptions options, uint32_t burst_segments, uint32_t ports) {
    options.ports = ports;
    options.network.poll_interval = Duration::Nanos(1);
    options.packet_capabilities.burst_segments = burst_segments;
    options.packet_capabilities.max_packet_bytes = kSegment + limits::kMaxDataHeaderBytes;
    options.new_congestion_control = [this](uint32_t host) {
      return std::make_unique<ScriptedControl>(&script_, host == 1);
    };
    Listen(options);
  }
  // The same by a window, without any credit.
  void BeginWithoutCredit() {
    WorldOptions options;
    options.packet_capabilities.burst_segments = kBurstSegments;
    Listen(options);
  }

  void Give(uint64_t credit_end, uint32_t port = 0) { script_.receivers[port]->Give(credit_end); }
  void Rest(Duration time = Duration::Millis(5)) { world().RunFor(time); }
  // Posts it at host 1.
  uint64_t Expect(uint64_t bytes) { return Receive(1, NewBuffer(bytes), 1); }
  uint64_t Send(uint64_t bytes) { return CoreFixture::Send(0, NewFilled(bytes, bytes), 1); }
  uint64_t arrived() { return endpoint(1).counters().rx_data_bytes; }
  // Sends four bursts without credit, so that host 0 asks for some; what it is answered stands in told_.
  uint64_t AskInVain() {
    Expect(4 * kBurst);
    Rest();
    told_.clear();
    const uint64_t send = Send(4 * kBurst);
    Rest(Duration::Micros(100));
    EXPECT_EQ(demands_, 1u);
    return send;
  }

  // Sends a message that ends a little behind a burst, and one of two, with credit for the first burst and then for two
  // more: what leaves then, as its headers say.
  std::vector<wire::DataHeader> SendAnEndAndMore(uint64_t end) {
    for (const uint64_t bytes : {kBurst + end, 2 * kBurst}) Expect(bytes);
    Give(kBurst);
    Rest();
    std::vector<wire::DataHeader> left;
    also_ = [&left](NetworkPacket& packet, Fate&) {
      bool bad_checksum = false;
      const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
      if (!common.has_value() || common->type != wire::PacketType::kData || packet.payload_bytes == 0) return;
      left.push_back(wire::ParseData(*common, packet.bytes).value());
    };
    for (const uint64_t bytes : {kBurst + end, 2 * kBurst}) Send(bytes);
    Rest();
    EXPECT_EQ(left.size(), kBurstSegments);
    left.clear();
    Give(3 * kBurst);
    Rest(Duration::Micros(50));
    also_ = nullptr;
    return left;
  }

  std::vector<News> told_;
  size_t demands_ = 0;
  std::function<void(NetworkPacket&, Fate&)> also_;  // sees all packets
  size_t lose_ = 0;                                  // of the next packets with news so many are lost
  Script script_;

 private:
  struct Listener final : wire::FrameHandler {
    CreditNewsTest* test = nullptr;
    bool news = false;
    void OnGrant(const wire::GrantFrame& frame) override {
      news = true;
      test->told_.push_back({test->now(), frame.port, frame.credit_end, frame.clear_limit, test->arrived()});
    }
    void OnDemand(const wire::DemandFrame&) override { ++test->demands_; }
    void OnAck(const wire::AckFrame&) override {}
    void OnTrimmed(const wire::TrimmedFrame&) override {}
    void OnTelemetry(const wire::TelemetryFrame&) override {}
    void OnFence(const wire::FenceFrame&) override {}
    void OnFenced(const wire::FencedFrame&) override {}
    void OnNotReady(uint32_t) override {}
    void OnPing(uint32_t) override {}
    void OnPong(uint32_t) override {}
    void OnClose(uint16_t) override {}
    void OnCloseAck(uint16_t) override {}
    void OnAbort(uint16_t) override {}
  };

  void Listen(const WorldOptions& options) {
    script_ = Script();
    Start(options);
    told_.clear();
    network().SetHook([this](NetworkPacket& packet, Fate& fate) {
      if (also_) also_(packet, fate);
      bool bad_checksum = false;
      const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
      if (!common.has_value() || common->type != wire::PacketType::kControl) return;
      Listener listener;
      listener.test = this;
      wire::ParseFrames(std::span(packet.bytes).first(common->header_bytes).subspan(wire::kCommonBytes), listener);
      if (listener.news && lose_ > 0) {
        --lose_;
        fate.drop = true;
      }
    });
  }
};

TEST_F(CreditNewsTest, MoreThanAThirdAsMuchAgainIsToldAtOnce) {
  Begin();
  Expect(16 * kBurst);
  Give(6 * kBurst);
  Rest();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back().credit_end, 6 * kBurst);
  Give(8 * kBurst + 1);
  const Time start = now();
  Rest();
  EXPECT_EQ(told_.back().credit_end, 8 * kBurst + 1);
  EXPECT_LT(told_.back().at - start, Duration::Micros(1));
}

// But not longer than until it has a use for it.
TEST_F(CreditNewsTest, ASenderThatHasNothingToSendKnowsOfThreeQuarters) {
  Begin();
  const uint64_t receive = Expect(8 * kBurst);
  Give(6 * kBurst);
  Rest();
  Give(8 * kBurst);
  Rest();
  EXPECT_EQ(told_.back().credit_end, 6 * kBurst);
  Send(8 * kBurst);
  AwaitOk(1, receive);
  EXPECT_EQ(told_.back().credit_end, 8 * kBurst);
  EXPECT_LT(told_.back().arrived, 5 * kBurst) << "before it has to stop";
  EXPECT_EQ(demands_, 0u);
}

TEST_F(CreditNewsTest, OrOfOneBurstOfTwo) {
  Begin();
  Expect(8 * kBurst);
  Give(kBurst);
  Rest();
  Give(2 * kBurst);
  Rest();
  EXPECT_EQ(told_.back().credit_end, kBurst);
  Give(3 * kBurst);
  Rest();
  EXPECT_EQ(told_.back().credit_end, 3 * kBurst);
}

TEST_F(CreditNewsTest, WhoHasCreditForAllThatItSendsHearsOfMoreWithTheAcknowledgement) {
  Begin();
  const uint64_t receive = Expect(4 * kBurst);
  Give(4 * kBurst);
  Rest();
  const size_t before = told_.size();
  Send(4 * kBurst);
  world().RunUntil([this] { return arrived() > 0; });
  ASSERT_LT(arrived(), kBurst);
  Give(5 * kBurst);
  AwaitOk(1, receive);
  Rest();
  ASSERT_EQ(told_.size(), before + 1);
  EXPECT_EQ(told_.back().credit_end, 5 * kBurst);
  EXPECT_EQ(told_.back().arrived, 4 * kBurst);
}

// What came has just been acknowledged, and the rest is late.
TEST_F(CreditNewsTest, WhoHasMoreToSendDoesNotWaitForAnAcknowledgementThatIsNotPending) {
  Begin();
  Expect(16 * kBurst);
  Give(12 * kBurst);
  Rest();
  size_t packets = 0;
  also_ = [&](NetworkPacket& packet, Fate& fate) {
    if (packet.payload_bytes > 0 && ++packets > 4 * kBurstSegments) fate.extra_delay = Duration::Millis(2);
  };
  Send(16 * kBurst);
  world().RunUntil([this] { return arrived() == 4 * kBurst && endpoint(1).counters().acks_sent > 0; });
  Give(14 * kBurst);
  const Time start = now();
  Rest(Duration::Micros(50));
  ASSERT_EQ(demands_, 0u);
  EXPECT_EQ(told_.back().credit_end, 14 * kBurst);
  EXPECT_LE(told_.back().at - start, Duration::Micros(1));
}

TEST_F(CreditNewsTest, LanesThatSendOneByOneAreToldAllAtOnce) {
  Begin(1);
  Expect(8 * kBurst);
  Give(4 * kBurst);
  Rest();
  Give(4 * kBurst + 1);
  Rest();
  EXPECT_EQ(told_.back().credit_end, 4 * kBurst + 1);
  for (uint32_t limit = 2; limit < 10; ++limit) {
    Expect(8 * kBurst);
    Rest(Duration::Micros(10));
    EXPECT_EQ(told_.back().clear_limit, limit);
  }
}

TEST_F(CreditNewsTest, AndAskForAllThatTheyHaveToSend) {
  Begin(1);
  const uint64_t receive = Expect(4 * kBurst);
  Give(4 * kBurst);
  Rest();
  told_.clear();
  script_.holds = true;
  Send(4 * kBurst);
  Rest(Duration::Micros(100));
  EXPECT_EQ(demands_, 1u);
  script_.holds = false;
  Give(5 * kBurst);
  AwaitOk(1, receive);
}

TEST_F(CreditNewsTest, AndAreAnsweredThoughThereIsNothingToSay) {
  Begin(1);
  const uint64_t send = AskInVain();
  EXPECT_EQ(told_.size(), 1u);
  Give(4 * kBurst);
  AwaitOk(0, send);
}

TEST_F(CreditNewsTest, OfTwoPortsTheOneWithUrgentNewsIsToldOf) {
  Begin(kBurstSegments, 2);
  Expect(64 * kBurst);
  Give(4 * kBurst, 0);
  Give(4 * kBurst, 1);
  Rest();
  told_.clear();
  Give(5 * kBurst, 0);
  Rest();
  EXPECT_TRUE(told_.empty());
  Give(12 * kBurst, 1);
  Rest();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].port, 1u);
  EXPECT_EQ(told_[0].credit_end, 12 * kBurst);
}

TEST_F(CreditNewsTest, WhoAsksIsToldAgainWhatWasLost) {
  Begin();
  const uint64_t receive = Expect(4 * kBurst);
  Rest();
  lose_ = 1;
  Give(4 * kBurst);
  Rest();
  ASSERT_EQ(lose_, 0u);
  const Time start = now();
  Send(4 * kBurst);
  AwaitOk(1, receive);
  EXPECT_EQ(demands_, 1u);
  EXPECT_LT(now() - start, Duration::Millis(1));
}

TEST_F(CreditNewsTest, WhoAsksIsToldWhatHasRested) {
  Begin();
  const uint64_t receive = Expect(4 * kBurst);
  Expect(4 * kBurst);
  Give(4 * kBurst);
  Rest();
  Give(5 * kBurst);
  Rest();
  ASSERT_EQ(told_.back().credit_end, 4 * kBurst);
  also_ = [](NetworkPacket& packet, Fate& fate) { fate.drop = packet.payload_bytes > 0; };
  Send(4 * kBurst);
  const uint64_t send = Send(4 * kBurst);
  world().RunUntil([this] { return demands_ > 0; });
  Rest(Duration::Micros(20));
  EXPECT_EQ(told_.back().credit_end, 5 * kBurst);
  also_ = nullptr;
  Give(32 * kBurst);  // what is lost takes credit again
  AwaitOk(1, receive);
  AwaitOk(0, send);
}

TEST_F(CreditNewsTest, WhoAsksForCreditThatIsNotThereIsAnsweredTheSecondTime) {
  Begin();
  const uint64_t send = AskInVain();
  EXPECT_TRUE(told_.empty());
  world().RunUntil([this] { return demands_ == 2; });
  Rest(Duration::Micros(20));
  EXPECT_EQ(told_.size(), 1u);
  Give(4 * kBurst);
  AwaitOk(0, send);
}

TEST_F(CreditNewsTest, WhatTheAllocatorSaysAgainToASenderWithABacklogIsToldAgain) {
  Begin();
  const uint64_t send = AskInVain();  // and so states its backlog
  lose_ = 1;
  Give(4 * kBurst);
  Rest(Duration::Micros(10));
  ASSERT_EQ(lose_, 0u);
  told_.clear();
  Give(4 * kBurst);
  Rest(Duration::Micros(10));
  EXPECT_EQ(told_.size(), 1u);
  AwaitOk(0, send);
}

// It was found lost, waited for credit, and arrived after all where there was no room for it.
TEST_F(CreditNewsTest, WhatIsPutOffIsNotSentAgainForCreditAlone) {
  WorldOptions options;
  options.endpoint.unexpected_bytes = 1000;
  Begin(options, kBurstSegments, 1);
  const uint64_t first = Expect(kBurst);
  Give(kBurst + 1);
  Send(kBurst);
  AwaitOk(1, first);
  also_ = [](NetworkPacket& packet, Fate& fate) {
    if (packet.payload_bytes > 0) fate.extra_delay = Duration::Millis(200);
  };
  const uint64_t put_off = Send(3000);
  Rest(Duration::Millis(100));
  const auto& sent = endpoint(0).counters();
  ASSERT_GT(sent.lost_timeout, 0u);
  ASSERT_EQ(endpoint(1).counters().not_ready_sent, 0u);
  Rest(Duration::Millis(150));
  ASSERT_EQ(endpoint(1).counters().not_ready_sent, 1u);
  also_ = nullptr;
  Give(2 * kBurst);
  Rest(Duration::Millis(100));
  EXPECT_EQ(sent.retransmits, 0u);
  Expect(3000);
  AwaitOk(0, put_off);
}

TEST_F(CreditNewsTest, WhatWasNeverToldIsTakenBackWhenAllIsIdle) {
  Begin();
  const uint64_t receive = Expect(4 * kBurst);
  Give(4 * kBurst);
  Send(4 * kBurst);
  AwaitOk(1, receive);
  Rest();
  Give(5 * kBurst);
  Rest();
  ASSERT_EQ(told_.back().credit_end, 5 * kBurst);
  Give(6 * kBurst);  // rests
  Rest(Duration::Seconds(2));
  told_.clear();
  for (int i = 0; i < 9; ++i) Expect(4 * kBurst);
  Rest();
  ASSERT_FALSE(told_.empty()) << "of the receives";
  EXPECT_EQ(told_.back().credit_end, 5 * kBurst);
}

TEST_F(CreditNewsTest, WhoWaitsToBeClearedIsAnsweredWithoutCredit) {
  Begin();
  lose_ = 1;
  Expect(4 * kBurst);
  Rest();
  ASSERT_EQ(lose_, 0u) << "that there is a receive";
  const uint64_t send = Send(4 * kBurst);
  Rest();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back().clear_limit, 1u);
  Give(4 * kBurst);
  AwaitOk(0, send);
}

TEST_F(CreditNewsTest, OrWithCreditThatItHas) {
  Begin();
  const uint64_t first = Expect(kBurst);
  Give(8 * kBurst);
  Send(kBurst);
  AwaitOk(1, first);
  Rest();
  lose_ = 2;  // that there is a receive, and that the send is matched
  Expect(4 * kBurst);
  Rest();
  ASSERT_EQ(lose_, 1u);
  const uint64_t send = Send(4 * kBurst);
  AwaitOk(0, send);
  EXPECT_EQ(lose_, 0u);
}

TEST_F(CreditNewsTest, AControllerThatHoldsCreditForAllAsksForNone) {
  for (const uint64_t credit : {4 * kBurst, 3 * kBurst}) {
    Begin();
    demands_ = 0;
    Expect(4 * kBurst);
    Give(credit);
    Rest();
    script_.holds = true;
    Send(4 * kBurst);
    Rest(Duration::Micros(10));
    EXPECT_EQ(demands_, credit == 4 * kBurst ? 0u : 1u);
    Rest(Duration::Seconds(1));  // it is to send first what it may, and wonders about nothing
    EXPECT_EQ(demands_, credit == 4 * kBurst ? 0u : 1u);
    EXPECT_EQ(endpoint(0).counters().asks_sent, 0u);
    script_.holds = false;
    Give(8 * kBurst);
    AwaitAll();
  }
}

// The receiver knows of more than it has given credit for, so it gives when it can.
TEST_F(CreditNewsTest, WhoHasSaidThatABurstIsToComeDoesNotAskForMore) {
  struct Case {
    uint32_t burst_segments;
    uint64_t said, more;  // beyond the credit
    size_t demands;
  };
  for (const Case& c : {Case{kBurstSegments, kBurst, kBurst / 2, 0}, Case{kBurstSegments, kBurst - kSegment, kBurst, 1},
                        Case{kBurstSegments, 2 * kBurst, 3 * kBurst, 1}, Case{1, kBurst, kBurst / 2, 1}}) {
    Begin(c.burst_segments);
    demands_ = 0;
    for (const uint64_t bytes : {kBurst + c.said, c.more}) Expect(bytes);
    Give(kBurst);
    Rest();
    for (const uint64_t bytes : {kBurst + c.said, c.more}) {
      EXPECT_EQ(demands_, 0u);
      Send(bytes);
      Rest(Duration::Micros(20));
    }
    ASSERT_EQ(arrived(), kBurst);
    EXPECT_EQ(demands_, c.demands) << c.burst_segments << ' ' << c.said << ' ' << c.more;
    Give(8 * kBurst);
    AwaitAll();
  }
}

// Without it, what is lost would count as being on its way.
TEST_F(CreditNewsTest, ButForWhatItHasFoundLost) {
  Begin();
  Expect(8 * kBurst);
  Give(kBurst);
  Rest();
  size_t packets = 0;
  also_ = [&packets](NetworkPacket& packet, Fate& fate) { fate.drop = packet.payload_bytes > 0 && ++packets == 3; };
  Send(8 * kBurst);
  const auto& counters = endpoint(0).counters();
  const auto lost = [&counters] { return counters.lost_path_gap + counters.lost_reorder + counters.lost_timeout; };
  world().RunUntil([&] { return lost() > 0 || demands_ > 0; });
  ASSERT_GT(lost(), 0u);
  Rest(Duration::Micros(1));
  EXPECT_EQ(demands_, 1u);
  also_ = nullptr;
  Give(10 * kBurst);
  AwaitAll();
}

TEST_F(CreditNewsTest, OfReceivesTheSenderKnowsThreeQuarters) {
  BeginWithoutCredit();
  const size_t long_send = 1 << 20;
  for (int i = 0; i < 9; ++i) Expect(long_send);
  Rest();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back().clear_limit, 9u);
  for (int i = 0; i < 3; ++i) Expect(long_send);
  Rest();
  EXPECT_EQ(told_.back().clear_limit, 9u);
  Send(long_send);
  Rest();
  EXPECT_EQ(told_.back().clear_limit, 12u) << "with the acknowledgement";
  for (int i = 0; i < 3; ++i) Expect(long_send);
  Rest();
  EXPECT_EQ(told_.back().clear_limit, 12u);
  Expect(long_send);
  Rest();
  EXPECT_EQ(told_.back().clear_limit, 16u);
}

TEST_F(CreditNewsTest, OfReceivesWithoutCreditItHearsWithTheCredit) {
  Begin();
  uint64_t receive = Expect(4 * kBurst);
  Give(4 * kBurst);
  Send(4 * kBurst);
  AwaitOk(1, receive);
  Rest();
  told_.clear();
  receive = Expect(4 * kBurst);
  Rest();
  EXPECT_TRUE(told_.empty());
  Give(8 * kBurst);
  Rest();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].credit_end, 8 * kBurst);
  EXPECT_EQ(told_[0].clear_limit, 2u);
  Send(4 * kBurst);
  AwaitOk(1, receive);
}

// As it would have gone with the one before, if there had been credit for it.
TEST_F(CreditNewsTest, TheEndOfAMessageGoesWithTheBurstBehindIt) {
  for (const uint32_t segments : {1u, 4u, 5u}) {
    Begin();
    const std::vector<wire::DataHeader> left = SendAnEndAndMore(segments * kSegment - 100);
    size_t of_one_path = 0;
    while (of_one_path < left.size() && left[of_one_path].entropy == left[0].entropy) ++of_one_path;
    EXPECT_EQ(of_one_path, segments < 5 ? segments + kBurstSegments : kBurstSegments) << segments;
  }
}

// Its few bytes say nothing of how far behind its schedule the sender may catch up.
TEST_F(CreditNewsTest, TheEndOfAMessageTakesNoTimeFromWhatFollows) {
  Begin();
  script_.pace = Rate::Gbps(1);
  const std::vector<wire::DataHeader> left = SendAnEndAndMore(100);
  ASSERT_GT(left.size(), kBurstSegments);
  for (size_t i = 0; i <= kBurstSegments; ++i) EXPECT_EQ(left[i].timestamp, left[0].timestamp) << i;
}

}  // namespace
}  // namespace paceline::support
