// A peer that belongs here and lies: about what it wants to send, what it grants, what has arrived, where bytes belong.
// It may spoil what it does itself. What others do ends well, and takes no more than if it sent or got as much as they.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "cc/registry.h"
#include "tests/support/core_fixture.h"
#include "tests/support/endpoint_pair.h"
#include "transport/wire/frames.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr uint32_t kLiar = 2;  // hosts 0 and 1 are honest, the connection of the fixture is theirs

// What becomes of each frame and each data header of the liar. What is not set stays as it was.
struct Lies {
  std::function<void(wire::DataHeader&)> data;
  std::function<void(wire::AckFrame&)> ack;
  std::function<void(wire::GrantFrame&)> grant;
  std::function<void(wire::DemandFrame&)> demand;
};

// Writes frames anew, with lies.
class FrameLiar final : public wire::FrameHandler {
 public:
  FrameLiar(const Lies& lies, wire::Writer& writer) : lies_(lies), writer_(writer) {}

  void OnAck(const wire::AckFrame& frame) override { wire::WriteAck(writer_, Lied(frame, lies_.ack)); }
  void OnGrant(const wire::GrantFrame& frame) override { wire::WriteGrant(writer_, Lied(frame, lies_.grant)); }
  void OnDemand(const wire::DemandFrame& frame) override { wire::WriteDemand(writer_, Lied(frame, lies_.demand)); }
  void OnTrimmed(const wire::TrimmedFrame& frame) override { wire::WriteTrimmed(writer_, frame); }
  void OnTelemetry(const wire::TelemetryFrame& frame) override { wire::WriteTelemetry(writer_, frame); }
  void OnFence(const wire::FenceFrame& frame) override { wire::WriteFence(writer_, frame); }
  void OnFenced(const wire::FencedFrame& frame) override { wire::WriteFenced(writer_, frame); }
  void OnNotReady(uint32_t message) override { wire::WriteValue(writer_, wire::FrameType::kNotReady, message); }
  void OnPing(uint32_t value) override { wire::WriteValue(writer_, wire::FrameType::kPing, value); }
  void OnPong(uint32_t value) override { wire::WriteValue(writer_, wire::FrameType::kPong, value); }
  void OnClose(uint16_t reason) override { wire::WriteReason(writer_, wire::FrameType::kClose, reason); }
  void OnCloseAck(uint16_t reason) override { wire::WriteReason(writer_, wire::FrameType::kCloseAck, reason); }
  void OnAbort(uint16_t reason) override { wire::WriteReason(writer_, wire::FrameType::kAbort, reason); }

 private:
  template <typename Frame>
  static Frame Lied(Frame frame, const std::function<void(Frame&)>& lie) {
    if (lie) lie(frame);
    return frame;
  }

  const Lies& lies_;
  wire::Writer& writer_;
};

struct Case {
  const char* name;
  bool sends;                                     // the liar, and host 0 receives; or the other way round
  Lies lies;                                      // while it does
  uint64_t EndpointCounters::*counted = nullptr;  // where host 0 counts it
};

void PrintTo(const Case& lie, std::ostream* out) { *out << lie.name; }

std::vector<Case> Cases() {
  using Data = wire::DataHeader;
  constexpr auto kMalformed = &EndpointCounters::rx_malformed;
  constexpr auto kOutOfWindow = &EndpointCounters::rx_out_of_window;
  return {
      {"DemandThatDoesNotExist",
       true,
       {.data = [](Data& header) { header.backlog = ~0u; },
        .demand = [](wire::DemandFrame& frame) { frame.backlog = ~0u; }}},
      {"NothingWasSent", true, {.data = [](Data& header) { header.tx_total = 0; }}},
      {"EverythingWasLost", true, {.data = [](Data& header) { header.lost_total = header.tx_total; }}},
      {"CreditWithoutEnd", false, {.grant = [](wire::GrantFrame& frame) { frame.credit_end = ~0ull - 1; }}},
      {"EverythingMayCome", false, {.grant = [](wire::GrantFrame& frame) { frame.clear_limit = 0x7fffffff; }}},
      {"MoreHasArrivedThanWasSent", false, {.ack = [](wire::AckFrame& frame) { frame.cumulative += 1u << 20; }}},
      {"EverythingHasArrived", false, {.ack = [](wire::AckFrame& frame) { frame.received.fill(~0ull); }}},
      {"AcknowledgementsFromLongAgo",
       false,
       {.ack =
            [](wire::AckFrame& frame) {
              frame.delay_nanos = ~0u;
              frame.timestamp = 0;
            }}},
      {"OffsetBehindTheEnd", true, {.data = [](Data& header) { header.offset += uint64_t{1} << 40; }}, kMalformed},
      {"OffsetWithinASegment", true, {.data = [](Data& header) { header.offset += 64; }}, kMalformed},
      {"LengthBeyondAllBounds", true, {.data = [](Data& header) { header.length = uint64_t{1} << 46; }}, kMalformed},
      {"LongerThanTheReceive", true, {.data = [](Data& header) { header.length += 1'000'000; }}},
      {"MessageFarAhead", true, {.data = [](Data& header) { header.message += 1u << 30; }}, kOutOfWindow},
      {"MatchFarAhead", true, {.data = [](Data& header) { header.match_sequence += 1u << 30; }}, kMalformed},
      {"PacketFarAhead", true, {.data = [](Data& header) { header.psn += 1u << 30; }}},
      {"FloorFarBelow", true, {.data = [](Data& header) { header.floor_distance = 0xffff; }}},
      {"WriteWithAGuessedKey",
       true,
       {.data =
            [](Data& header) {
              header.kind = wire::MessageKind::kWrite;
              header.remote_key = 0x1234;
            }},
       &EndpointCounters::rx_refused},
      {"AnswerToNoQuestion",
       true,
       {.data =
            [](Data& header) {
              header.kind = wire::MessageKind::kReadResponse;
              header.request = 7;
            }}},
  };
}

class LyingPeerTest : public CoreFixture, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    WorldOptions options;
    options.hosts = 3;
    options.endpoint.congestion_control = "tita";
    options.new_congestion_control = [](uint32_t) { return *CreateCongestionControl("tita", {}, 1); };
    Start(options);
    std::tie(to_liar_, liars_) = world().Connect(0, kLiar);
    ASSERT_NE(to_liar_, kNoConnection);
  }

  // How long 20 MB of the honest hosts take to or from host 0; each message is checked byte by byte.
  Duration TimeOfTheHonest(bool to_host_0) {
    const uint32_t from = to_host_0 ? 1 : 0;
    std::vector<GuardedBuffer*> in;
    const Time begin = now();
    for (uint64_t i = 0; i < 20; ++i) {
      in.push_back(&NewBuffer(kBytes));
      Receive(1 - from, *in.back(), 5);
      Send(from, NewFilled(kBytes, i), 5);
    }
    AwaitAll();
    for (uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(in[i]->Holds(i));
    return now() - begin;
  }

  void LetTheLiar(bool send) {
    network().SetHook([this](NetworkPacket& packet, Fate&) {
      if (packet.from == kLiar && packet.kind == SegmentKind::kPacket) Falsify(packet);
    });
    const uint32_t from = send ? kLiar : 0, to = send ? 0 : kLiar;
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(endpoint(to).PostReceive(send ? to_liar_ : liars_, {.buffer = NewBuffer(kBytes).local()}, now()),
                PostResult::kOk);
      ASSERT_EQ(endpoint(from).PostSend(send ? liars_ : to_liar_, {.buffer = NewFilled(kBytes, 9).local()}, now()),
                PostResult::kOk);
    }
    host(0).Touch();
    host(kLiar).Touch();
  }

  ConnectionId to_liar_ = kNoConnection;

 private:
  static constexpr size_t kBytes = 1'000'000;

  void Falsify(NetworkPacket& packet) {
    const Lies& lies = GetParam().lies;
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    ASSERT_TRUE(common.has_value());
    std::array<uint8_t, 4096> bytes;
    size_t size = 0;
    if (common->type == wire::PacketType::kData) {
      wire::DataHeader header = wire::ParseData(*common, packet.bytes).value();
      std::array<uint8_t, 2048> frames;
      wire::Writer writer(frames);
      FrameLiar liar(lies, writer);
      if (!header.frames.empty()) wire::ParseFrames(header.frames, liar);
      header.frames = std::span(frames).first(writer.size());
      if (lies.data) lies.data(header);
      size = wire::EncodeData(header, bytes);
    } else if (common->type == wire::PacketType::kControl) {
      wire::Writer writer(bytes);
      wire::BeginPacket(writer);
      FrameLiar liar(lies, writer);
      wire::ParseFrames(std::span(packet.bytes).first(common->header_bytes).subspan(wire::kCommonBytes), liar);
      size = writer.size();
      wire::FinishPacket(std::span(bytes).first(size), common->type, 0, common->connection);
    } else {
      return;
    }
    packet.bytes.erase(packet.bytes.begin(), packet.bytes.begin() + static_cast<std::ptrdiff_t>(packet.header_bytes));
    packet.bytes.insert(packet.bytes.begin(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    packet.header_bytes = static_cast<uint32_t>(size);
  }

  ConnectionId liars_ = kNoConnection;
};
INSTANTIATE_TEST_SUITE_P(Lies, LyingPeerTest, testing::ValuesIn(Cases()),
                         [](const auto& lie) { return std::string(lie.param.name); });

TEST_P(LyingPeerTest, HarmsNobodyElse) {
  const Duration alone = TimeOfTheHonest(GetParam().sends);
  LetTheLiar(GetParam().sends);
  const Duration beside = TimeOfTheHonest(GetParam().sends);
  EXPECT_LE(beside.nanos(), alone.nanos() * 22 / 10);
  if (GetParam().counted != nullptr) {
    EXPECT_GT(endpoint(0).counters().*GetParam().counted, 0u);
  }
  // Nor later, whatever became of its connection.
  endpoint(0).Abort(to_liar_, now());
  host(0).Touch();
  EXPECT_LE(TimeOfTheHonest(GetParam().sends).nanos(), alone.nanos() * 12 / 10);
}

// Packets of a run are noted together. The floor may rise past those that are not noted yet, without a packet that is
// taken: neither crashes that, nor does it count a packet that has not come.
TEST(LyingRunTest, AFloorThatRisesWithinARunTakesNothingAlong) {
  NoLanes lanes;
  const PortDescription port = {PairCapabilities(4096 + 96, 16), LaneAddress()};
  for (const uint32_t first : {63u, 100u, 127u, 191u}) {
    Endpoint endpoint({.seed = 1}, NewTestCongestionControl(TestControl::kWindow, 1 << 20), &lanes,
                      std::span(&port, 1));
    const Time now = Time::FromNanos(1'000'000);
    LaneAddress address{.size = 1};
    const ConnectionId id = endpoint.ReserveConnection();
    endpoint.Establish(id, {.peer_connection = 77, .addresses = {address}}, now);
    const auto handle = [&](const std::vector<wire::DataHeader>& headers) {
      std::vector<std::vector<uint8_t>> packets;
      std::vector<RxSegment> segments;
      for (const wire::DataHeader& header : headers) {
        std::vector<uint8_t>& packet = packets.emplace_back(4096 + 512);
        packet.resize(wire::EncodeData(header, packet) + 4096);
        segments.push_back({.data_bytes = static_cast<uint32_t>(packet.size()),
                            .data = packet.data(),
                            .source = &address,
                            .received_at = now});
      }
      endpoint.HandleSegments(0, segments, now);
    };
    wire::DataHeader header;
    header.flags = wire::kNoPayloadCrc;
    header.connection = id;
    header.kind = wire::MessageKind::kSend;
    header.length = 4096 * 300;
    const auto packet = [&](uint32_t psn, uint32_t floor, uint64_t offset) {
      header.psn = psn;
      header.floor_distance = static_cast<uint16_t>(psn - floor);
      header.offset = offset;
      return header;
    };
    handle({packet(first, 1, 0), packet(first + 1, first + 1, 1)});  // the second one makes no sense
    EXPECT_EQ(endpoint.counters().rx_malformed, 1u) << first;
    for (uint32_t i = 1; i < 200; ++i) handle({packet(first + i, first + 1, uint64_t{i} * 4096)});
    EXPECT_EQ(endpoint.counters().rx_duplicates, 0u) << first;
  }
}

}  // namespace
}  // namespace paceline::support
