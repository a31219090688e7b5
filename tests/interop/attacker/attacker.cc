// Somebody with access to the wire between two processes: sees what passes an interface, and sends packets of his own
// to one of the two, in the other's name or in strangers'. One kind of attack a run; prints what it did as JSON.
//
//   replay    packets that passed, once more, soon and late
//   modify    packets that passed, with some bits changed and the checksum made right
//   truncate  packets that passed, cut off somewhere
//   inject    packets that nobody sent, for connections that passed: writes to guessed memory keys, sends, credit,
//             acknowledgements, closes and aborts, questions for a connection and answers that it is gone
//   flood     requests to connect, each in another stranger's name, most with a made-up cookie
#include <arpa/inet.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "tests/interop/attacker/packet_socket.h"
#include "transport/base/limits.h"
#include "transport/base/random.h"
#include "transport/wire/frames.h"
#include "transport/wire/handshake.h"
#include "transport/wire/packet.h"
#include "transport/wire/presence.h"

namespace paceline::interop {
namespace {

constexpr size_t kKept = 4096;  // packets that passed

double Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class Attacker {
 public:
  explicit Attacker(uint64_t seed) : random_(seed) {}

  // Something towards the target has passed.
  void See(Datagram datagram) {
    ++seen_;
    if (kept_.size() == kKept) kept_.pop_front();
    kept_.push_back(std::move(datagram));
  }
  bool ready() const { return !kept_.empty(); }
  uint64_t seen() const { return seen_; }

  Datagram Replay() { return Any(); }

  Datagram Modify() {
    Datagram datagram = Any();
    std::vector<uint8_t>& bytes = datagram.payload;
    for (uint64_t n = 1 + random_.Below(3); n > 0 && !bytes.empty(); --n) {
      bytes[random_.Below(bytes.size())] ^= static_cast<uint8_t>(1u << random_.Below(8));
    }
    MakeRight(bytes);
    return datagram;
  }

  Datagram Truncate() {
    Datagram datagram = Any();
    if (!datagram.payload.empty()) datagram.payload.resize(random_.Below(datagram.payload.size()));
    MakeRight(datagram.payload);
    return datagram;
  }

  Datagram Inject() {
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
    datagram.payload = std::move(bytes);
    return datagram;
  }

  Datagram Flood() {
    Datagram datagram = Any();
    // Neighbours that are not there, and networks that cannot be reached.
    datagram.source = random_.Chance(0.5)
                          ? (datagram.source & 0xffffff00) + 3 + static_cast<uint32_t>(random_.Below(250))
                          : 0xcb007100 + static_cast<uint32_t>(random_.Below(256));
    datagram.source_port = static_cast<uint16_t>(1024 + random_.Below(60'000));
    wire::InitPacket init;
    init.client_connection = static_cast<uint32_t>(random_.Next());
    init.client_nonce = random_.Next();
    init.listener_nonce = random_.Next();
    if (random_.Chance(0.75)) Fill(init.cookie);
    init.hello.segment_bytes = 1408;
    init.hello.features = random_.Chance(0.5) ? wire::kFeatureProtected : 0u;
    init.hello.algorithm = "tita";
    init.hello.ports = 1;
    Fill(init.credentials.public_key);
    Fill(init.credentials.tag);
    datagram.payload.resize(limits::kMaxControlBytes);
    datagram.payload.resize(wire::EncodeInit(init, datagram.payload));
    return datagram;
  }

 private:
  const Datagram& Any() { return kept_[random_.Below(kept_.size())]; }

  template <typename Array>
  void Fill(Array& bytes) {
    for (auto& byte : bytes) byte = static_cast<uint8_t>(random_.Next());
  }

  // The header's checksum, where the packet still has as much of a header as it says.
  static void MakeRight(std::vector<uint8_t>& bytes) {
    if (bytes.size() < wire::kCommonBytes) return;
    const size_t header = bytes[2] | static_cast<size_t>(bytes[3]) << 8;
    if (header < wire::kCommonBytes || header > bytes.size()) return;
    wire::RefreshChecksum(std::span(bytes).first(header));
  }

  static uint32_t ConnectionOf(const std::vector<uint8_t>& bytes) {
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(bytes, &bad_checksum);
    return common.has_value() ? common->connection : 1;
  }

  size_t Data(uint32_t connection, wire::MessageKind kind, std::vector<uint8_t>& bytes) {
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

  size_t Control(uint32_t connection, std::vector<uint8_t>& bytes) {
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

  size_t Presence(uint32_t connection, std::vector<uint8_t>& bytes) {
    wire::PresencePacket packet{.connection = connection, .token = random_.Next(), .tagged = random_.Chance(0.5)};
    Fill(packet.tag);
    const auto type = random_.Chance(0.5) ? wire::PacketType::kAsk : wire::PacketType::kGone;
    return wire::EncodePresence(type, packet, connection, bytes);
  }

  Random random_;
  std::deque<Datagram> kept_;
  uint64_t seen_ = 0;
};

using Attack = Datagram (Attacker::*)();
const std::map<std::string, Attack> kAttacks = {{"replay", &Attacker::Replay},
                                                {"modify", &Attacker::Modify},
                                                {"truncate", &Attacker::Truncate},
                                                {"inject", &Attacker::Inject},
                                                {"flood", &Attacker::Flood}};

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) {
  using namespace paceline::interop;  // NOLINT: one small program
  std::string kind, interface, target;
  double seconds = 2, rate = 10'000;
  uint64_t packets = 0, seed = 1;
  CLI::App app(
      "attacks Paceline processes that talk over an interface of this machine (needs the right to open packet "
      "sockets)");
  app.add_option("attack", kind, "replay, modify, truncate, inject or flood")
      ->required()
      ->check(CLI::IsMember(kAttacks));
  app.add_option("interface", interface, "where the packets pass")->required();
  app.add_option("target", target, "IPv4 address of the victim")->required()->check(CLI::ValidIPV4);
  app.add_option("--seconds", seconds, "how long")->check(CLI::Range(0.01, 3600.0));
  app.add_option("--rate", rate, "packets a second")->check(CLI::Range(1.0, 1e7));
  app.add_option("--packets", packets, "end after so many");
  app.add_option("--seed", seed, "of everything random");
  CLI11_PARSE(app, argc, argv);

  PacketSocket socket(interface);
  Attacker attacker(seed);
  in_addr victim{};
  inet_pton(AF_INET, target.c_str(), &victim);
  const Attack attack = kAttacks.at(kind);
  uint64_t sent = 0, refused = 0;
  double began = 0;
  const double patience = Now() + 20;
  for (;;) {
    while (auto datagram = socket.Capture()) {
      if (datagram->destination == ntohl(victim.s_addr)) attacker.See(*std::move(datagram));
      if (attacker.seen() % 64 == 0) break;
    }
    const double now = Now();
    if (!attacker.ready()) {
      if (now > patience) {
        std::fprintf(stderr, "attacker: nothing has passed %s for 20 s\n", interface.c_str());
        return 1;
      }
      timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
      continue;
    }
    if (began == 0) began = now;
    if (now - began > seconds || (packets > 0 && sent >= packets)) break;
    const auto due = static_cast<uint64_t>((now - began) * rate);
    for (int burst = 0; sent + refused < due && burst < 64; ++burst) {
      ++(socket.Send((attacker.*attack)()) ? sent : refused);
    }
    if (sent + refused >= due) {
      timespec pause{0, 200'000};
      nanosleep(&pause, nullptr);
    }
  }
  std::printf(
      "%s\n",
      nlohmann::json{
          {"attack", kind}, {"seen", attacker.seen()}, {"sent", sent}, {"refused", refused}, {"seconds", Now() - began}}
          .dump()
          .c_str());
  return 0;
}
