// How fast messages go through a plugin, as NCCL's ring has them: each rank sends to the next and receives from the one
// before, over some channels, with as many steps in flight as NCCL's buffers have.
#include <algorithm>
#include <cstdio>

#include "tests/interop/nccl/job.h"
#include "transport/engine/clock.h"

namespace paceline::nccl_test {
namespace {

constexpr size_t kChannels = 2, kSteps = 8;  // as many as NCCL_STEPS
constexpr double kSeconds = 0.5;

struct Channel {
  Comms comms;
  std::vector<uint8_t> from, to;
  void* from_memory = nullptr;
  void* to_memory = nullptr;
};

// Steps of `bytes` until `steps` have gone and come on every channel, `in_flight` at a time.
void Move(Job& job, std::vector<Channel>& channels, size_t bytes, size_t in_flight, size_t steps) {
  const uint32_t next = (job.rank() + 1) % job.world(), previous = (job.rank() + job.world() - 1) % job.world();
  Proxy proxy(&job.net(), in_flight);
  for (Channel& channel : channels) {
    for (size_t step = 0; step < steps; ++step) {
      const size_t at = step % kSteps * bytes;
      proxy.Receive(channel.comms.receive[previous],
                    {{.data = channel.to.data() + at, .bytes = bytes, .memory = channel.to_memory}});
      proxy.Send(channel.comms.send[next],
                 {.data = channel.from.data() + at, .bytes = bytes, .memory = channel.from_memory});
    }
  }
  proxy.Drain();
}

}  // namespace

void CheckRate(Job& job) {
  const std::vector<size_t>& sizes = job.rate_bytes();
  const size_t most = *std::max_element(sizes.begin(), sizes.end()) * kSteps;
  std::vector<Channel> channels(kChannels);
  const uint32_t next = (job.rank() + 1) % job.world(), previous = (job.rank() + job.world() - 1) % job.world();
  for (Channel& channel : channels) {
    channel.comms = job.Connect([&](uint32_t from, uint32_t to) { return to == (from + 1) % job.world(); });
    channel.from.resize(most, 1);
    channel.to.resize(most, 2);
    Check(job.net().Register(channel.comms.send[next], channel.from.data(), most, abi::kPointerHost,
                             &channel.from_memory),
          "regMr");
    Check(job.net().Register(channel.comms.receive[previous], channel.to.data(), most, abi::kPointerHost,
                             &channel.to_memory),
          "regMr");
  }
  for (const size_t bytes : sizes) {
    for (const size_t in_flight : {size_t{1}, kSteps}) {
      size_t steps = kSteps;
      double seconds = 0;
      for (;;) {  // more steps until they take long enough; all ranks alike
        job.Barrier();
        const Time start = MonotonicNow();
        Move(job, channels, bytes, in_flight, steps);
        seconds = std::stod(job.AllGather(std::to_string((MonotonicNow() - start).seconds())).front());
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
  for (Channel& channel : channels) {
    Check(job.net().Deregister(channel.comms.send[next], channel.from_memory), "deregMr");
    Check(job.net().Deregister(channel.comms.receive[previous], channel.to_memory), "deregMr");
    job.Close(channel.comms);
  }
}

}  // namespace paceline::nccl_test
