// Feeds bytes to every parser of the wire format: none may read past its input, and what parses must be within its
// bounds and encode to the same bytes again where the encoding is unique. The first byte of the input says how the rest
// is used: bit 0: make the header checksum right first, so that the parsers behind it are reached.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "transport/base/limits.h"
#include "transport/wire/bundle.h"
#include "transport/wire/frames.h"
#include "transport/wire/handshake.h"
#include "transport/wire/packet.h"
#include "transport/wire/presence.h"

namespace {

using namespace paceline;  // NOLINT: one small program

void Require(bool holds) {
  if (!holds) std::abort();
}

class Checker final : public wire::FrameHandler {
 public:
  void OnAck(const wire::AckFrame& frame) override {
    Require(frame.words <= limits::kSackWords && frame.base % 64 == 0);
  }
  void OnGrant(const wire::GrantFrame& frame) override {
    Require(frame.clears <= wire::GrantFrame::kMaxClears && frame.port < limits::kMaxPorts);
  }
  void OnDemand(const wire::DemandFrame& frame) override { Require(frame.port < limits::kMaxPorts); }
  void OnTrimmed(const wire::TrimmedFrame& frame) override { Require(frame.count <= wire::TrimmedFrame::kMaxPsns); }
  void OnTelemetry(const wire::TelemetryFrame& frame) override {
    Require(frame.hops <= limits::kMaxTelemetryHops && frame.port < limits::kMaxPorts);
    for (uint8_t i = 0; i < frame.hops; ++i) Require(frame.hop[i].rate.bytes_per_second() >= 0);
  }
  void OnFence(const wire::FenceFrame& frame) override {
    Require(frame.port < limits::kMaxPorts && frame.from % 64 == 0);
  }
  void OnFenced(const wire::FencedFrame& frame) override {
    Require(frame.words <= limits::kFencedWords && frame.port < limits::kMaxPorts && frame.from % 64 == 0);
  }
  void OnNotReady(uint32_t) override {}
  void OnPing(uint32_t) override {}
  void OnPong(uint32_t) override {}
  void OnClose(uint16_t) override {}
  void OnCloseAck(uint16_t) override {}
  void OnAbort(uint16_t) override {}
};

void CheckHello(const wire::Hello& hello) {
  Require(hello.ports >= 1 && hello.ports <= limits::kMaxPorts && hello.algorithm.size() <= 32);
  for (uint8_t i = 0; i < hello.ports; ++i) Require(hello.addresses[i].size <= LaneAddress::kMaxBytes);
}

void CheckPresence(const wire::PresencePacket& packet) {
  std::vector<uint8_t> buffer(limits::kMaxControlBytes);
  buffer.resize(wire::EncodePresence(wire::PacketType::kGone, packet, 1, buffer));
  const auto again = wire::ParsePresence(wire::BodyOf(buffer));
  Require(again.has_value() && again->connection == packet.connection && again->token == packet.token &&
          again->tagged == packet.tagged && again->tag == packet.tag);
}

// Its sends are parts of it, in their order, and write it again, but for what is reserved.
void CheckBundle(std::span<const uint8_t> bundle) {
  std::vector<uint8_t> again(bundle.size());
  uint8_t* to = again.data();
  std::span<const uint8_t> rest = bundle;
  for (wire::BundledSend send; wire::ReadBundled(rest, &send);) {
    Require(!send.data.empty() && send.data.data() + send.data.size() == rest.data());
    Require(to + wire::BundledBytes(send.data.size(), send.has_immediate) <= again.data() + again.size());
    to = wire::WriteBundled(send, to);
  }
  Require(wire::IsBundle(bundle) == (rest.empty() && !bundle.empty()));
  Require(to - again.data() == rest.data() - bundle.data());
}

void ParseBody(std::span<const uint8_t> body) {
  CheckBundle(body);
  if (const auto init = wire::ParseInit(body)) CheckHello(init->hello);
  if (const auto accept = wire::ParseAccept(body)) CheckHello(accept->hello);
  wire::ParseCookie(body);
  wire::ParseRefuse(body);
  if (const auto presence = wire::ParsePresence(body)) CheckPresence(*presence);
  Checker checker;
  wire::ParseFrames(body, checker);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<uint8_t> packet(data + 1, data + size);
  if ((data[0] & 1) != 0 && packet.size() >= wire::kCommonBytes && packet.size() <= 1024) {
    const auto type = static_cast<wire::PacketType>(packet[0] & 0x0f);
    wire::FinishPacket(packet, type, packet[1], static_cast<uint32_t>(packet[4]));
  }
  bool bad_checksum = false;
  if (const auto common = wire::ParseCommon(packet, &bad_checksum)) {
    Require(common->header_bytes >= wire::kCommonBytes && common->header_bytes <= packet.size());
    if (const auto header = wire::ParseData(*common, packet)) {
      // A packet is of the run that it begins.
      wire::DataStamp stamp;
      const bool follows = wire::ReadStamp(std::span(packet).first(common->header_bytes), packet, &stamp);
      Require(follows == (common->header_bytes % 8 == 0));
      Require(!follows || (stamp.psn == header->psn && stamp.offset == header->offset && stamp.flags == header->flags &&
                           stamp.tx_total == header->tx_total && stamp.backlog == header->backlog));
      std::vector<uint8_t> again(1024);
      const size_t bytes = wire::EncodeData(*header, again);
      Require(bytes == common->header_bytes);
      again.resize(bytes);
      const auto common_again = wire::ParseCommon(again, &bad_checksum);
      Require(common_again.has_value() && wire::ParseData(*common_again, again).has_value());
    }
    ParseBody(std::span<const uint8_t>(packet).subspan(wire::kCommonBytes, common->header_bytes - wire::kCommonBytes));
  }
  ParseBody(packet);
  return 0;
}
