#include "transport/core/rx/ack_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

constexpr Duration kDelay = Duration::Micros(25);

Time At(int64_t micros) { return Time() + Duration::Micros(micros); }

wire::AckFrame Built(AckState& acks, Time now) {
  wire::AckFrame frame;
  acks.Build(&frame, now);
  return frame;
}

TEST(AckStateTest, TellsOfThePacketThatArrivedLastNotOfTheHighest) {
  AckState acks;
  acks.OnAccepted(1, 1, 100, At(1));
  acks.OnAccepted(3, 1, 300, At(2));  // overtook
  acks.OnAccepted(2, 1, 200, At(9));
  const wire::AckFrame frame = Built(acks, At(10));
  EXPECT_EQ(frame.last_psn, 2u);
  EXPECT_EQ(frame.timestamp, 200u);
  EXPECT_EQ(frame.delay_nanos, 1000u);
  EXPECT_EQ(frame.cumulative, 4u);
  EXPECT_EQ(acks.UnwrapPsn(4), 4u);
}

TEST(AckStateTest, SaysSoAfterSoManyPacketsOrThisTime) {
  AckState acks;
  EXPECT_FALSE(acks.pending());
  acks.OnAccepted(1, 1, 0, At(0));
  acks.RequestAck(1, false, 2, kDelay, At(0));
  EXPECT_FALSE(acks.due(At(24)));
  EXPECT_TRUE(acks.due(At(25)));
  acks.OnAccepted(2, 1, 0, At(1));
  acks.RequestAck(1, false, 2, kDelay, At(1));
  EXPECT_TRUE(acks.due(At(1)));
  Built(acks, At(1));
  EXPECT_FALSE(acks.pending());
}

TEST(AckStateTest, WaitsForAPacketToRideOnOnce) {
  AckState acks;
  acks.OnAccepted(1, 1, 0, At(0));
  acks.RequestAck(1, true, 2, kDelay, At(0));
  EXPECT_TRUE(acks.Defer());
  EXPECT_FALSE(acks.Defer());
  Built(acks, At(0));
  EXPECT_TRUE(acks.Defer());
}

TEST(AckStateTest, AnswersAProbeTwiceWhenEverythingWasAcknowledgedBefore) {
  AckState acks;
  acks.OnAccepted(1, 1, 0, At(0));
  acks.OnProbe();
  acks.RequestAck(1, true, 2, kDelay, At(0));
  EXPECT_TRUE(acks.due(At(0)));
  Built(acks, At(0));
  EXPECT_TRUE(acks.due(At(0)));
  Built(acks, At(0));
  EXPECT_FALSE(acks.pending());
  acks.OnAccepted(2, 1, 0, At(1));
  acks.RequestAck(1, false, 2, kDelay, At(1));
  acks.OnAccepted(3, 1, 0, At(2));
  acks.OnProbe();
  acks.RequestAck(1, true, 2, kDelay, At(2));
  Built(acks, At(2));
  EXPECT_FALSE(acks.pending()) << "there was news";
}

// The last of a few packets whose sender waits for nothing takes back what their number has called for.
TEST(AckStateTest, WaitsForAnAnswerIfItMay) {
  AckState acks;
  uint64_t psn = 1;
  const auto arrives = [&](Time now) {
    acks.OnAccepted(psn++, 1, 0, now);
    acks.RequestAck(1, false, 2, kDelay, now);
  };
  arrives(At(0));
  arrives(At(1));
  EXPECT_TRUE(acks.due(At(1)));
  acks.LetWait(kDelay, At(1));
  EXPECT_FALSE(acks.due(At(25)));
  EXPECT_TRUE(acks.due(At(26)));
  arrives(At(10));
  acks.LetWait(kDelay, At(10));  // more of the kind does not put it off further
  EXPECT_FALSE(acks.due(At(25)));
  EXPECT_TRUE(acks.due(At(26)));
  for (int i = 0; i < 12; ++i) arrives(At(11));
  EXPECT_FALSE(acks.due(At(11)));
  arrives(At(11));  // the sixteenth
  EXPECT_TRUE(acks.due(At(11)));
  Built(acks, At(11));
  arrives(At(30));
  arrives(At(30));
  EXPECT_TRUE(acks.due(At(30)));
}

TEST(AckStateTest, DoesNotWaitWithWhatWasAskedForNorWithAGap) {
  AckState acks;
  acks.OnAccepted(1, 1, 0, At(0));
  acks.RequestAck(1, true, 2, kDelay, At(0));
  acks.LetWait(kDelay, At(0));
  EXPECT_TRUE(acks.due(At(0)));
  Built(acks, At(0));
  acks.OnAccepted(3, 1, 0, At(1));
  acks.RequestAck(1, false, 1, kDelay, At(1));
  acks.LetWait(kDelay, At(1));
  EXPECT_TRUE(acks.due(At(1)));
}

TEST(AckStateTest, TelemetryIsToldOnceAndOnlyTheNewest) {
  AckState acks;
  EXPECT_EQ(acks.TakeTelemetry(), nullptr);
  std::vector<HopTelemetry> hops(3);
  hops[2].link = 7;
  acks.OnTelemetry(1, hops);
  hops[2].link = 8;
  acks.OnTelemetry(2, hops);
  const wire::TelemetryFrame* told = acks.TakeTelemetry();
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->port, 2u);
  ASSERT_EQ(told->hops, 3u);
  EXPECT_EQ(told->hop[2].link, 8u);
  EXPECT_EQ(acks.TakeTelemetry(), nullptr);
  acks.OnTelemetry(0, std::vector<HopTelemetry>(100));  // more than a frame takes
  EXPECT_EQ(acks.TakeTelemetry()->hops, limits::kMaxTelemetryHops);
  acks.OnTelemetry(0, hops);
  acks.ReleaseIdleState();
  EXPECT_EQ(acks.TakeTelemetry(), nullptr);
}

TEST(AckStateTest, KnowsCopiesAndWhatIsTooFarAhead) {
  AckState acks;
  acks.OnAccepted(5, 1, 0, At(0));
  EXPECT_EQ(acks.Check(5), AckState::Verdict::kDuplicate);
  EXPECT_EQ(acks.Check(4), AckState::Verdict::kNew);
  EXPECT_EQ(acks.Check(uint64_t{4} * limits::kMaxOutstandingPackets), AckState::Verdict::kOutOfWindow);
  acks.OnFloor(5);
  EXPECT_EQ(acks.Check(4), AckState::Verdict::kDuplicate);
}

TEST(AckStateTest, PacketsMayBeTakenTogether) {
  AckState acks;
  EXPECT_TRUE(acks.AllNew(1, 200));
  acks.OnAccepted(1, 200, 7, At(3));
  acks.RequestAck(200, false, 201, kDelay, At(3));
  EXPECT_FALSE(acks.due(At(3)));
  acks.RequestAck(1, false, 201, kDelay, At(3));
  EXPECT_TRUE(acks.due(At(3)));
  EXPECT_FALSE(acks.AllNew(150, 100)) << "some of them have come";
  EXPECT_FALSE(acks.AllNew(200, 1));
  EXPECT_TRUE(acks.AllNew(201, 100));
  acks.OnAccepted(210, 10, 8, At(4));
  EXPECT_FALSE(acks.AllNew(201, 10)) << "the last of them has come";
  EXPECT_TRUE(acks.AllNew(201, 9));
  EXPECT_FALSE(acks.AllNew(201, uint64_t{4} * limits::kMaxOutstandingPackets)) << "beyond what is kept";
  const wire::AckFrame frame = Built(acks, At(5));
  EXPECT_EQ(frame.cumulative, 201u);
  EXPECT_EQ(frame.last_psn, 219u);
  EXPECT_EQ(frame.timestamp, 8u);
  EXPECT_EQ(frame.delay_nanos, 1000u);
  acks.OnFloor(300);
  EXPECT_FALSE(acks.AllNew(299, 2)) << "nobody waits for the first";
}

TEST(AckStateTest, MarksAreToldPacketByPacket) {
  AckState acks;
  acks.OnAccepted(1, 1, 0, At(0));
  acks.OnAccepted(2, 1, 0, At(0));
  acks.OnMarked(2);
  const wire::AckFrame frame = Built(acks, At(0));
  ASSERT_TRUE(frame.has_marks);
  EXPECT_EQ(frame.base, 0u);
  EXPECT_EQ(frame.received[0], 0b110u);
  EXPECT_EQ(frame.marked[0], 0b100u);
}

TEST(AckStateTest, AnIdleOneDoesNotTakeWhatIsMissingForArrived) {
  AckState acks;
  acks.OnAccepted(1, 1, 0, At(0));
  acks.OnAccepted(3, 1, 0, At(0));
  acks.OnMarked(3);
  Built(acks, At(0));
  acks.ReleaseIdleState();
  EXPECT_EQ(acks.Check(2), AckState::Verdict::kNew);
  acks.OnAccepted(4, 1, 0, At(1));
  const wire::AckFrame frame = Built(acks, At(1));
  EXPECT_EQ(frame.cumulative, 2u);
  EXPECT_EQ(frame.received[0], 0b11010u);
  acks.OnAccepted(2, 1, 0, At(1));
  acks.ReleaseIdleState();
  EXPECT_EQ(acks.memory_bytes(), 0u);
}

TEST(AckStateTest, AnIdleOneHoldsNoMemoryAndStillKnowsWhatWasThere) {
  AckState acks;
  acks.OnAccepted(1, 1, 0, At(0));
  acks.OnMarked(1);
  acks.OnAccepted(2, 1, 0, At(0));
  Built(acks, At(0));
  acks.ReleaseIdleState();
  EXPECT_EQ(acks.memory_bytes(), 0u);
  EXPECT_EQ(acks.Check(2), AckState::Verdict::kDuplicate);
  EXPECT_EQ(acks.Check(3), AckState::Verdict::kNew);
}

TEST(AckStateTest, TellsOfAnyPacketWhetherItHasArrived) {
  AckState acks;
  for (const uint64_t psn : {1, 2, 70, 130, 1000}) acks.OnAccepted(psn, 1, 0, At(1));
  EXPECT_EQ(acks.ArrivedWord(0), 0b111u) << "there is no packet 0";
  EXPECT_EQ(acks.ArrivedWord(64), uint64_t{1} << 6);
  EXPECT_EQ(acks.ArrivedWord(128), uint64_t{1} << 2);
  EXPECT_EQ(acks.ArrivedWord(1024), 0u);
  acks.OnFloor(100);
  EXPECT_EQ(acks.ArrivedWord(0), ~uint64_t{0});
  EXPECT_EQ(acks.ArrivedWord(64), (uint64_t{1} << 36) - 1) << "nobody waits for those below";
  EXPECT_EQ(acks.ArrivedWord(128), uint64_t{1} << 2);
  for (uint64_t psn = 100; psn < 1000; ++psn) acks.OnAccepted(psn, 1, 0, At(1));
  acks.ReleaseIdleState();
  EXPECT_EQ(acks.ArrivedWord(64), ~uint64_t{0});
  EXPECT_EQ(acks.ArrivedWord(960), (uint64_t{1} << 41) - 1);
  EXPECT_TRUE(acks.MayBeSent(5));
  EXPECT_TRUE(acks.MayBeSent(20'000));
  EXPECT_FALSE(acks.MayBeSent(60'000));
}

}  // namespace
}  // namespace paceline
