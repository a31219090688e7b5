// How fast messages go through a plugin, as NCCL's ring has them: each rank sends to the next and receives from the one
// before, over some channels, with as many steps in flight as NCCL's buffers have.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tests/interop/nccl/job.h"

namespace paceline::nccl_test {
namespace {

constexpr size_t kChannels = 2, kSteps = 8;  // NCCL_STEPS
constexpr double kSeconds = 0.5;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Lane {
  Comms comms;
  std::vector<uint8_t> from, to;
  void* from_memory = nullptr;
  void* to_memory = nullptr;
};

// Steps of `bytes` until `steps` have gone and come on every channel, `in_flight` at a time.
void Move(Job& job, std::vector<Lane>& lanes, size_t bytes, size_t in_flight, size_t steps) {
  const uint32_t next = (job.rank() + 1) % job.world(), previous = (job.rank() + job.world() - 1) % job.world();
  Proxy proxy(&job.net(), in_flight);
  for (Lane& lane : lanes) {
    for (size_t step = 0; step < steps; ++step) {
      const size_t at = step % kSteps * bytes;
      proxy.Receive(lane.comms.receive[previous],
                    {{.data = lane.to.data() + at, .bytes = bytes, .memory = lane.to_memory}});
      proxy.Send(lane.comms.send[next], {.data = lane.from.data() + at, .bytes = bytes, .memory = lane.from_memory});
    }
  }
  proxy.Drain();
}

}  // namespace

void CheckRate(Job& job) {
  const std::vector<size_t>& sizes = job.rate_bytes();
  const size_t most = *std::max_element(sizes.begin(), sizes.end()) * kSteps;
  std::vector<Lane> lanes(kChannels);
  const uint32_t next = (job.rank() + 1) % job.world(), previous = (job.rank() + job.world() - 1) % job.world();
  for (Lane& lane : lanes) {
    lane.comms = job.Connect([&](uint32_t from, uint32_t to) { return to == (from + 1) % job.world(); });
    lane.from.resize(most, 1);
    lane.to.resize(most, 2);
    Check(job.net().Register(lane.comms.send[next], lane.from.data(), most, abi::kPointerHost, &lane.from_memory),
          "regMr");
    Check(job.net().Register(lane.comms.receive[previous], lane.to.data(), most, abi::kPointerHost, &lane.to_memory),
          "regMr");
  }
  for (const size_t bytes : sizes) {
    for (const size_t in_flight : {size_t{1}, kSteps}) {
      size_t steps = kSteps;
      double seconds = 0;
      for (;;) {  // more steps until they take long enough; all ranks alike
        job.Barrier();
        const double start = Now();
        Move(job, lanes, bytes, in_flight, steps);
        seconds = std::stod(job.AllGather(std::to_string(Now() - start)).front());
        if (seconds > kSeconds) break;
        steps *= seconds > kSeconds / 8 ? 2 : 8;
      }
      const double total = static_cast<double>(bytes * steps * kChannels);
      if (job.rank() == 0) {
        std::printf("%8zu bytes, %zu in flight on each of %zu channels: %8.2f us a step, %7.2f Gb/s each way\n", bytes,
                    in_flight, kChannels, seconds * 1e6 / static_cast<double>(steps), total * 8e-9 / seconds);
      }
    }
  }
  for (Lane& lane : lanes) {
    Check(job.net().Deregister(lane.comms.send[next], lane.from_memory), "deregMr");
    Check(job.net().Deregister(lane.comms.receive[previous], lane.to_memory), "deregMr");
    job.Close(lane.comms);
  }
}

}  // namespace paceline::nccl_test
