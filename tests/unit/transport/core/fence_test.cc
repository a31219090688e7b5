// A port of a placing lane that dies for good, ours or the peer's, or the cable between them: what was written through
// it is fenced by the peer and sent again through another port, nothing lands in memory that was given back, and no
// operation is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/base/random.h"
#include "transport/wire/frames.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr size_t kBytes = 1'000'000;

class FenceTest : public CoreFixture {
 protected:
  void SetUp() override { StartWorld(2); }
  void StartWorld(uint32_t ports, uint64_t control_bytes = 256 * 1024) {
    WorldOptions options;
    options.lanes = LaneKind::kHca;
    options.ports = ports;
    options.control_bytes = control_bytes;
    Start(options);
    in_ = &NewBuffer(kBytes);
    region_ = endpoint(1).RegisterMemory(in_->data(), in_->size(), kRemoteWrite);
  }
  uint32_t NetworkPort(uint32_t host, uint32_t port) { return world().lane(host, port).port(); }
  // On its way between the first ports of the two hosts, in either direction.
  bool OnFirstCable(const NetworkPacket& packet) {
    return packet.from == NetworkPort(0, 0) || packet.to == NetworkPort(0, 0) || packet.from == NetworkPort(1, 0) ||
           packet.to == NetworkPort(1, 0);
  }
  // The first half of a message has been written.
  void AwaitWrites() {
    const uint64_t half = endpoint(0).counters().tx_data_bytes + kBytes / 2;
    ASSERT_TRUE(world().RunUntil([&] { return endpoint(0).counters().tx_data_bytes > half; }));
  }
  // The first port of host 0 goes down, with what was on its way.
  void CutOwnPort() {
    network().SetHook([&](NetworkPacket& packet, Fate& fate) { fate.drop = OnFirstCable(packet); });
    world().RunFor(Duration::Micros(15));
    network().SetHook(nullptr);
    network().SetPortUp(NetworkPort(0, 0), false);
  }
  // The same buffer again and again, which is the user's between two rounds; `strike` comes in the midst of the second.
  void Rounds(int rounds, const std::function<void()>& strike, Duration limit = Duration::Seconds(5)) {
    for (int round = 0; round < rounds; ++round) {
      const auto pattern = static_cast<uint64_t>(round);
      const uint64_t receive = Receive(1, *in_, 1, 0, nullptr, region_);
      const uint64_t send = Send(0, NewFilled(kBytes, pattern), 1);
      if (round == 1) {
        AwaitWrites();
        strike();
      }
      const Time start = now();
      ASSERT_EQ(Await(1, receive, limit).status, OperationStatus::kOk) << "round " << round;
      EXPECT_TRUE(in_->Holds(pattern)) << "round " << round;
      in_->Poison();
      ASSERT_EQ(Await(0, send, limit).status, OperationStatus::kOk) << "round " << round;
      longest_ = std::max(longest_, now() - start);
    }
  }
  // What was on its way for longest has come by then, or never will.
  void ExpectNothingLate() {
    world().RunFor(Duration::Seconds(5));
    EXPECT_TRUE(in_->Untouched());
    EXPECT_EQ(endpoint(0).counters().connections_lost, 0u);
  }
  uint64_t FencesAsked() { return endpoint(0).counters().fences_asked; }
  // A control packet with these frames, as the peer of `to` would send it.
  void InjectFrames(uint32_t to, const std::function<void(wire::Writer&)>& write) {
    std::vector<uint8_t> buffer(limits::kMaxControlBytes);
    wire::Writer writer(buffer);
    wire::BeginPacket(writer);
    write(writer);
    buffer.resize(writer.size());
    wire::FinishPacket(buffer, wire::PacketType::kControl, 0, connection(to));
    NetworkPacket packet;
    packet.from = NetworkPort(1 - to, 1);
    packet.to = NetworkPort(to, 1);
    packet.header_bytes = static_cast<uint32_t>(buffer.size());
    packet.bytes = std::move(buffer);
    network().Inject(std::move(packet));
    world().RunFor(Duration::Micros(50));
  }

  GuardedBuffer* in_ = nullptr;
  RegionId region_ = kUnregistered;
  Duration longest_;  // that a round took after the strike
};

TEST_F(FenceTest, AnOwnPortThatStaysDownCostsAFewRoundTrips) {
  Rounds(4, [&] { CutOwnPort(); });
  EXPECT_LT(longest_, Duration::Millis(2));
  EXPECT_GT(endpoint(0).counters().lost_fenced, 0u);
  EXPECT_EQ(world().hca(0, 0).writes_ended(), FencesAsked()) << "our card may still send what was fenced";
  EXPECT_EQ(world().hca(0, 1).writes_ended(), 0u);
  EXPECT_EQ(endpoint(1).counters().fences_held, FencesAsked());
  ExpectNothingLate();
}

TEST_F(FenceTest, APortOfThePeerThatStaysDown) {
  Rounds(4, [&] { network().SetPortUp(NetworkPort(1, 0), false); });
  EXPECT_LT(longest_, Duration::Seconds(1));
  EXPECT_GE(FencesAsked(), 1u);
  ExpectNothingLate();
}

TEST_F(FenceTest, ACableThatSwallowsEverything) {
  Rounds(4, [&] { network().SetHook([&](NetworkPacket& packet, Fate& fate) { fate.drop = OnFirstCable(packet); }); });
  EXPECT_LT(longest_, Duration::Seconds(1));
  EXPECT_GE(FencesAsked(), 1u);
  ExpectNothingLate();
}

// While others keep the second port busy, that the first one is dead is known after four time-outs.
TEST_F(FenceTest, ABusyConnectionDoesNotWaitForSilence) {
  Rounds(1, [] {});
  GuardedBuffer& memory = NewBuffer(kBytes);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  network().SetHook([&](NetworkPacket& packet, Fate& fate) { fate.drop = OnFirstCable(packet); });
  const uint64_t struck = Write(0, NewFilled(kBytes, 1), remote);
  GuardedBuffer& small = NewBuffer(100);
  const Time start = now();
  while (Done(0, struck) == nullptr && now() - start < Duration::Seconds(2)) {
    AwaitOk(0, Read(0, small, Export(1, NewBuffer(100), kRemoteRead)));
    world().RunFor(Duration::Millis(1));
  }
  AwaitOk(0, struck);
  EXPECT_LT(now() - start, Duration::Millis(200));
  EXPECT_TRUE(memory.Holds(1));
}

// What the network has kept back lands when the buffers are the user's again.
TEST_F(FenceTest, WhatComesLateIsRefused) {
  for (const bool own_port : {false, true}) {
    SCOPED_TRACE(own_port);
    TearDown();
    StartWorld(2);
    Rounds(4, [&] {
      network().SetHook([&, from = now()](NetworkPacket& packet, Fate& fate) {
        if (!OnFirstCable(packet)) return;
        fate.drop = packet.kind == SegmentKind::kPacket && !own_port;
        if (packet.kind == SegmentKind::kWrite && now() < from + Duration::Millis(500)) {
          fate.extra_delay = Duration::Seconds(3);
        }
      });
      world().RunFor(Duration::Micros(15));
      if (!own_port) return;
      network().SetPortUp(NetworkPort(0, 0), false);
      world().RunFor(Duration::Millis(1));
    });
    ExpectNothingLate();
    EXPECT_GT(world().hca(1, 0).writes_refused(), 0u) << "nothing came late";
    if (HasFailure()) return;
  }
}

// The test above would see it: a card that says that a fence holds and takes writes all the same.
TEST_F(FenceTest, AFenceThatDoesNotHoldIsSeen) {
  world().hca(1, 0).set_fences(FakeHcaLane::Fences::kBroken);
  Rounds(2, [&] {
    network().SetHook([&](NetworkPacket& packet, Fate& fate) {
      if (!OnFirstCable(packet)) return;
      fate.drop = packet.kind == SegmentKind::kPacket;
      fate.extra_delay = Duration::Seconds(3);
    });
  });
  world().RunFor(Duration::Seconds(5));
  EXPECT_FALSE(in_->Untouched());
  EXPECT_FALSE(world().Violations().empty());
  world_.reset();
}

TEST_F(FenceTest, QuestionsAndAnswersMayBeLostRepeatedAndLate) {
  uint64_t asked = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    TearDown();
    StartWorld(2);
    auto random = std::make_shared<Random>(seed);
    Rounds(
        4,
        [&] {
          network().SetHook([&, random](NetworkPacket& packet, Fate& fate) {
            if (packet.kind == SegmentKind::kWrite) {
              if (OnFirstCable(packet)) fate.extra_delay = Duration::Millis(static_cast<int64_t>(random->Below(3000)));
              return;
            }
            if (!packet.control) return;
            fate.drop = random->Chance(0.4);
            fate.copies = 1 + static_cast<uint32_t>(random->Below(3));
            fate.copy_spacing = Duration::Millis(static_cast<int64_t>(random->Below(200)));
            fate.overtake = true;
          });
        },
        Duration::Seconds(30));
    ExpectNothingLate();
    asked += FencesAsked();
    if (HasFailure()) return;
  }
  EXPECT_GE(asked, 10u);
}

// Its data waited on no one: the port has its share again.
TEST_F(FenceTest, APortThatIsBackIsWrittenThroughAgain) {
  for (const bool tells : {true, false}) {
    SCOPED_TRACE(tells);
    TearDown();
    StartWorld(2);
    Rounds(4, [&] {
      if (tells) {
        network().SetPortUp(NetworkPort(0, 0), false);
      } else {
        network().SetHook([&](NetworkPacket& packet, Fate& fate) { fate.drop = OnFirstCable(packet); });
      }
    });
    const uint64_t dead = world().hca(1, 0).writes_placed();
    network().SetHook(nullptr);
    network().SetPortUp(NetworkPort(0, 0), true);
    world().RunFor(Duration::Millis(300));
    Rounds(20, [] {});
    EXPECT_GT(world().hca(1, 0).writes_placed(), dead + 500);
    ExpectNothingLate();
    if (HasFailure()) return;
  }
}

// A port that had to be fenced is tried with packets, not with writes that would have to be fenced again.
TEST_F(FenceTest, ADeadPortIsFencedOnce) {
  Rounds(2, [&] { network().SetHook([&](NetworkPacket& packet, Fate& fate) { fate.drop = OnFirstCable(packet); }); });
  const uint64_t asked = FencesAsked();
  longest_ = Duration();
  Rounds(20, [] {});
  EXPECT_EQ(FencesAsked(), asked);
  EXPECT_LT(longest_, Duration::Millis(100));
}

// Acknowledgements tell of 512 packets. What arrived before these is told by the answer alone, and must not be written
// again into memory that was given back.
TEST_F(FenceTest, WhatHadArrivedIsNotWrittenAgain) {
  StartWorld(2, 64 << 20);
  GuardedBuffer& memory = NewBuffer(kBytes);
  const RemoteMemory remote = Export(1, memory, kRemoteWrite);
  Rounds(1, [] {});
  bool first = true;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    if (packet.kind == SegmentKind::kWrite && packet.payload_bytes > 0 && OnFirstCable(packet)) {
      fate.drop = std::exchange(first, false);
    }
    if (packet.from == NetworkPort(1, 0) || packet.from == NetworkPort(1, 1)) fate.drop = true;
  });
  const uint64_t gap = Write(0, NewFilled(kBytes, 1), remote);  // its first segment is lost
  std::vector<GuardedBuffer*> targets;
  std::vector<uint64_t> writes;
  for (int i = 0; i < 20; ++i) {
    targets.push_back(&NewBuffer(kBytes));
    const RemoteMemory target = Export(1, *targets.back(), kRemoteWrite);
    writes.push_back(WriteImmediate(0, NewFilled(kBytes, 2), target, 0, 5));
  }
  const auto all_told = [&] { return host(1).completions.size() >= 1 + writes.size(); };
  ASSERT_TRUE(world().RunUntil(all_told, Duration::Millis(15)));
  for (GuardedBuffer* target : targets) {  // who got the immediate has the memory again
    EXPECT_TRUE(target->Holds(2));
    target->Poison();
    for (uint32_t port = 0; port < 2; ++port) world().hca(1, port).Protect(target->data(), target->size());
  }
  network().SetHook([&](NetworkPacket& packet, Fate& fate) { fate.drop = OnFirstCable(packet); });
  AwaitOk(0, gap);
  for (const uint64_t write : writes) AwaitOk(0, write);
  EXPECT_TRUE(memory.Holds(1));
  EXPECT_GE(FencesAsked(), 1u);
  for (GuardedBuffer* target : targets) EXPECT_TRUE(target->Untouched());
}

// The peer answers nothing on a path it cannot fence: a copy might still land, so the connection ends, as it must, also
// while it has other things to do.
TEST_F(FenceTest, AFenceThatIsNeverPromisedEndsTheConnection) {
  world().hca(1, 0).set_fences(FakeHcaLane::Fences::kNever);
  Rounds(1, [] {});
  const uint64_t receive = Receive(1, *in_, 1, 0, nullptr, region_);
  const uint64_t send = Send(0, NewFilled(kBytes, 1), 1);
  AwaitWrites();
  const Time start = now();
  CutOwnPort();
  GuardedBuffer& small = NewFilled(100, 1);
  const RemoteMemory remote = Export(1, NewBuffer(100), kRemoteWrite);
  while (Done(0, send) == nullptr && now() - start < Duration::Seconds(30)) {
    PostResult result;
    Write(0, small, remote, 0, &result);
    world().RunFor(Duration::Millis(50));
  }
  EXPECT_EQ(Await(0, send).status, OperationStatus::kPeerLost);
  EXPECT_GE(now() - start, Duration::Seconds(10));
  EXPECT_LT(now() - start, Duration::Seconds(12));
  EXPECT_EQ(Await(1, receive).status, OperationStatus::kConnectionClosed);
}

TEST_F(FenceTest, OneBlackPathOfTheOnlyPortIsFencedToo) {
  TearDown();
  StartWorld(1);
  Rounds(
      4,
      [&] {
        network().SetHook([](NetworkPacket& packet, Fate& fate) {
          fate.drop = packet.kind == SegmentKind::kWrite && packet.entropy == 3;
        });
      },
      Duration::Seconds(10));
  EXPECT_GE(FencesAsked(), 1u);
  ExpectNothingLate();
}

// A peer of a version that knows no fences would drop the question as malformed: it gets none.
TEST_F(FenceTest, APeerThatKnowsNoFencesIsAskedForNone) {
  const auto addresses = [this](uint32_t at) {
    return std::vector<LaneAddress>{world().lane(at, 0).address(), world().lane(at, 1).address()};
  };
  a_ = endpoint(0).ReserveConnection();
  b_ = endpoint(1).ReserveConnection();
  endpoint(0).Establish(a_, {.peer_connection = b_, .addresses = addresses(1), .fences = false}, now());
  endpoint(1).Establish(b_, {.peer_connection = a_, .addresses = addresses(0)}, now());
  Receive(1, *in_, 1, 0, nullptr, region_);
  const uint64_t send = Send(0, NewFilled(kBytes, 1), 1);
  AwaitWrites();
  CutOwnPort();
  EXPECT_EQ(Await(0, send, Duration::Seconds(30)).status, OperationStatus::kPeerLost);
  EXPECT_EQ(FencesAsked(), 0u);
  EXPECT_EQ(endpoint(1).counters().rx_malformed, 0u);
}

// The answer to an earlier question comes once more, while another one waits for its own.
TEST_F(FenceTest, AnOldAnswerSaysNothingOfWhatWasSentBehindIt) {
  Rounds(2, [&] { CutOwnPort(); });
  const auto old_end = static_cast<uint32_t>(kBytes / 4096);  // of the first round, at most
  world().hca(1, 1).set_fences(FakeHcaLane::Fences::kNever);
  Receive(1, *in_, 1, 0, nullptr, region_);
  Send(0, NewFilled(kBytes, 1), 1);
  AwaitWrites();
  network().SetHook([&](NetworkPacket& packet, Fate& fate) { fate.drop = packet.kind == SegmentKind::kWrite; });
  world().RunFor(Duration::Micros(15));
  const uint64_t asked = FencesAsked(), lost = endpoint(0).counters().lost_fenced;
  ASSERT_TRUE(world().RunUntil([&] { return FencesAsked() > asked; }, Duration::Seconds(2)));
  const wire::FencedFrame frame{.port = 1, .words = limits::kFencedWords, .end = old_end, .from = 0};
  InjectFrames(0, [&](wire::Writer& writer) { wire::WriteFenced(writer, frame); });
  EXPECT_EQ(endpoint(0).counters().lost_fenced, lost);
}

// ---- peers that mean no good

TEST_F(FenceTest, QuestionsThatCannotBeAreCounted) {
  Rounds(1, [] {});
  InjectFrames(1, [](wire::Writer& writer) { wire::WriteFence(writer, {.port = 7, .end = 2, .from = 0}); });
  InjectFrames(1, [](wire::Writer& writer) { wire::WriteFence(writer, {.port = 0, .end = 100'000, .from = 0}); });
  EXPECT_EQ(endpoint(1).counters().fences_refused, 2u);
  EXPECT_EQ(world().hca(1, 0).writes_fenced(), 0u);
}

TEST_F(FenceTest, QuestionsWithoutEndCostTheLaneLittle) {
  Rounds(1, [] {});
  const size_t memory = endpoint(1).MemoryOf(connection(1));
  world().hca(1, 0).set_fences(FakeHcaLane::Fences::kNever);
  for (uint32_t end = 1; end <= 5'000; ++end) {
    InjectFrames(1, [end](wire::Writer& writer) { wire::WriteFence(writer, {.port = 0, .end = end, .from = 0}); });
  }
  EXPECT_EQ(world().hca(1, 0).writes_fenced(), 1u) << "the lane has not answered the first";
  EXPECT_LE(endpoint(1).MemoryOf(connection(1)), memory + 1024);
  world().hca(1, 1).set_fences(FakeHcaLane::Fences::kHold);
  for (int again = 0; again < 1'000; ++again) {
    InjectFrames(1, [](wire::Writer& writer) { wire::WriteFence(writer, {.port = 1, .end = 5, .from = 0}); });
  }
  EXPECT_EQ(world().hca(1, 1).writes_fenced(), 1u) << "what holds is answered without the lane";
}

// An answer that nobody asked for might make us send again what our card still reads.
TEST_F(FenceTest, AnAnswerThatNobodyAskedForSaysNothing) {
  Rounds(2, [&] { CutOwnPort(); });
  const EndpointCounters before = endpoint(0).counters();
  network().SetHook([&](NetworkPacket&, Fate& fate) { fate.extra_delay = Duration::Millis(1); });
  const uint64_t receive = Receive(1, *in_, 1, 0, nullptr, region_);
  Send(0, NewFilled(kBytes, 1), 1);
  AwaitWrites();
  for (uint8_t port = 0; port < 2; ++port) {
    const wire::FencedFrame frame{.port = port, .words = limits::kFencedWords, .end = 16'000, .from = 0};
    InjectFrames(0, [&](wire::Writer& writer) { wire::WriteFenced(writer, frame); });
  }
  EXPECT_EQ(endpoint(0).counters().lost_fenced, before.lost_fenced);
  EXPECT_EQ(endpoint(0).counters().retransmits, before.retransmits);
  EXPECT_EQ(Await(1, receive).status, OperationStatus::kOk);
}

}  // namespace
}  // namespace paceline::support
