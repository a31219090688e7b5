// What the shm lane is measured against, and the lane itself, between two processes of this machine:
//
//   memcpy        one process copies a message: the limit of a transport that copies once
//   process_vm    process_vm_writev into the other process: one copy by the kernel
//   lane          the same messages as packets of the largest size through the lane, copied out to a buffer behind it
//   spin          a word there and back through shared memory, both ends spinning: the limit of a round trip
//   lane there and back   a packet of 64 bytes likewise
//
//   shm_yardsticks [--bytes N] [--buffers N] [--seconds S] [--iterations N] [--packet N] [--ring N]
//                  [--parts memcpy,process_vm,lane,spin,lane_round_trip]
//
// Prints JSON, of the parts: gbps {memcpy, process_vm, lane}, round_trip_us {spin, lane} each with p10, p50, p90.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "transport/lane/shm/shm_lane.h"

namespace paceline::interop {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  size_t bytes = 1 << 20;  // of a message
  size_t buffers = 16;     // that take turns on each side
  double seconds = 0.5;
  int iterations = 20'000;
  std::vector<std::string> parts = {"memcpy", "process_vm", "lane", "spin", "lane_round_trip"};
  ShmLaneOptions lane;
};

// What both processes see; fresh for each measurement.
struct Shared {
  alignas(128) std::atomic<uint64_t> there{0};
  alignas(128) std::atomic<uint64_t> back{0};
  alignas(128) std::atomic<bool> stop{false};
  std::atomic<uint32_t> ready{0};  // addresses written
  LaneAddress addresses[2];
};

double Seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

// Runs `child` in a process of its own while `parent` runs here.
void Both(const std::function<void(Shared&)>& child, const std::function<void(Shared&, pid_t)>& parent) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* shared = new (memory) Shared;
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    child(*shared);
    _exit(0);
  }
  parent(*shared, pid);
  shared->stop = true;
  waitpid(pid, nullptr, 0);
  munmap(memory, sizeof(Shared));
}

nlohmann::json Percentiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<size_t>(share * static_cast<double>(samples.size()))];
  };
  return {{"p10", at(0.1)}, {"p50", at(0.5)}, {"p90", at(0.9)}};
}

class Buffers {
 public:
  explicit Buffers(const Settings& settings) : settings_(settings), memory_(settings.bytes * settings.buffers, 1) {}
  uint8_t* Next() { return memory_.data() + next_++ % settings_.buffers * settings_.bytes; }
  uint8_t* begin() { return memory_.data(); }

 private:
  const Settings& settings_;
  std::vector<uint8_t> memory_;
  size_t next_ = 0;
};

// Gb/s of `copy`, which moves one message.
double Rate(const Settings& settings, const std::function<void()>& copy) {
  copy();
  uint64_t messages = 0;
  const auto start = Clock::now();
  for (; Seconds(start) < settings.seconds; ++messages) copy();
  return static_cast<double>(messages * settings.bytes) * 8e-9 / Seconds(start);
}

double Memcpy(const Settings& settings) {
  Buffers from(settings), to(settings);
  return Rate(settings, [&] { std::memcpy(to.Next(), from.Next(), settings.bytes); });
}

double ProcessVm(const Settings& settings) {
  Buffers from(settings), to(settings);  // the child has the same addresses
  double rate = 0;
  Both(
      [&](Shared& shared) {
        std::fill_n(to.begin(), settings.bytes * settings.buffers, uint8_t{2});
        shared.ready = 1;
        while (!shared.stop) usleep(1000);
      },
      [&](Shared& shared, pid_t child) {
        while (shared.ready == 0) usleep(1000);
        ssize_t moved = 0;
        rate = Rate(settings, [&] {
          iovec here{from.Next(), settings.bytes}, there{to.Next(), settings.bytes};
          moved = process_vm_writev(child, &here, 1, &there, 1, 0);
        });
        if (moved != static_cast<ssize_t>(settings.bytes)) rate = 0;  // not permitted
      });
  return rate;
}

// A lane of this side, connected with the other's.
struct End {
  std::unique_ptr<Lane> lane;
  uint32_t peer = 0;

  End(const Settings& settings, Shared& shared, int side) : lane(*CreateShmLane(settings.lane)) {
    shared.addresses[side] = lane->address();
    ++shared.ready;
    while (shared.ready < 2) continue;
    peer = lane->OpenPeer(shared.addresses[1 - side]);
  }
};

double LaneRate(const Settings& settings) {
  double rate = 0;
  const uint32_t payload = settings.lane.max_packet_bytes - 96;
  Both(
      [&](Shared& shared) {
        const End end(settings, shared, 1);
        Buffers from(settings);
        std::array<uint8_t, 96> header{};
        while (!shared.stop) {
          const uint8_t* message = from.Next();
          for (size_t at = 0; at < settings.bytes && !shared.stop;) {
            while (end.lane->RoomTo(end.peer) == 0 && !shared.stop) sched_yield();  // others may want the core
            TxSegment segment;
            segment.peer = end.peer;
            segment.header = header.data();
            segment.header_bytes = header.size();
            segment.payload = message + at;
            segment.payload_bytes = static_cast<uint32_t>(std::min<size_t>(payload, settings.bytes - at));
            end.lane->Send({&segment, 1});
            at += segment.payload_bytes;
          }
        }
      },
      [&](Shared& shared, pid_t) {
        const End end(settings, shared, 0);
        Buffers to(settings);
        std::array<RxSegment, 64> out;
        size_t left_over = 0;  // of a message, in bytes
        rate = Rate(settings, [&] {
          uint8_t* target = to.Next();
          while (left_over < settings.bytes) {
            const size_t count = end.lane->Receive(out, Time());
            if (count == 0) sched_yield();
            for (size_t i = 0; i < count; ++i) {
              std::memcpy(target + std::min(left_over, settings.bytes - out[i].payload_bytes), out[i].payload,
                          out[i].payload_bytes);
              left_over += out[i].payload_bytes;
            }
          }
          left_over -= settings.bytes;
        });
      });
  return rate;
}

nlohmann::json SpinRoundTrip(const Settings& settings) {
  std::vector<double> samples;
  Both(
      [](Shared& shared) {
        for (uint64_t seen = 0; !shared.stop;) {
          const uint64_t value = shared.there.load(std::memory_order_acquire);
          if (value == seen) continue;
          seen = value;
          shared.back.store(seen, std::memory_order_release);
        }
      },
      [&](Shared& shared, pid_t) {
        for (uint64_t i = 1; i <= static_cast<uint64_t>(settings.iterations); ++i) {
          const auto start = Clock::now();
          shared.there.store(i, std::memory_order_release);
          while (shared.back.load(std::memory_order_acquire) != i) continue;
          samples.push_back(Seconds(start) * 1e6);
        }
      });
  return Percentiles(samples);
}

nlohmann::json LaneRoundTrip(const Settings& settings) {
  std::vector<double> samples;
  std::array<uint8_t, 64> bytes{};
  const auto send = [&](const End& end) {
    TxSegment segment;
    segment.peer = end.peer;
    segment.header = bytes.data();
    segment.header_bytes = bytes.size();
    end.lane->Send({&segment, 1});
  };
  Both(
      [&](Shared& shared) {
        const End end(settings, shared, 1);
        std::array<RxSegment, 64> out;
        while (!shared.stop) {
          if (end.lane->Receive(out, Time()) > 0) send(end);
        }
      },
      [&](Shared& shared, pid_t) {
        const End end(settings, shared, 0);
        std::array<RxSegment, 64> out;
        for (int i = 0; i < settings.iterations; ++i) {
          const auto start = Clock::now();
          send(end);
          while (end.lane->Receive(out, Time()) == 0) continue;
          samples.push_back(Seconds(start) * 1e6);
        }
      });
  return Percentiles(samples);
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) {
  using namespace paceline::interop;
  Settings settings;
  CLI::App app{"yardsticks of the shm lane"};
  app.add_option("--bytes", settings.bytes, "of a message");
  app.add_option("--buffers", settings.buffers, "that take turns on each side");
  app.add_option("--seconds", settings.seconds, "of each measurement of throughput");
  app.add_option("--iterations", settings.iterations, "of each measurement of a round trip");
  app.add_option("--packet", settings.lane.max_packet_bytes, "bytes of the largest packet");
  app.add_option("--ring", settings.lane.ring_bytes, "bytes of a ring");
  app.add_option("--parts", settings.parts, "what to measure, comma separated")
      ->delimiter(',')
      ->check(CLI::IsMember(settings.parts));
  CLI11_PARSE(app, argc, argv);
  if (settings.bytes < settings.lane.max_packet_bytes) settings.bytes = settings.lane.max_packet_bytes;
  const auto wanted = [&](std::string_view part) {
    return std::find(settings.parts.begin(), settings.parts.end(), part) != settings.parts.end();
  };
  nlohmann::json result;
  if (wanted("memcpy")) result["gbps"]["memcpy"] = Memcpy(settings);
  if (wanted("process_vm")) result["gbps"]["process_vm"] = ProcessVm(settings);
  if (wanted("lane")) result["gbps"]["lane"] = LaneRate(settings);
  if (wanted("spin")) result["round_trip_us"]["spin"] = SpinRoundTrip(settings);
  if (wanted("lane_round_trip")) result["round_trip_us"]["lane"] = LaneRoundTrip(settings);
  std::cout << result.dump(2) << "\n";
  return 0;
}
