// What the dpdk lane is measured against, the lane itself, and two endpoints over it:
//
//   raw_memif        DPDK alone between two processes over net_memif: segments a second, and 64 bytes there and back
//   lane_memif       the same by the lane
//   ring_endpoints   two endpoints of the whole transport in one process, polled in turn by one thread, over net_ring:
//                    segments a second of messages of 64 bytes, one segment each, and of 1 MiB in segments of --bytes;
//                    packets a second too, as several small messages share one
//
//   dpdk_yardsticks [--bytes N] [--seconds S] [--iterations N] [--parts raw_memif,lane_memif,ring_endpoints]
//
// Prints JSON: millions of segments (and packets) a second; microseconds of a round trip, p10, p50, p90. The two
// processes spin: give each a core of its own.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/interop/dpdk/raw_memif.h"
#include "tests/unit/transport/lane/dpdk/engine_pair.h"
#include "tests/unit/transport/lane/dpdk/ring_pair.h"
#include "transport/lane/dpdk/dpdk_eal.h"
#include "transport/lane/dpdk/dpdk_packet_lane.h"
#include "transport/lane/dpdk/dpdk_peers.h"
#include "transport/lane/udp/udp_address.h"

namespace paceline::interop {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

struct Settings {
  uint32_t bytes = 1400;  // of a segment's payload
  double seconds = 1;
  int iterations = 20'000;
  std::vector<std::string> parts = {"raw_memif", "lane_memif", "ring_endpoints"};
};

constexpr uint32_t kSmall = 64;
constexpr uint32_t kFrameHeader = 42;

double Seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

[[noreturn]] void Fail(const std::string& why) {
  std::cerr << why << "\n";
  std::exit(1);
}

// What both processes see.
struct Shared {
  alignas(128) std::atomic<bool> stop{false};
  alignas(128) std::atomic<uint64_t> received{0};
};

// Something that packets go through; Send and Receive answer how many.
struct Way {
  std::function<uint32_t(uint32_t bytes, uint32_t count)> send;
  std::function<uint32_t()> receive;
  std::function<bool()> ready;
};

Way RawWay(const std::string& device) {
  auto port = std::make_shared<RawMemif>(device);
  return {[port](uint32_t bytes, uint32_t count) { return port->SendBurst(bytes + kFrameHeader, count); },
          [port] { return port->ReceiveBurst(); }, [port] { return port->LinkUp(); }};
}

Way LaneWay(const std::string& device, const IpAddress& peer_address) {
  DpdkLaneOptions options;
  options.devices = {device};
  auto lanes = OpenDpdkLanes(options);
  if (!lanes.ok()) Fail(lanes.status().ToString());
  const std::shared_ptr<Lane> lane = std::move(lanes->front());
  const uint32_t peer = lane->OpenPeer(ToLaneAddress(IpVersion::kV4, peer_address, DpdkDevice::kDefaultUdpPort));
  const auto payload = std::make_shared<std::vector<uint8_t>>(1 << 16, uint8_t{1});
  const auto out = std::make_shared<std::array<RxSegment, 64>>();
  const auto receive = [lane, out] { return static_cast<uint32_t>(lane->Receive(*out, EnginePair::Now())); };
  return {[lane, peer, payload](uint32_t bytes, uint32_t count) {
            std::array<TxSegment, 32> segments;
            for (TxSegment& segment : segments) {
              segment.peer = peer;
              segment.payload = payload->data();
              segment.payload_bytes = bytes;
            }
            return static_cast<uint32_t>(lane->Send(std::span(segments).first(count)));
          },
          receive,
          [lane, peer, receive] {
            receive();
            return lane->status().up && lane->RoomTo(peer) > 0;
          }};
}

// `make(true)` runs in this process and sends first, `make(false)` in another.
Json Measure(const Settings& settings, const std::function<Way(bool)>& make) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* shared = new (memory) Shared;
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const Way way = make(false);
    // Answers the round trips, and counts the rest.
    for (uint64_t seen = 0; !shared->stop;) {
      const uint32_t got = way.receive();
      if (got == 0) continue;
      seen += got;
      if (seen <= static_cast<uint64_t>(settings.iterations)) way.send(kSmall, 1);
      shared->received.store(seen, std::memory_order_relaxed);
    }
    _exit(0);
  }
  const Way way = make(true);
  const auto start = Clock::now();
  while (!way.ready()) {
    if (Seconds(start) > 15) Fail("the two processes do not meet");
  }
  std::vector<double> samples;
  for (int i = 0; i < settings.iterations; ++i) {
    const auto at = Clock::now();
    while (way.send(kSmall, 1) == 0) {
    }
    while (way.receive() == 0) {
      if (Seconds(at) > 5) Fail("no answer");
    }
    samples.push_back(Seconds(at) * 1e6);
  }
  const auto begin = Clock::now();
  const uint64_t before = shared->received;
  while (Seconds(begin) < settings.seconds) {
    for (int i = 0; i < 16; ++i) way.send(settings.bytes, 32);
  }
  const double rate = static_cast<double>(shared->received - before) / Seconds(begin) / 1e6;
  shared->stop = true;
  waitpid(child, nullptr, 0);
  munmap(memory, sizeof(Shared));
  std::sort(samples.begin(), samples.end());
  const auto percentile = [&](double share) {
    return samples[static_cast<size_t>(share * static_cast<double>(samples.size()))];
  };
  return {{"million_segments_per_s", rate},
          {"round_trip_us", {{"p10", percentile(0.1)}, {"p50", percentile(0.5)}, {"p90", percentile(0.9)}}}};
}

// In a process of its own, as DPDK starts once in each.
Json InChild(const std::function<Json()>& measure) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string text = measure().dump();
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text(1 << 16, '\0');
  const ssize_t got = read(ends[0], text.data(), text.size());
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (got <= 0 || status != 0) std::exit(1);
  return Json::parse(text.substr(0, static_cast<size_t>(got)));
}

// Messages of `bytes` from one endpoint to the other, `window` under way.
Json RingEndpoints(const Settings& settings, size_t bytes, size_t window, const char* algorithm) {
  if (absl::Status status = StartDpdkEal({}, ""); !status.ok()) Fail(status.ToString());
  const RingPair ports = RingPair::Make();
  DpdkLaneOptions options;
  options.mtu = static_cast<uint32_t>(std::max<size_t>(576, settings.bytes + 100));
  options.link_rate = Rate::Gbps(100);
  options.devices = {ports.a + ",address=192.0.2.1/24", ports.b + ",address=192.0.2.2/24"};
  auto lanes = OpenDpdkLanes(options);
  if (!lanes.ok()) Fail(lanes.status().ToString());
  EnginePair pair(std::move((*lanes)[0]), std::move((*lanes)[1]), algorithm);
  if (!pair.Connect()) Fail("the endpoints do not connect");
  std::vector<uint8_t> from(bytes), to(bytes * window);
  size_t received = window, sent = window, next = 0;  // still to be posted; buffers taken so far
  std::array<Completion, 64> completions;
  uint64_t messages = 0;
  const auto start = Clock::now();
  while (Seconds(start) < settings.seconds) {
    const Time now = EnginePair::Now();
    for (; received > 0; --received, ++next) {
      uint8_t* into = to.data() + next % window * bytes;
      if (pair.endpoint(1).PostReceive(pair.connection(1), {.buffer = {into, bytes}}, now) != PostResult::kOk) break;
    }
    for (; sent > 0; --sent) {
      if (pair.endpoint(0).PostSend(pair.connection(0), {.buffer = {from.data(), bytes}}, now) != PostResult::kOk)
        break;
    }
    for (int i = 0; i < 8; ++i) pair.Poll();
    for (size_t got; (got = pair.endpoint(0).PollCompletions(completions)) > 0;) sent += got;
    for (size_t got; (got = pair.endpoint(1).PollCompletions(completions)) > 0;) {
      received += got;
      messages += got;
    }
  }
  const double million_seconds = Seconds(start) * 1e6;
  const uint64_t packets = pair.endpoint(0).counters().tx_data_packets;
  const uint64_t segments = bytes <= settings.bytes ? messages : packets;
  return {{"million_segments_per_s", static_cast<double>(segments) / million_seconds},
          {"million_packets_per_s", static_cast<double>(packets) / million_seconds},
          {"gbps", static_cast<double>(pair.endpoint(0).counters().tx_data_bytes) * 8e-9 / Seconds(start)},
          {"retransmits", pair.endpoint(0).counters().retransmits}};
}

int Run(int argc, char** argv) {
  Settings settings;
  CLI::App app("yardsticks for the dpdk lane");
  app.add_option("--bytes", settings.bytes, "payload of a segment")->check(CLI::Range(1, 1400));
  app.add_option("--seconds", settings.seconds, "of each measurement of throughput");
  app.add_option("--iterations", settings.iterations, "round trips")->check(CLI::PositiveNumber);
  app.add_option("--parts", settings.parts, "what to measure, comma separated")
      ->delimiter(',')
      ->check(CLI::IsMember(settings.parts));
  CLI11_PARSE(app, argc, argv);

  std::string folder = (std::filesystem::temp_directory_path() / "dpdk_yardsticks_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const auto device = [&](const char* socket, bool here) {
    return absl::StrCat("net_memif0,role=", here ? "server" : "client", ",socket=", folder, "/", socket,
                        ",socket-abstract=no,address=192.0.2.", here ? 1 : 2);
  };
  const auto asked = [&](const char* part) {
    return std::find(settings.parts.begin(), settings.parts.end(), part) != settings.parts.end();
  };
  Json result;
  if (asked("raw_memif")) {
    result["raw_memif"] =
        InChild([&] { return Measure(settings, [&](bool here) { return RawWay(device("raw", here)); }); });
  }
  if (asked("lane_memif")) {
    result["lane_memif"] = InChild([&] {
      return Measure(settings, [&](bool here) {
        return LaneWay(device("lane", here), IpAddress{192, 0, 2, static_cast<uint8_t>(here ? 2 : 1)});
      });
    });
  }
  for (const char* algorithm : {"none", "tita"}) {
    if (!asked("ring_endpoints")) break;
    result["ring_endpoints"][algorithm]["64"] =
        InChild([&] { return RingEndpoints(settings, kSmall, 512, algorithm); });
    result["ring_endpoints"][algorithm][std::to_string(settings.bytes)] =
        InChild([&] { return RingEndpoints(settings, 1 << 20, 8, algorithm); });
  }
  std::filesystem::remove_all(folder);
  std::cout << result.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) { return paceline::interop::Run(argc, argv); }
