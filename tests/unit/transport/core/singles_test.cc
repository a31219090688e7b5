// Messages of one segment: they do not wait behind longer ones, nor for credit where the controller says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

class SinglesTest : public CoreSetupTest {};
INSTANTIATE_TEST_SUITE_P(Setups, SinglesTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

TEST_P(SinglesTest, ASmallMessageDoesNotWaitForALargeOneToBeSent) {
  GuardedBuffer& large = NewBuffer(4'000'000);
  GuardedBuffer& small = NewBuffer(100);
  const uint64_t large_in = Receive(1, large, 1);
  Receive(1, small, 2);
  Send(0, NewFilled(4'000'000, 1), 1);
  world().RunFor(Duration::Micros(50));
  const Time start = now();
  AwaitOk(0, Send(0, NewFilled(100, 2), 2));
  EXPECT_LT(now() - start, Duration::Micros(100)) << "the large one takes 320";
  EXPECT_EQ(Done(1, large_in), nullptr);
  AwaitAll();
  EXPECT_TRUE(large.Holds(1));
  EXPECT_TRUE(small.Holds(2));
}

TEST_P(SinglesTest, AStreamOfSmallMessagesLeavesALargeOneAShare) {
  GuardedBuffer& large = NewBuffer(400'000);
  const uint64_t large_in = Receive(1, large, 1);
  Send(0, NewFilled(400'000, 1), 1);
  size_t small = 0;
  GuardedBuffer& out = NewFilled(4000, 2);
  GuardedBuffer& in = NewBuffer(4000);
  for (; small < 3000 && Done(1, large_in) == nullptr; ++small) {
    Receive(1, in, 2);
    Send(0, out, 2);
    if (small % 16 == 15) world().RunFor(Duration::Micros(3));  // faster than the link
  }
  EXPECT_LT(small, 3000u) << "98 segments, one after each eight small messages";
  AwaitAll();
  EXPECT_TRUE(large.Holds(1));
}

// Gives no credit, but lets messages of one segment go up to 10,000 bytes.
class NothingButSingles final : public SenderController {
 public:
  void OnAck(const AckSample&) override {}
  void OnLoss(const LossSample&) override {}
  Allowance allowance() const override { return {.credit_end = 0, .single_end = 10'000}; }
};

class NothingButSinglesControl final : public CongestionControl {
 public:
  std::unique_ptr<SenderController> NewSender(const FlowInfo&, const PortInfo&, Time) override {
    return std::make_unique<NothingButSingles>();
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo&) override { return nullptr; }
};

TEST(SinglesWithoutCreditTest, GoAsFarAsTheControllerAllows) {
  WorldOptions options;
  options.new_congestion_control = [](uint32_t) { return std::make_unique<NothingButSinglesControl>(); };
  ScriptedWorld world(options);
  const ConnectionId connection = world.Establish(0, 1).first;
  std::vector<uint8_t> bytes(10'000);
  const auto send = [&](size_t size) {
    SendRequest request;
    request.buffer = {bytes.data(), size, kUnregistered};
    EXPECT_EQ(world.endpoint(0).PostSend(connection, request, world.now()), PostResult::kOk);
  };
  const auto sent = [&] { return world.endpoint(0).counters().tx_data_bytes; };
  send(10'000);  // three segments
  world.RunFor(Duration::Millis(1));
  EXPECT_EQ(sent(), 0u);
  for (int i = 0; i < 20; ++i) send(2000);
  world.RunFor(Duration::Millis(1));
  EXPECT_EQ(sent(), 10'000u);
}

// Lets messages of one segment go up to `single_end`, and all others once it has heard of a backlog: so do algorithms
// that start when there is something to send.
class StartsWhenTold final : public SenderController {
 public:
  StartsWhenTold(uint64_t single_end, std::vector<bool>* told) : single_end_(single_end), told_(told) {}
  void OnAck(const AckSample&) override {}
  void OnLoss(const LossSample&) override {}
  void OnBacklog(Time, uint64_t bytes, uint64_t) override {
    told_->push_back(bytes > 0);
    started_ |= bytes > 0;
  }
  Allowance allowance() const override {
    return {.credit_end = started_ ? uint64_t{1} << 40 : 0, .single_end = single_end_};
  }

 private:
  const uint64_t single_end_;
  std::vector<bool>* const told_;
  bool started_ = false;
};

struct StartsWhenToldControl final : public CongestionControl {
  std::unique_ptr<SenderController> NewSender(const FlowInfo&, const PortInfo&, Time) override {
    return std::make_unique<StartsWhenTold>(single_end, told);
  }
  std::unique_ptr<ReceiverController> NewReceiver(const PortInfo&) override { return nullptr; }
  uint64_t single_end = 0;
  std::vector<bool>* told = nullptr;
};

// Sends this, with this `single_end`, and returns what the controller heard.
std::vector<bool> ToldOf(size_t bytes, uint64_t single_end) {
  std::vector<bool> told;
  WorldOptions options;
  options.new_congestion_control = [&](uint32_t) {
    auto control = std::make_unique<StartsWhenToldControl>();
    control->single_end = single_end;
    control->told = &told;
    return control;
  };
  ScriptedWorld world(options);
  const ConnectionId connection = world.Establish(0, 1).first;
  std::vector<uint8_t> out(bytes);
  SendRequest request;
  request.buffer = {out.data(), bytes, kUnregistered};
  EXPECT_EQ(world.endpoint(0).PostSend(connection, request, world.now()), PostResult::kOk);
  world.RunFor(Duration::Micros(20));  // before any timer would ask again
  EXPECT_EQ(world.endpoint(0).counters().tx_data_bytes, bytes);
  return told;
}

TEST(BacklogTest, AControllerDoesNotHearOfASingleThatMayGo) { EXPECT_EQ(ToldOf(1000, 10'000), std::vector<bool>()); }

TEST(BacklogTest, OneThatHasToWaitIsToldOfAndTriedAgainAtOnce) {
  EXPECT_EQ(ToldOf(1000, 0), (std::vector<bool>{true, false}));
}

TEST(BacklogTest, LongerMessagesAreToldOf) { EXPECT_EQ(ToldOf(10'000, 20'000), (std::vector<bool>{true, false})); }

// A send that comes whole in one packet goes straight to its receive.
class WholeSendTest : public CoreFixture {};

TEST_F(WholeSendTest, IsAcknowledgedAtOnceFromSomeLengthOn) {
  WorldOptions options;
  options.endpoint.prompt_ack_bytes = 64;
  options.endpoint.last_ack_delay = options.endpoint.max_ack_delay = Duration::Millis(5);
  Start(options);
  const auto time_of = [this](size_t bytes) {
    Receive(1, NewBuffer(bytes));
    const Time start = now();
    Await(0, SendUnawaited(0, NewFilled(bytes, 1), 0));
    return now() - start;
  };
  EXPECT_LT(time_of(64), Duration::Micros(100));
  EXPECT_GT(time_of(63), Duration::Micros(200));
}

TEST_F(WholeSendTest, IsCounted) {
  Start({});
  for (int i = 0; i < 10; ++i) {
    Receive(1, NewBuffer(100));
    Send(0, NewFilled(100, 1));
  }
  AwaitAll();
  EXPECT_EQ(endpoint(1).counters().rx_data_bytes, 1000u);
}

TEST_F(WholeSendTest, OfAPlaceInTheOrderThatIsTakenIsRefused) {
  Start({});
  int lies = 5;
  HookData([&lies](const wire::DataHeader& header, NetworkPacket& packet, Fate&) {
    if (header.message != 1 || lies-- <= 0) return;
    constexpr size_t kMatchSequenceAt = 60;
    std::fill_n(packet.bytes.begin() + kMatchSequenceAt, 4, uint8_t{0});
    wire::RefreshChecksum(std::span(packet.bytes).first(packet.header_bytes));
  });
  GuardedBuffer& first = NewBuffer(100);
  GuardedBuffer& second = NewBuffer(100);
  Receive(1, first);
  const uint64_t taken = Receive(1, second);
  AwaitOk(0, Send(0, NewFilled(100, 1)));
  Send(0, NewFilled(100, 2));
  world().RunFor(Duration::Micros(50));
  EXPECT_GT(endpoint(1).counters().rx_malformed, 0u);
  EXPECT_EQ(Done(1, taken), nullptr);
  AwaitAll();
  EXPECT_TRUE(first.Holds(1));
  EXPECT_TRUE(second.Holds(2));
}

}  // namespace
}  // namespace paceline::support
