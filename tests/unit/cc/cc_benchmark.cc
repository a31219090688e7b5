// What a grant and an acknowledgement cost, with 10 and with 10,000 flows, of which few or all are busy.
#include <array>
#include <vector>

#include "benchmark/benchmark.h"
#include "cc/registry.h"
#include "tests/unit/cc/algorithms/test_port.h"

namespace paceline {
namespace {

std::unique_ptr<CongestionControl> Make(const std::string& name) { return *CreateCongestionControl(name, {}, 1); }

// A grant and the arrival that it leads to. `busy` of `flows` flows have demand; the rest are idle.
void GrantAndArrival(benchmark::State& state) {
  const auto flows = static_cast<uint32_t>(state.range(0));
  const auto busy = static_cast<uint32_t>(state.range(1));
  const auto control = Make("tita");
  const auto receiver = control->NewReceiver(TestPort());
  Time now = Time::FromNanos(1'000'000);
  std::vector<uint64_t> tx_total(flows);
  for (uint32_t flow = 0; flow < flows; ++flow) receiver->AddFlow(flow, {}, now);
  for (uint32_t i = 0; i < busy; ++i) receiver->OnDemand(i * (flows / busy), uint64_t{1} << 50, Rate::Unlimited(), now);
  std::array<Grant, 16> grants;
  uint64_t count = 0;
  for (auto _ : state) {
    now = std::max(now, receiver->PollTimeout());
    const size_t written = receiver->PollGrants(now, grants);
    for (size_t i = 0; i < written; ++i) {
      const uint32_t flow = grants[i].flow;
      const uint64_t bytes = grants[i].credit_end - tx_total[flow];
      tx_total[flow] = grants[i].credit_end;
      receiver->OnArrival(flow, {.now = now, .bytes = bytes, .packets = 1, .tx_total = tx_total[flow]});
      receiver->OnDemand(flow, uint64_t{1} << 50, Rate::Unlimited(), now);
      ++count;
    }
  }
  state.counters["grants"] = benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
}
BENCHMARK(GrantAndArrival)->Args({10, 1})->Args({10, 10})->Args({10000, 1})->Args({10000, 10})->Args({10000, 10000});

void PollIdle(benchmark::State& state) {
  const auto control = Make("tita");
  const auto receiver = control->NewReceiver(TestPort());
  Time now = Time::FromNanos(1'000'000);
  for (uint32_t flow = 0; flow < state.range(0); ++flow) receiver->AddFlow(flow, {}, now);
  std::array<Grant, 16> grants;
  for (auto _ : state) {
    now = now + Duration::Nanos(100);
    benchmark::DoNotOptimize(receiver->PollTimeout());
    benchmark::DoNotOptimize(receiver->PollGrants(now, grants));
  }
}
BENCHMARK(PollIdle)->Arg(10)->Arg(10000);

void Ack(benchmark::State& state, const std::string& name) {
  const auto control = Make(name);
  std::vector<std::unique_ptr<SenderController>> senders;
  Time now = Time::FromNanos(1'000'000);
  for (int i = 0; i < state.range(0); ++i) {
    senders.push_back(control->NewSender({}, TestPort(), now));
    senders.back()->OnBacklog(now, 1 << 30, 0);
  }
  std::vector<uint64_t> sent(senders.size());
  size_t i = 0;
  for (auto _ : state) {
    now = now + Duration::Nanos(333);
    sent[i] += 4096;
    senders[i]->OnGrant({now, sent[i], Rate::Gbps(10)});
    senders[i]->OnSent(now, sent[i], 4096);
    senders[i]->OnAck({.now = now, .acked_bytes = 4096, .acked_packets = 1, .rtt = Duration::Micros(15)});
    benchmark::DoNotOptimize(senders[i]->allowance());
    benchmark::DoNotOptimize(senders[i]->cap());
    if (++i == senders.size()) i = 0;
  }
}
BENCHMARK_CAPTURE(Ack, tita, "tita")->Arg(10)->Arg(10000);
BENCHMARK_CAPTURE(Ack, swift, "swift")->Arg(10)->Arg(10000);
BENCHMARK_CAPTURE(Ack, dcqcn, "dcqcn")->Arg(10)->Arg(10000);

}  // namespace
}  // namespace paceline

BENCHMARK_MAIN();
