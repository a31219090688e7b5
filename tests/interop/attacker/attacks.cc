#include "tests/interop/attacker/attacks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "transport/base/limits.h"
#include "transport/wire/frames.h"
#include "transport/wire/handshake.h"
#include "transport/wire/packet.h"
#include "transport/wire/presence.h"

namespace paceline::interop {
namespace {

constexpr size_t kKept = 4096;  // packets that passed

// The header's checksum, where the packet still has as much of a header as it says.
void MakeRight(std::vector<uint8_t>& bytes) {
  if (bytes.size() < wire::kCommonBytes) return;
  const size_t header = bytes[2] | static_cast<size_t>(bytes[3]) << 8;
  if (header < wire::kCommonBytes || header > bytes.size()) return;
  wire::RefreshChecksum(std::span(bytes).first(header));
}

uint32_t ConnectionOf(const std::vector<uint8_t>& bytes) {
  bool bad_checksum = false;
  const auto common = wire::ParseCommon(bytes, &bad_checksum);
  return common.has_value() ? common->connection : 1;
}

template <typename Array>
void Fill(Random& random, Array& bytes) {
  for (auto& byte : bytes) byte = static_cast<uint8_t>(random.Next());
}

}  // namespace

const std::map<std::string, Attack>& Attacks() {
  static const std::map<std::string, Attack> attacks = {{"replay", &Attacker::Replay},
                                                        {"modify", &Attacker::Modify},
                                                        {"truncate", &Attacker::Truncate},
                                                        {"inject", &Attacker::Inject},
                                                        {"flood", &Attacker::Flood}};
  return attacks;
}

void Attacker::See(Datagram datagram) {
  ++seen_;
  if (kept_.size() == kKept) kept_.pop_front();
  kept_.push_back(std::move(datagram));
}

Datagram Attacker::Modify() {
  Datagram datagram = Any();
  std::vector<uint8_t>& bytes = datagram.payload;
  for (uint64_t n = 1 + random_.Below(3); n > 0 && !bytes.empty(); --n) {
    bytes[random_.Below(bytes.size())] ^= static_cast<uint8_t>(1u << random_.Below(8));
  }
  MakeRight(bytes);
  return datagram;
}

Datagram Attacker::Truncate() {
  Datagram datagram = Any();
  if (!datagram.payload.empty()) datagram.payload.resize(random_.Below(datagram.payload.size()));
  MakeRight(datagram.payload);
  return datagram;
}

Datagram Attacker::Inject() {
  Datagram datagram = Any();
  const auto victim = ConnectionOf(datagram.payload);
  std::vector<uint8_t> bytes(2048);
  size_t size = 0;
  switch (random_.Below(7)) {
    case 0:
      size = Data(victim, wire::MessageKind::kWrite, bytes);
      break;
    case 1:
      size = Data(victim, wire::MessageKind::kSend, bytes);
      break;
    case 2:
      size = Data(victim, wire::MessageKind::kReadRequest, bytes);
      break;
    case 3:
      size = Presence(victim, bytes);
      break;
    default:
      size = Control(victim, bytes);
  }
  bytes.resize(size);
  if (random_.Chance(0.5)) Protect(bytes);
  datagram.payload = std::move(bytes);
  return datagram;
}

Datagram Attacker::Flood() {
  Datagram datagram = Any();
  // Neighbours that are not there, and networks that cannot be reached.
  datagram.source = random_.Chance(0.5) ? (datagram.source & 0xffffff00) + 3 + static_cast<uint32_t>(random_.Below(250))
                                        : 0xcb007100 + static_cast<uint32_t>(random_.Below(256));
  datagram.source_port = static_cast<uint16_t>(1024 + random_.Below(60'000));
  wire::InitPacket init;
  init.client_connection = static_cast<uint32_t>(random_.Next());
  init.client_nonce = random_.Next();
  init.listener_nonce = random_.Next();
  if (random_.Chance(0.75)) Fill(random_, init.cookie);
  init.hello.segment_bytes = 1408;
  init.hello.features = random_.Chance(0.5) ? wire::kFeatureProtected : 0u;
  init.hello.algorithm = "tita";
  init.hello.ports = 1;
  Fill(random_, init.credentials.public_key);
  Fill(random_, init.credentials.tag);
  datagram.payload.resize(limits::kMaxControlBytes);
  datagram.payload.resize(wire::EncodeInit(init, datagram.payload));
  return datagram;
}

// As if it were: with a counter that has not been seen, and a tag of random bytes.
void Attacker::Protect(std::vector<uint8_t>& bytes) {
  const size_t header = bytes[2] | static_cast<size_t>(bytes[3]) << 8;
  std::array<uint8_t, 24> trailer{};  // counter and tag
  Fill(random_, trailer);
  std::fill(trailer.begin() + 3, trailer.begin() + 8, uint8_t{0});  // a counter of the first keys
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(header), trailer.begin(), trailer.end());
  bytes[1] |= wire::kProtected;
  bytes[2] = static_cast<uint8_t>(header + trailer.size());
  bytes[3] = static_cast<uint8_t>((header + trailer.size()) >> 8);
  MakeRight(bytes);
}

size_t Attacker::Data(uint32_t connection, wire::MessageKind kind, std::vector<uint8_t>& bytes) {
  wire::DataHeader header;
  header.flags = wire::kNoPayloadCrc;
  header.connection = connection;
  header.psn = static_cast<uint32_t>(random_.Below(1u << 20));
  header.message = static_cast<uint32_t>(random_.Below(4096));
  header.kind = kind;
  header.length = kind == wire::MessageKind::kReadRequest ? uint64_t{1} << 30 : 64;
  header.remote_key = random_.Next();
  header.tx_total = static_cast<uint32_t>(random_.Next());
  header.lost_total = static_cast<uint32_t>(random_.Next());
  const size_t size = wire::EncodeData(header, bytes);
  return kind == wire::MessageKind::kReadRequest ? size : size + 64;
}

size_t Attacker::Control(uint32_t connection, std::vector<uint8_t>& bytes) {
  wire::Writer writer(bytes);
  wire::BeginPacket(writer);
  switch (random_.Below(4)) {
    case 0: {
      wire::AckFrame ack;
      ack.cumulative = static_cast<uint32_t>(random_.Below(1u << 24));
      wire::WriteAck(writer, ack);
      break;
    }
    case 1: {
      wire::GrantFrame grant;
      grant.credit_end = random_.Next();
      grant.clear_limit = static_cast<uint32_t>(random_.Next());
      wire::WriteGrant(writer, grant);
      break;
    }
    case 2:
      wire::WriteReason(writer, wire::FrameType::kClose, static_cast<uint16_t>(1 + random_.Below(8)));
      break;
    default:
      wire::WriteReason(writer, wire::FrameType::kAbort, static_cast<uint16_t>(1 + random_.Below(8)));
  }
  const size_t size = writer.size();
  wire::FinishPacket(std::span(bytes).first(size), wire::PacketType::kControl, 0, connection);
  return size;
}

size_t Attacker::Presence(uint32_t connection, std::vector<uint8_t>& bytes) {
  wire::PresencePacket packet{.connection = connection, .token = random_.Next(), .tagged = random_.Chance(0.5)};
  Fill(random_, packet.tag);
  const auto type = random_.Chance(0.5) ? wire::PacketType::kAsk : wire::PacketType::kGone;
  return wire::EncodePresence(type, packet, connection, bytes);
}

}  // namespace paceline::interop
