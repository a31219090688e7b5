// The queue pairs of paths: how they are opened, what ends them, and that nothing of an earlier one lands after a later
// one has been accepted.
#include "tests/unit/transport/lane/verbs/verbs_fixture.h"
#include "transport/lane/verbs/verbs_messages.h"

namespace paceline::support {
namespace {

using Fate = FakeVerbs::Fate;
using Packet = FakeVerbs::Packet;

class VerbsPathsTest : public VerbsFixture {
 protected:
  // The lane's own messages of this type, as a hook sees them.
  static bool IsMessage(const Packet& packet, VerbsMessageType type) {
    if (packet.write || !packet.has_immediate) return false;
    const auto message = ParseVerbsMessage(packet.bytes);
    return message.has_value() && message->type == type;
  }
  // A second write is still on its way when its path is reset, and the Close that tells of that is lost.
  void GiveUpAnAttemptUnheard() {
    Send(WriteOf(1, 100));
    Run();
    cards_.hook = [](const Packet& packet) {
      if (packet.write) return Fate::kPark;
      return IsMessage(packet, VerbsMessageType::kClose) ? Fate::kDrop : Fate::kDeliver;
    };
    Send(WriteOf(2, 100));
    Run();
    a_->ResetPath(to_b_, 7, 0);
    Run();
    cards_.hook = nullptr;
  }
};

TEST_F(VerbsPathsTest, WhatWaitedForTheAnswerGoesInOrder) {
  for (uint32_t i = 1; i <= 5; ++i) Send(WriteOf(i, 100));
  EXPECT_EQ(Immediates(Run()), List({1, 2, 3, 4, 5}));
  EXPECT_EQ(cards_.PathQps(0).size(), 1u);
  EXPECT_EQ(cards_.PathQps(1).size(), 1u);
}

TEST_F(VerbsPathsTest, EachConnectionAndEntropyHasItsOwn) {
  Send(WriteOf(1, 100, 0, 7));
  Send(WriteOf(2, 100, 1, 7));
  Send(WriteOf(3, 100, 0, 8));
  Run();
  EXPECT_EQ(cards_.PathQps(1).size(), 3u);
}

TEST_F(VerbsPathsTest, ALostOpenOrAcceptIsMadeUpFor) {
  for (const VerbsMessageType lost : {VerbsMessageType::kOpen, VerbsMessageType::kAccept}) {
    int left = 2;
    cards_.hook = [&left, lost](const Packet& packet) {
      return IsMessage(packet, lost) && left-- > 0 ? Fate::kDrop : Fate::kDeliver;
    };
    const uint32_t immediate = static_cast<uint32_t>(lost);
    Send(WriteOf(immediate, 100, static_cast<uint16_t>(lost)));
    EXPECT_EQ(Immediates(Run(Duration::Millis(200))), List({immediate}));
  }
  EXPECT_EQ(cards_.PathQps(1).size(), 2u) << "an Open that comes again makes no second QP";
}

TEST_F(VerbsPathsTest, NobodyAnswers) {
  cards_.hook = [](const Packet& packet) { return packet.write ? Fate::kDeliver : Fate::kDrop; };
  for (uint32_t i = 0; i < 300; ++i) Send(WriteOf(i, 2000));
  Run(Duration::Seconds(30));
  EXPECT_EQ(a_->counters().tx_drops, 300u);
  EXPECT_TRUE(cards_.PathQps(0).empty());
  cards_.hook = nullptr;
  Send(WriteOf(1, 100));
  EXPECT_EQ(Immediates(Run()), List({1})) << "all slots are free again, and the path opens";
}

TEST_F(VerbsPathsTest, AFailedQpIsReplacedAndNothingOfItLandsLate) {
  Send(WriteOf(1, 100));
  Run();
  cards_.hook = [](const Packet& packet) { return packet.write ? Fate::kPark : Fate::kDeliver; };
  Send(WriteOf(2, 100));
  Run();
  cards_.hook = nullptr;
  cards_.FailQp(cards_.PathQps(0)[0]);
  Run(Duration::Millis(20));
  Send(WriteOf(3, 100));
  EXPECT_EQ(Immediates(Run()), List({3}));
  cards_.ReleaseParked();
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(memory_[0], 3u) << "the second write landed after the third";
  EXPECT_EQ(cards_.PathQps(1).size(), 1u);
}

TEST_F(VerbsPathsTest, AFailedQpOfTheOtherSideIsToldAndReplaced) {
  Send(WriteOf(1, 100));
  Run();
  cards_.FailQp(cards_.PathQps(1)[0]);
  Run(Duration::Millis(20));
  EXPECT_TRUE(cards_.PathQps(1).empty());
  EXPECT_TRUE(cards_.PathQps(0).empty());
  Send(WriteOf(2, 100));
  EXPECT_EQ(Immediates(Run()), List({2}));
}

TEST_F(VerbsPathsTest, AResetPathHasAnotherQpAndNothingOfTheOldOneLandsLate) {
  Send(WriteOf(1, 100));
  Run();
  const uint32_t before = cards_.PathQps(0)[0];
  cards_.hook = [](const Packet& packet) { return packet.write ? Fate::kPark : Fate::kDeliver; };
  Send(WriteOf(2, 100));
  Run();
  cards_.hook = nullptr;
  a_->ResetPath(to_b_, 7, 0);
  Send(WriteOf(3, 100));
  EXPECT_EQ(Immediates(Run()), List({3}));
  EXPECT_NE(cards_.PathQps(0)[0], before);
  cards_.ReleaseParked();
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(memory_[0], 3u);
}

// The Close is lost: the Open of the next attempt must end the old QP all the same.
TEST_F(VerbsPathsTest, AnOpenEndsTheQpOfTheAttemptBefore) {
  GiveUpAnAttemptUnheard();
  EXPECT_EQ(cards_.PathQps(1).size(), 1u) << "it does not know yet";
  Send(WriteOf(3, 100));
  EXPECT_EQ(Immediates(Run()), List({3}));
  EXPECT_EQ(cards_.PathQps(1).size(), 1u);
  cards_.ReleaseParked();
  EXPECT_TRUE(Run().empty());
}

// The card does not stop the old QP at the first time of asking: until it does there is no other.
TEST_F(VerbsPathsTest, AQpThatIsNotStoppedKeepsTheNextAttemptOut) {
  GiveUpAnAttemptUnheard();
  cards_.Jam(1, 1);
  Send(WriteOf(3, 100));
  EXPECT_TRUE(Immediates(Run()).empty());
  Run(Duration::Millis(300));
  Send(WriteOf(4, 100));
  EXPECT_EQ(Immediates(Run()), List({4}));
  cards_.ReleaseParked();
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(memory_[0], 4u) << "the second write landed after the fourth";
}

// A card may give the number of a QP to the next one, and a write does not say which QP it comes from.
TEST_F(VerbsPathsTest, ALateWriteIsNotTakenForOneOfTheNextQp) {
  cards_.ReuseNumbers();
  for (const bool closed : {true, false}) {  // the Close that goes before the Open arrives, or is lost
    SCOPED_TRACE(closed);
    Send(WriteOf(1, 100));
    Run();
    cards_.hook = [closed](const Packet& packet) {
      if (packet.write) return Fate::kPark;
      return !closed && IsMessage(packet, VerbsMessageType::kClose) ? Fate::kDrop : Fate::kDeliver;
    };
    Send(WriteOf(2, 100));
    Run();
    a_->ResetPath(to_b_, 7, 0);
    Run();
    cards_.hook = nullptr;
    Send(WriteOf(3, 100));
    EXPECT_EQ(Immediates(Run()), List({3}));
    cards_.ReleaseParked();
    EXPECT_TRUE(Run().empty());
    EXPECT_EQ(memory_[0], 3u) << "the second write landed after the third";
  }
}

TEST_F(VerbsPathsTest, ACompletionBehindTheOpenIsNotTakenForOneOfTheNextQp) {
  cards_.ReuseNumbers();
  Send(WriteOf(1, 100));
  Run();
  cards_.hook = [](const Packet& packet) {
    if (packet.write) return Fate::kPark;
    return IsMessage(packet, VerbsMessageType::kClose) ? Fate::kDrop : Fate::kDeliver;
  };
  Send(WriteOf(2, 100));
  Run();
  cards_.hook = nullptr;
  a_->ResetPath(to_b_, 7, 0);
  Send(WriteOf(3, 100));  // the Open is on the wire
  cards_.ReleaseParked();
  EXPECT_EQ(Immediates(Run()), List({3}));
}

// The same after a pause of the process, in which the time to keep a stopped QP has run out.
TEST_F(VerbsPathsTest, ACompletionThatWaitedForLongIsNotTakenForOneOfTheNextQp) {
  cards_.ReuseNumbers();
  Send(WriteOf(1, 100));
  Run();
  cards_.hook = [](const Packet& packet) { return packet.write ? Fate::kPark : Fate::kDeliver; };
  Send(WriteOf(2, 100));
  Receive(*a_);
  cards_.hook = nullptr;
  a_->ResetPath(to_b_, 7, 0);
  SendPacket(*a_, to_b_, "between");
  Send(WriteOf(3, 100));
  cards_.ReleaseParked();  // at B in this order: Close, packet, Open, write
  std::array<RxSegment, 1> one;
  ASSERT_EQ(b_->Receive(one, now_), 1u);
  EXPECT_TRUE(cards_.PathQps(1).empty()) << "Close has come";
  now_ = now_ + Duration::Seconds(10);
  EXPECT_EQ(Immediates(Run()), List({3}));
}

// ---- fences

TEST_F(VerbsPathsTest, AFenceRefusesWhatIsOnItsWay) {
  Send(WriteOf(1, 100, 0));
  Send(WriteOf(1, 100, 1));
  Run();
  cards_.hook = [](const Packet& packet) { return packet.write ? Fate::kPark : Fate::kDeliver; };
  Send(WriteOf(2, 100, 0));
  Send(WriteOf(2, 100, 1));
  Run();
  cards_.hook = nullptr;
  b_->FenceWrites(7);
  EXPECT_TRUE(cards_.PathQps(1).empty());
  cards_.ReleaseParked();
  const auto told = Receive(*b_);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, SegmentKind::kFenced);
  EXPECT_EQ(told[0].connection, 7u);
  EXPECT_TRUE(Run().empty());
  EXPECT_EQ(memory_[0], 1u) << "a write landed behind the fence";
  a_->EndWrites(to_b_, 7);
  Send(WriteOf(3, 100));
  EXPECT_EQ(Immediates(Run()), List({3}));
}

TEST_F(VerbsPathsTest, WhatHadBeenPlacedIsToldBeforeTheFence) {
  Send(WriteOf(1, 100));
  Run();
  Send(WriteOf(2, 100));
  Send(WriteOf(3, 100));
  Receive(*a_);  // what is on the wire is placed; B has not looked
  b_->FenceWrites(7);
  const auto told = Receive(*b_);
  EXPECT_EQ(Immediates(told), List({2, 3}));
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[2].kind, SegmentKind::kFenced);
}

TEST_F(VerbsPathsTest, AFenceIsForOneConnection) {
  Send(WriteOf(1, 100, 0, 7));
  Send(WriteOf(2, 100, 0, 8));
  Run();
  b_->FenceWrites(7);
  Run();
  EXPECT_EQ(cards_.PathQps(1).size(), 1u);
  Send(WriteOf(3, 100, 0, 8));
  EXPECT_EQ(Immediates(Run()), List({3}));
}

TEST_F(VerbsPathsTest, AFenceWithNothingToRefuseHoldsToo) {
  b_->FenceWrites(7);
  const auto told = Receive(*b_);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, SegmentKind::kFenced);
}

// The writer has given up its QP before and opens the next one: that one is not meant.
TEST_F(VerbsPathsTest, APathThatIsOpenedBesideTheFenceStays) {
  for (const bool before : {true, false}) {
    SCOPED_TRACE(before);
    const uint32_t connection = before ? 7 : 8;
    Send(WriteOf(1, 100, 0, connection));
    Run();
    a_->EndWrites(to_b_, connection);
    if (before) {
      Send(WriteOf(2, 100, 0, connection));
      Receive(*a_);  // Close and Open wait at B
      b_->FenceWrites(connection);
    } else {
      b_->FenceWrites(connection);
      Send(WriteOf(2, 100, 0, connection));
    }
    EXPECT_EQ(Immediates(Run()), List({2}));
  }
}

// It may go on placing what comes: nothing is promised.
TEST_F(VerbsPathsTest, ACardThatStopsNoQpHoldsNoFence) {
  Send(WriteOf(1, 100));
  Run();
  cards_.Jam(1);
  b_->FenceWrites(7);
  EXPECT_TRUE(Receive(*b_).empty());
}

// Nor when the writer has said before that its QP is no more.
TEST_F(VerbsPathsTest, ACardThatStopsNoQpHoldsNoFenceForOneThatIsClosed) {
  cards_.hook = [](const Packet& packet) {
    return packet.write && be32toh(packet.immediate) == 2 ? Fate::kPark : Fate::kDeliver;
  };
  Send(WriteOf(1, 100));
  Run();
  Send(WriteOf(2, 100));
  Run();
  cards_.Jam(1);
  a_->EndWrites(to_b_, 7);
  Run();
  b_->FenceWrites(7);
  EXPECT_TRUE(Receive(*b_).empty());
  cards_.hook = nullptr;
  cards_.ReleaseParked();
  Run();
  EXPECT_EQ(memory_[0], 2u) << "it did land";
}

// A lane whose port is down, or whose card has said that it is dead, still refuses what might come.
TEST_F(VerbsPathsTest, ALaneThatIsDownHoldsAFence) {
  Send(WriteOf(1, 100));
  Run();
  cards_.SetPort(1, false);
  Run(Duration::Millis(20));
  EXPECT_FALSE(b_->status().up);
  b_->FenceWrites(7);
  EXPECT_EQ(Receive(*b_).size(), 1u);
  Send(WriteOf(2, 100, 0, 8));
  cards_.TellDevice(1, IBV_EVENT_DEVICE_FATAL);
  Run(Duration::Millis(20));
  b_->FenceWrites(8);
  EXPECT_EQ(Receive(*b_).size(), 1u);
}

// What the caller is about to wait for is there.
TEST_F(VerbsPathsTest, AFenceIsNotSleptThrough) {
  b_->FenceWrites(7);
  EXPECT_FALSE(b_->PrepareToWait());
  EXPECT_EQ(Receive(*b_).size(), 1u);
}

TEST_F(VerbsPathsTest, StoppedQpsDoNotPileUp) {
  const size_t before = cards_.objects();
  for (uint32_t round = 0; round < 2000; ++round) {
    Send(WriteOf(1, 8));
    Run();
    a_->EndWrites(to_b_, 7);
    Run();
  }
  EXPECT_LT(cards_.objects(), before + 500);
  now_ = now_ + Duration::Seconds(10);
  Send(WriteOf(1, 8));
  Run();
  EXPECT_LE(cards_.objects(), before + 2) << "after a while they are gone";
}

TEST_F(VerbsPathsTest, AnOldOpenThatComesLateEndsNothing) {
  bool park = true;
  cards_.hook = [&park](const Packet& packet) {
    return park && IsMessage(packet, VerbsMessageType::kOpen) ? Fate::kPark : Fate::kDeliver;
  };
  Send(WriteOf(1, 100));
  Run(Duration::Millis(30));
  park = false;
  Run(Duration::Millis(100));  // the Open that was repeated opens the path
  a_->EndWrites(to_b_, 7);
  Send(WriteOf(2, 100));
  EXPECT_EQ(Immediates(Run()), List({2}));
  const auto qps = cards_.PathQps(1);
  cards_.ReleaseParked();
  Run();
  EXPECT_EQ(cards_.PathQps(1), qps);
  Send(WriteOf(3, 100));
  EXPECT_EQ(Immediates(Run()), List({3}));
}

TEST_F(VerbsPathsTest, AnOldAcceptThatComesLateOpensNothing) {
  int left = 1;
  cards_.hook = [&left](const Packet& packet) {
    return IsMessage(packet, VerbsMessageType::kAccept) && left-- > 0 ? Fate::kPark : Fate::kDeliver;
  };
  Send(WriteOf(1, 100));
  Run();
  a_->EndWrites(to_b_, 7);
  Send(WriteOf(2, 100));
  cards_.ReleaseParked();
  Receive(*a_);  // the first Accept is there, the second Open has not been looked at
  EXPECT_EQ(Immediates(Run(Duration::Millis(100))), List({2}));
}

TEST_F(VerbsPathsTest, AConnectionOrAPeerThatEndsTakesItsPathsAlong) {
  Send(WriteOf(1, 100, 0, 7));
  Send(WriteOf(2, 100, 0, 8));
  Run();
  a_->EndWrites(to_b_, 7);
  Run();
  EXPECT_EQ(cards_.PathQps(0).size(), 1u);
  EXPECT_EQ(cards_.PathQps(1).size(), 1u);
  a_->ClosePeer(to_b_);
  Run();
  EXPECT_TRUE(cards_.PathQps(0).empty());
  EXPECT_TRUE(cards_.PathQps(1).empty());
}

TEST_F(VerbsPathsTest, MorePathsThanTheLaneHasTakeTurns) {
  for (uint32_t connection = 0; connection < 300; ++connection) {
    now_ = now_ + Duration::Millis(1);
    Send(WriteOf(connection, 100, 0, connection));
    EXPECT_EQ(Immediates(Run()), List({connection}));
  }
  EXPECT_LE(cards_.PathQps(0).size(), 256u);
  EXPECT_EQ(a_->counters().tx_drops, 0u);
}

// Completions that a card forgets with a QP had taken receives from the queue that all share.
TEST_F(VerbsPathsTest, EndedPathsTakeNoReceivesAlong) {
  for (uint32_t round = 0; round < 150; ++round) {
    Send(WriteOf(0, 8));
    Run();
    cards_.hook = [](const Packet& packet) { return packet.write ? Fate::kPark : Fate::kDeliver; };
    for (uint32_t i = 0; i < 32; ++i) Send(WriteOf(i, 8));
    Receive(*a_);
    cards_.hook = nullptr;
    a_->EndWrites(to_b_, 7);
    SendPacket(*a_, to_b_, "between");
    cards_.ReleaseParked();
    std::array<RxSegment, 1> one;
    ASSERT_EQ(b_->Receive(one, now_), 1u);  // Close and the packet; the writes are still behind them
    ASSERT_TRUE(cards_.PathQps(1).empty());
    now_ = now_ + Duration::Seconds(10);  // B does not look, and the QP has been kept for long enough
    Run();
  }
  Send(WriteOf(5, 8));
  EXPECT_EQ(Immediates(Run()), List({5}));
}

TEST_F(VerbsPathsTest, ALaneThatIsMadeAnewStartsItsPathsAnew) {
  Send(WriteOf(1, 100));
  Run();
  a_.reset();
  a_ = Make("fake0");  // with the number of the datagram QP that was
  to_b_ = a_->OpenPeer(b_->address());
  Send(WriteOf(2, 100));
  EXPECT_EQ(Immediates(Run()), List({2}));
}

TEST_F(VerbsPathsTest, ALanesOwnMessageWithoutItsMarkIsAPacket) {
  Send(WriteOf(1, 100));
  Run();
  VerbsMessage message;
  message.mtu = 4096;
  const auto bytes = EncodeVerbsMessage(message);
  SendPacket(*a_, to_b_, std::string(bytes.begin(), bytes.end()));
  EXPECT_EQ(Run().size(), 1u);
  EXPECT_EQ(cards_.PathQps(1).size(), 1u);
}

TEST_F(VerbsPathsTest, ReliableQpsCarryThePathsWhenAskedFor) {
  a_ = Make("fake0", true);
  to_b_ = a_->OpenPeer(b_->address());
  Send(WriteOf(1, 100));
  EXPECT_EQ(Immediates(Run()), List({1}));
  EXPECT_EQ(cards_.TypeOf(cards_.PathQps(0)[0]), IBV_QPT_RC);
  EXPECT_EQ(cards_.TypeOf(cards_.PathQps(1)[0]), IBV_QPT_RC);
}

}  // namespace
}  // namespace paceline::support
