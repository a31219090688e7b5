#include "transport/wire/frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "transport/base/random.h"

namespace paceline::wire {
namespace {

// Keeps what it was given.
class Recorder final : public FrameHandler {
 public:
  void OnAck(const AckFrame& frame) override { acks.push_back(frame), order += 'a'; }
  void OnGrant(const GrantFrame& frame) override { grants.push_back(frame), order += 'g'; }
  void OnDemand(const DemandFrame& frame) override { demands.push_back(frame), order += 'd'; }
  void OnTrimmed(const TrimmedFrame& frame) override { trimmed.push_back(frame), order += 't'; }
  void OnTelemetry(const TelemetryFrame& frame) override { telemetry.push_back(frame), order += 'm'; }
  void OnFence(const FenceFrame& frame) override { fences.push_back(frame), order += 'f'; }
  void OnFenced(const FencedFrame& frame) override { fenced.push_back(frame), order += 'F'; }
  void OnNotReady(uint32_t message) override { values.push_back(message), order += 'n'; }
  void OnPing(uint32_t value) override { values.push_back(value), order += 'p'; }
  void OnPong(uint32_t value) override { values.push_back(value), order += 'q'; }
  void OnClose(uint16_t reason) override { values.push_back(reason), order += 'c'; }
  void OnCloseAck(uint16_t reason) override { values.push_back(reason), order += 'k'; }
  void OnAbort(uint16_t reason) override { values.push_back(reason), order += 'x'; }

  std::vector<AckFrame> acks;
  std::vector<GrantFrame> grants;
  std::vector<DemandFrame> demands;
  std::vector<TrimmedFrame> trimmed;
  std::vector<TelemetryFrame> telemetry;
  std::vector<FenceFrame> fences;
  std::vector<FencedFrame> fenced;
  std::vector<uint32_t> values;
  std::string order;
};

AckFrame SomeAck(bool marks) {
  AckFrame ack;
  ack.last_psn = 0xfffffff0;
  ack.timestamp = 123;
  ack.delay_nanos = 456;
  ack.cumulative = 700;
  ack.base = 640;
  ack.words = limits::kSackWords;
  ack.has_marks = marks;
  for (uint8_t i = 0; i < ack.words; ++i) {
    ack.received[i] = 0x0123456789abcdef + i;
    if (marks) ack.marked[i] = 0xf00 + i;
  }
  return ack;
}

GrantFrame SomeGrant() {
  GrantFrame grant;
  grant.port = 3;
  grant.rate = 0x8123;
  grant.clear_limit = 17;
  grant.credit_end = 0x123456789abc;
  grant.clears = GrantFrame::kMaxClears;
  for (uint8_t i = 0; i < grant.clears; ++i) grant.clear[i] = {i + 1u, 0x1000u + i, 0x2000u + i};
  return grant;
}

TelemetryFrame SomeTelemetry() {
  TelemetryFrame telemetry;
  telemetry.port = 5;
  telemetry.hops = limits::kMaxTelemetryHops;
  for (uint8_t i = 0; i < telemetry.hops; ++i) {
    telemetry.hop[i] = {i + 10u, 0x10000u + i, 0xfffffff0u + i, 0x80000000u + i, Rate::Gbps(100)};
  }
  return telemetry;
}

FencedFrame SomeFenced(uint8_t words) {
  FencedFrame fenced{.port = 6, .words = words, .end = 0xfffffff1, .from = 0xffffff00};
  for (uint8_t i = 0; i < words; ++i) fenced.arrived[i] = 0xfedcba9876543210 + i;
  return fenced;
}

// One of each kind, in the order of the letters above.
std::vector<uint8_t> OneOfEach() {
  std::vector<uint8_t> buffer(limits::kMaxControlBytes);
  Writer writer(buffer);
  WriteAck(writer, SomeAck(true));
  WriteGrant(writer, SomeGrant());
  WriteDemand(writer, {.port = 2, .cap = 9, .tx_total = 10, .lost_total = 11, .backlog = 12});
  WriteTrimmed(writer, {.count = 2, .psns = {5, 6}});
  WriteTelemetry(writer, SomeTelemetry());
  WriteFence(writer, {.port = 7, .end = 0xfffffff0, .from = 640});
  WriteFenced(writer, SomeFenced(2));
  WriteValue(writer, FrameType::kNotReady, 1);
  WriteValue(writer, FrameType::kPing, 2);
  WriteValue(writer, FrameType::kPong, 3);
  WriteReason(writer, FrameType::kClose, 4);
  WriteReason(writer, FrameType::kCloseAck, 5);
  WriteReason(writer, FrameType::kAbort, 6);
  EXPECT_FALSE(writer.failed());
  buffer.resize(writer.size());
  return buffer;
}

TEST(FramesTest, EveryKindComesBackAsItWasWritten) {
  Recorder recorder;
  ASSERT_TRUE(ParseFrames(OneOfEach(), recorder));
  EXPECT_EQ(recorder.order, "agdtmfFnpqckx");
  const AckFrame ack = SomeAck(true);
  EXPECT_EQ(recorder.acks[0].last_psn, ack.last_psn);
  EXPECT_EQ(recorder.acks[0].timestamp, ack.timestamp);
  EXPECT_EQ(recorder.acks[0].delay_nanos, ack.delay_nanos);
  EXPECT_EQ(recorder.acks[0].cumulative, ack.cumulative);
  EXPECT_EQ(recorder.acks[0].base, ack.base);
  EXPECT_EQ(recorder.acks[0].words, ack.words);
  EXPECT_EQ(recorder.acks[0].received, ack.received);
  EXPECT_EQ(recorder.acks[0].marked, ack.marked);
  const GrantFrame grant = SomeGrant();
  EXPECT_EQ(recorder.grants[0].port, grant.port);
  EXPECT_EQ(recorder.grants[0].rate, grant.rate);
  EXPECT_EQ(recorder.grants[0].clear_limit, grant.clear_limit);
  EXPECT_EQ(recorder.grants[0].credit_end, grant.credit_end);
  ASSERT_EQ(recorder.grants[0].clears, grant.clears);
  EXPECT_EQ(recorder.grants[0].clear[15].message, 16u);
  EXPECT_EQ(recorder.grants[0].clear[15].address, 0x100fu);
  EXPECT_EQ(recorder.grants[0].clear[15].key, 0x200fu);
  EXPECT_EQ(recorder.demands[0].port, 2u);
  EXPECT_EQ(recorder.demands[0].cap, 9u);
  EXPECT_EQ(recorder.demands[0].tx_total, 10u);
  EXPECT_EQ(recorder.demands[0].lost_total, 11u);
  EXPECT_EQ(recorder.demands[0].backlog, 12u);
  EXPECT_EQ(recorder.trimmed[0].count, 2u);
  EXPECT_EQ(recorder.trimmed[0].psns[1], 6u);
  EXPECT_EQ(recorder.telemetry[0].port, 5u);
  ASSERT_EQ(recorder.telemetry[0].hops, limits::kMaxTelemetryHops);
  EXPECT_EQ(recorder.telemetry[0].hop[7].link, 17u);
  EXPECT_EQ(recorder.telemetry[0].hop[7].queue_bytes, 0x10007u);
  EXPECT_EQ(recorder.telemetry[0].hop[7].sent_bytes, 0xfffffff7u);
  EXPECT_EQ(recorder.telemetry[0].hop[7].time_nanos, 0x80000007u);
  EXPECT_NEAR(recorder.telemetry[0].hop[7].rate.gbps(), 100, 0.1);
  EXPECT_EQ(recorder.fences[0].port, 7u);
  EXPECT_EQ(recorder.fences[0].end, 0xfffffff0u);
  EXPECT_EQ(recorder.fences[0].from, 640u);
  EXPECT_EQ(recorder.fenced[0].port, 6u);
  EXPECT_EQ(recorder.fenced[0].end, 0xfffffff1u);
  EXPECT_EQ(recorder.fenced[0].from, 0xffffff00u);
  ASSERT_EQ(recorder.fenced[0].words, 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(recorder.fenced[0].arrived[i], SomeFenced(2).arrived[i]);
  EXPECT_EQ(recorder.values, (std::vector<uint32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(FramesTest, SizesAreAsStated) {
  std::vector<uint8_t> buffer(limits::kMaxControlBytes);
  for (const bool marks : {false, true}) {
    Writer writer(buffer);
    WriteAck(writer, SomeAck(marks));
    EXPECT_EQ(writer.size(), AckBytes(SomeAck(marks)));
  }
  Writer grants(buffer);
  WriteGrant(grants, SomeGrant());
  EXPECT_EQ(grants.size(), GrantBytes(SomeGrant()));
  Writer demands(buffer);
  WriteDemand(demands, {});
  EXPECT_EQ(demands.size(), kDemandBytes);
  Writer telemetry(buffer);
  WriteTelemetry(telemetry, SomeTelemetry());
  EXPECT_EQ(telemetry.size(), TelemetryBytes(SomeTelemetry()));
  Writer fence(buffer);
  WriteFence(fence, {});
  EXPECT_EQ(fence.size(), kFenceBytes);
  Writer fenced(buffer);
  WriteFenced(fenced, SomeFenced(limits::kFencedWords));
  EXPECT_EQ(fenced.size(), FencedBytes(SomeFenced(limits::kFencedWords)));
  EXPECT_EQ(fenced.size(), kMostFencedBytes);
}

TEST(FramesTest, TheLargestOfEachFitIntoOneControlPacket) {
  EXPECT_LE(AckBytes(SomeAck(true)) + TelemetryBytes(SomeTelemetry()) + GrantBytes(SomeGrant()) + 4 +
                4 * TrimmedFrame::kMaxPsns + kDemandBytes + 12 + 24,
            limits::kMaxControlBytes);
}

TEST(FramesTest, NothingIsHandedOverOfABodyThatIsCut) {
  const std::vector<uint8_t> whole = OneOfEach();
  size_t good = 0;
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    Recorder recorder;
    if (ParseFrames(cut, recorder)) {
      ++good;  // the cut fell between two frames
    } else {
      EXPECT_TRUE(recorder.order.empty());
    }
  }
  EXPECT_EQ(good, 13u);
}

TEST(FramesTest, RefusesWhatBreaksABound) {
  Recorder recorder;
  std::vector<uint8_t> buffer(limits::kMaxControlBytes);
  auto refused = [&](auto write) {
    Writer writer(buffer);
    write(writer);
    return !ParseFrames(std::span(buffer).first(writer.size()), recorder);
  };
  AckFrame unaligned = SomeAck(false);
  unaligned.base = 65;
  EXPECT_TRUE(refused([&](Writer& w) { WriteAck(w, unaligned); }));
  EXPECT_TRUE(refused([&](Writer& w) {
    w.U8(1), w.U8(limits::kSackWords + 1), w.U16(0);
    for (int i = 0; i < 100; ++i) w.U64(0);
  }));
  GrantFrame port = SomeGrant();
  port.port = limits::kMaxPorts;
  EXPECT_TRUE(refused([&](Writer& w) { WriteGrant(w, port); }));
  EXPECT_TRUE(refused([&](Writer& w) {
    w.U8(2), w.U8(0), w.U8(GrantFrame::kMaxClears + 1), w.U8(0);
    for (int i = 0; i < 100; ++i) w.U64(0);
  }));
  EXPECT_TRUE(refused([&](Writer& w) { WriteDemand(w, {.port = limits::kMaxPorts}); }));
  EXPECT_TRUE(refused([&](Writer& w) {
    w.U8(4), w.U8(TrimmedFrame::kMaxPsns + 1), w.U16(0);
    for (int i = 0; i < 100; ++i) w.U32(0);
  }));
  EXPECT_TRUE(refused([&](Writer& w) { w.U64(0); }));
  TelemetryFrame telemetry = SomeTelemetry();
  telemetry.port = limits::kMaxPorts;
  EXPECT_TRUE(refused([&](Writer& w) { WriteTelemetry(w, telemetry); }));
  EXPECT_TRUE(refused([&](Writer& w) {
    w.U8(11), w.U8(0), w.U8(limits::kMaxTelemetryHops + 1), w.U8(0);
    for (int i = 0; i < 100; ++i) w.U32(0);
  }));
  EXPECT_TRUE(refused([&](Writer& w) { WriteFence(w, {.port = limits::kMaxPorts}); }));
  EXPECT_TRUE(refused([&](Writer& w) { WriteFence(w, {.from = 65}); }));
  FencedFrame fenced = SomeFenced(1);
  fenced.port = limits::kMaxPorts;
  EXPECT_TRUE(refused([&](Writer& w) { WriteFenced(w, fenced); }));
  fenced = SomeFenced(1);
  fenced.from = 63;
  EXPECT_TRUE(refused([&](Writer& w) { WriteFenced(w, fenced); }));
  EXPECT_TRUE(refused([&](Writer& w) {
    w.U8(13), w.U8(0), w.U8(limits::kFencedWords + 1), w.U8(0);
    for (int i = 0; i < 50; ++i) w.U64(0);
  }));
  EXPECT_TRUE(refused([&](Writer& w) { w.U64(14); }));
  EXPECT_TRUE(recorder.order.empty());
}

TEST(FramesTest, SurvivesRandomBytes) {
  Random random(1);
  const std::vector<uint8_t> whole = OneOfEach();
  for (int i = 0; i < 50'000; ++i) {
    std::vector<uint8_t> bytes = whole;
    bytes.resize(random.Below(whole.size()) + 1);
    for (uint64_t flips = random.Below(6); flips > 0; --flips) {
      bytes[random.Below(bytes.size())] = static_cast<uint8_t>(random.Next());
    }
    bytes.shrink_to_fit();
    Recorder recorder;
    const bool parsed = ParseFrames(bytes, recorder);
    ASSERT_TRUE(parsed || recorder.order.empty());
    for (const AckFrame& ack : recorder.acks) ASSERT_LE(ack.words, limits::kSackWords);
    for (const FencedFrame& frame : recorder.fenced) ASSERT_LE(frame.words, limits::kFencedWords);
    for (const TelemetryFrame& frame : recorder.telemetry) ASSERT_LE(frame.hops, limits::kMaxTelemetryHops);
  }
}

}  // namespace
}  // namespace paceline::wire
