// What an attacker's packets cost the endpoint that they are for: hands it so many of a kind, made of the packets of a
// transfer that came before, and prints what became of them. Instructions per packet, of the endpoint alone (the
// kernel's part of receiving a packet comes on top):
//
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='paceline::Endpoint::HandleSegments*'
//     paceline_attack_cost modify --packets 10000
//
// "Collected" less that of --packets 0, over the packets: the transfers before and behind count too.
// Exit status: 0 no packet of the attacker was taken, 1 some were, 2 wrong use.
#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tests/interop/attacker/attacks.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/scripted_world.h"

namespace paceline::interop {
namespace {

using support::GuardedBuffer;
using support::NetworkPacket;
using support::ScriptedWorld;
using support::WorldOptions;

constexpr size_t kBytes = 4'000'000;  // of the transfer: some thousand packets of 1,408 bytes
constexpr size_t kBurst = 64;         // packets that a lane hands over at a time

// Two hosts with a cluster key, and the packets of a transfer from host 0 to host 1.
class Victim {
 public:
  explicit Victim(bool encrypt) : world_(Options(encrypt)), out_(kBytes), in_(kBytes) {
    const auto [from, to] = world_.Connect(0, 1);
    from_ = from;
    to_ = to;
    world_.network().StartCapture();
    Transfer();
  }

  const std::vector<NetworkPacket>& captured() { return world_.network().captured(); }
  const EndpointCounters& counters() { return world_.endpoint(1).counters(); }
  bool Transfer() {
    size_t done = 0;
    world_.host(1).on_completion = [&done](const Completion&) { ++done; };
    world_.endpoint(1).PostReceive(to_, {.buffer = in_.local()}, world_.now());
    world_.endpoint(0).PostSend(from_, {.buffer = out_.local()}, world_.now());
    world_.host(0).Touch();
    world_.host(1).Touch();
    return world_.RunUntil([&done] { return done == 1; });
  }
  // As a lane would, in bursts.
  void Hand(std::vector<std::vector<uint8_t>>& packets) {
    const LaneAddress source = support::ScriptedLane::AddressOfPort(0);
    std::array<RxSegment, kBurst> burst;
    for (size_t at = 0; at < packets.size(); at += kBurst) {
      const size_t count = std::min(kBurst, packets.size() - at);
      for (size_t i = 0; i < count; ++i) {
        burst[i] = RxSegment{};
        burst[i].data = packets[at + i].data();
        burst[i].data_bytes = static_cast<uint32_t>(packets[at + i].size());
        burst[i].source = &source;
        burst[i].received_at = world_.now();
      }
      world_.endpoint(1).HandleSegments(0, std::span(burst).first(count), world_.now());
    }
  }

 private:
  static WorldOptions Options(bool encrypt) {
    WorldOptions options;
    options.packet_capabilities.max_packet_bytes = 1408 + 120;
    options.customize = [encrypt](uint32_t host, EndpointOptions& endpoint) {
      endpoint.cluster_key.emplace().fill(7);
      endpoint.key_seed.fill(static_cast<uint8_t>(1 + host));
      endpoint.encrypt = encrypt;
    };
    return options;
  }

  ScriptedWorld world_;
  GuardedBuffer out_, in_;
  ConnectionId from_ = kNoConnection, to_ = kNoConnection;
};

bool Run(const std::string& kind, size_t packets, uint64_t seed, bool encrypt) {
  Victim victim(encrypt);
  Attacker attacker(seed);
  for (const NetworkPacket& packet : victim.captured()) {
    if (packet.to == 1) attacker.See({.payload = packet.bytes});
  }
  std::vector<std::vector<uint8_t>> made;
  for (size_t i = 0; i < packets; ++i) made.push_back((attacker.*Attacks().at(kind))().payload);
  const EndpointCounters before = victim.counters();
  victim.Hand(made);
  const EndpointCounters& after = victim.counters();
  const uint64_t taken = after.rx_data_bytes - before.rx_data_bytes;
  std::printf(
      "%-8s  %zu packets: %llu forged, %llu replayed, %llu malformed, %llu bad checksum, %llu unknown connection\n",
      kind.c_str(), packets, static_cast<unsigned long long>(after.rx_forged - before.rx_forged),
      static_cast<unsigned long long>(after.rx_replayed - before.rx_replayed),
      static_cast<unsigned long long>(after.rx_malformed - before.rx_malformed),
      static_cast<unsigned long long>(after.rx_bad_checksum - before.rx_bad_checksum),
      static_cast<unsigned long long>(after.rx_unknown_connection - before.rx_unknown_connection));
  const bool unharmed = taken == 0 && after.connections_opened == before.connections_opened && victim.Transfer();
  if (!unharmed) std::printf("%s: something was taken from the attacker\n", kind.c_str());
  return unharmed;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) {
  using namespace paceline::interop;  // NOLINT: one small program
  std::string kind;
  size_t packets = 10'000;
  uint64_t seed = 1;
  bool encrypt = false;
  CLI::App app("hands an endpoint packets of an attacker, to be counted by callgrind");
  app.add_option("attack", kind, "replay, modify, truncate, inject, flood, or all of them")->required();
  app.add_option("--packets", packets, "of each kind")->check(CLI::Range(size_t{0}, size_t{10'000'000}));
  app.add_option("--seed", seed, "of everything random");
  app.add_flag("--encrypt", encrypt, "payloads of the connection are encrypted");
  CLI11_PARSE(app, argc, argv);
  if (kind != "all" && !Attacks().contains(kind)) {
    std::fprintf(stderr, "attack \"%s\" is unknown; it may be replay, modify, truncate, inject, flood or all\n",
                 kind.c_str());
    return 2;
  }
  bool unharmed = true;
  for (const auto& [name, attack] : Attacks()) {
    if (kind == "all" || kind == name) unharmed &= Run(name, packets, seed, encrypt);
  }
  return unharmed ? 0 : 1;
}
