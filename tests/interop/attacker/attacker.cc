// Somebody with access to the wire between two processes: sees what passes an interface, and sends packets of his own
// to one of the two, in the other's name or in strangers' (attacks.h). One kind of attack a run; prints what it did as
// JSON.
#include <arpa/inet.h>
#include <time.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "tests/interop/attacker/attacks.h"
#include "tests/interop/attacker/packet_socket.h"

namespace paceline::interop {
namespace {

constexpr double kGlanceEvery = 0.2, kGlance = 0.005;                 // seconds
constexpr std::array<uint8_t, 6> kNobody = {0x02, 0, 0, 0, 0, 0xee};  // an Ethernet address that no interface has

double Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) {
  using namespace paceline::interop;  // NOLINT: one small program
  std::string kind, interface, target;
  double seconds = 2, rate = 10'000, turns = 0;
  uint64_t packets = 0, after = 1, seed = 1;
  bool glances = false;
  CLI::App app(
      "attacks Paceline processes that talk over an interface of this machine (needs the right to open packet "
      "sockets)");
  app.add_option("attack", kind, "replay, modify, truncate, inject or flood")
      ->required()
      ->check(CLI::IsMember(Attacks()));
  app.add_option("interface", interface, "where the packets pass")->required();
  app.add_option("target", target, "IPv4 address of the victim")->required()->check(CLI::ValidIPV4);
  app.add_option("--seconds", seconds, "how long")->check(CLI::Range(0.01, 3600.0));
  app.add_option("--rate", rate, "packets a second")->check(CLI::Range(1.0, 1e7));
  app.add_option("--packets", packets, "end after so many");
  app.add_option("--after", after, "begin when so many have passed, which a measurement under way sends in no time")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000}));
  app.add_option("--seed", seed, "of everything random");
  app.add_flag("--glances", glances,
               "look at what passes for 5 of 200 ms only: looking takes CPU time, which the victims may need");
  app.add_option("--turns", turns,
                 "change sides every so many seconds: first the same packets go to nobody's Ethernet address, so that "
                 "they cost the sender what they always do and the victim nothing, then to the victim, and so on")
      ->check(CLI::Range(0.01, 3600.0));
  CLI11_PARSE(app, argc, argv);

  PacketSocket socket(interface);
  Attacker attacker(seed);
  in_addr victim{};
  inet_pton(AF_INET, target.c_str(), &victim);
  const Attack attack = Attacks().at(kind);
  uint64_t sent = 0, missed = 0, refused = 0;
  double began = 0;
  const double patience = Now() + 20;
  bool looking = true;
  for (;;) {
    while (auto datagram = socket.Capture()) {
      if (datagram->destination == ntohl(victim.s_addr)) attacker.See(*std::move(datagram));
      if (attacker.seen() % 64 == 0) break;
    }
    const double now = Now();
    if (attacker.seen() < after) {
      if (now > patience) {
        std::fprintf(stderr, "attacker: %llu packets to the victim have passed %s in 20 s\n",
                     static_cast<unsigned long long>(attacker.seen()), interface.c_str());
        return 1;
      }
      timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
      continue;
    }
    if (began == 0) began = now;
    if (const bool look = !glances || std::fmod(now - began, kGlanceEvery) < kGlance; look != looking) {
      looking = look;
      socket.Look(look);
    }
    if (now - began > seconds || (packets > 0 && sent >= packets)) break;
    const bool astray = turns > 0 && std::fmod(now - began, 2 * turns) < turns;
    const auto due = static_cast<uint64_t>((now - began) * rate);
    for (int burst = 0; sent + missed + refused < due && burst < 64; ++burst) {
      Datagram datagram = (attacker.*attack)();
      if (astray) datagram.destination_mac = kNobody;
      ++(!socket.Send(datagram) ? refused : astray ? missed : sent);
    }
    if (sent + missed + refused >= due) {
      timespec pause{0, 200'000};
      nanosleep(&pause, nullptr);
    }
  }
  const nlohmann::json did = {
      {"attack", kind},     {"seen", attacker.seen()},  {"sent", sent},  {"astray", missed},
      {"refused", refused}, {"seconds", Now() - began}, {"began", began}};  // of CLOCK_MONOTONIC
  std::printf("%s\n", did.dump().c_str());
  return 0;
}
