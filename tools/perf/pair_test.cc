#include "tools/perf/pair_test.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/perf/counter_delta.h"
#include "tools/perf/pingpong.h"
#include "tools/perf/stream.h"
#include "transport/engine/clock.h"

namespace paceline::tools {
namespace {

constexpr uint64_t kVerifyBytes = 64ull << 20;  // checked at most
constexpr double kLatencyShare = 0.25;          // of `seconds`, for the latency part beside the throughput part
constexpr uint64_t kWarmup = 100;

absl::StatusOr<PairMemory> MakeMemory(Session& session, uint32_t window, uint64_t size) {
  PairMemory memory;
  memory.window = window;
  memory.size = size;
  memory.stride = (size + 63) / 64 * 64;
  memory.tx = Block(memory.stride * window);
  memory.rx = Block(memory.stride * window);
  const auto tx = session.Register(memory.tx);
  const auto rx = session.Register(memory.rx);
  // Both answers are exchanged first, so that a side without memory does not leave the other waiting.
  memory.tx_region = tx.ok() ? *tx : 0;
  memory.rx_region = rx.ok() ? *rx : 0;
  const auto all_tx = session.ExchangeMemory(memory.tx_region);
  if (!all_tx.ok()) return all_tx.status();
  const auto all_rx = session.ExchangeMemory(memory.rx_region);
  if (!all_rx.ok()) return all_rx.status();
  if (!tx.ok()) return tx.status();
  if (!rx.ok()) return rx.status();
  const uint32_t peer = 1 - session.rank();
  memory.peer_tx = (*all_tx)[peer];
  memory.peer_rx = (*all_rx)[peer];
  if (memory.peer_tx.key == 0 || memory.peer_rx.key == 0)
    return absl::UnavailableError("the peer has not enough memory");
  return memory;
}

void PrintInterval(double seconds, uint64_t messages, uint64_t bytes, double& last_seconds, uint64_t& last_bytes) {
  const double span = seconds - last_seconds;
  const double gbps = span > 0 ? static_cast<double>(bytes - last_bytes) * 8 / span / 1e9 : 0;
  std::fprintf(stderr, "  %8.2f s  %12llu messages  %9.3f Gb/s\n", seconds, static_cast<unsigned long long>(messages),
               gbps);
  last_seconds = seconds;
  last_bytes = bytes;
}

}  // namespace

uint32_t DefaultPairWindow(uint64_t size) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((8u << 20) / size, 4, 64));
}

absl::StatusOr<RankResult> RunPairTest(Session& session, const TestSpec& spec, uint64_t size) {
  const auto op = ParsePairOp(spec.op);
  if (!op.ok()) return op.status();
  if (*op == PairOp::kAtomic) size = sizeof(uint64_t);
  const uint32_t window = spec.window != 0 ? spec.window : DefaultPairWindow(size);
  auto memory = MakeMemory(session, window, size);
  if (!memory.ok()) return memory.status();

  const CounterDelta counters(session);
  RankResult result;
  const bool initiator = session.rank() == 1;
  const uint32_t peer = 1 - session.rank();
  uint64_t phase = 1;
  uint64_t atomics = 0;  // additions of ours to the peer's word so far

  const auto ping_pong = [&](uint64_t iterations, double seconds) -> absl::StatusOr<PingPongResult> {
    PingPongPlan plan{.op = *op, .peer = peer, .initiator = initiator, .iterations = iterations, .phase = phase++};
    plan.length = Duration::Nanos(static_cast<int64_t>(seconds * 1e9));
    auto done = RunPingPong(session, *memory, plan);
    if (done.ok() && initiator) atomics += done->operations;
    return done;
  };
  StreamPlan plan{.op = *op, .peer = peer};
  plan.active = initiator || spec.bidirectional;
  plan.passive = !initiator || spec.bidirectional;
  const auto stream = [&](uint64_t target, double seconds) -> absl::StatusOr<StreamResult> {
    plan.target = target;
    plan.length = Duration::Nanos(static_cast<int64_t>(seconds * 1e9));
    plan.phase = phase++;
    plan.atomics_before = atomics;
    auto done = RunStream(session, *memory, plan);
    if (done.ok() && plan.active) atomics += done->started;
    return done;
  };

  const uint64_t warmup = spec.warmup.value_or(std::clamp<uint64_t>((4u << 20) / size, 2, kWarmup));
  if (warmup > 0) {
    if (auto warm = ping_pong(std::min(warmup, kWarmup), 0); !warm.ok()) return warm.status();
  }
  const bool whole = *op == PairOp::kRead || *op == PairOp::kAtomic;
  if (spec.rate == 0) {
    auto latency = ping_pong(spec.iterations, spec.seconds * kLatencyShare);
    if (!latency.ok()) return latency.status();
    result.latency = latency->round_trip;
    result.latency_kind = whole ? "round trip" : "half round trip";
  }

  if (warmup > 0) {
    if (auto warm = stream(warmup, 0); !warm.ok()) return warm.status();
  }
  if (spec.interval > 0 && initiator) {
    plan.interval = Duration::Nanos(static_cast<int64_t>(spec.interval * 1e9));
    plan.report = [last_seconds = 0.0, last_bytes = uint64_t{0}](double seconds, uint64_t messages,
                                                                 uint64_t bytes) mutable {
      PrintInterval(seconds, messages, bytes, last_seconds, last_bytes);
    };
  }
  plan.bits_per_second = spec.rate;
  const Duration cpu = ProcessCpuTime();
  auto timed = stream(spec.iterations, spec.seconds);
  if (!timed.ok()) return timed.status();
  result.cpu_seconds = (ProcessCpuTime() - cpu).seconds();
  result.messages = timed->started;
  result.messages_not_started = timed->not_started;
  result.bytes = timed->started * size;
  result.seconds = timed->seconds;
  if (spec.rate > 0) {
    result.latency = timed->latency;
    result.latency_kind = "completion";
  }

  plan.report = nullptr;
  plan.bits_per_second = 0;
  plan.verify = true;
  const bool once = *op == PairOp::kWrite || *op == PairOp::kWriteImmediate;
  const uint64_t checks = std::clamp<uint64_t>(kVerifyBytes / size, 1, once ? window : 4ull * window);
  auto checked = stream(checks, 0);
  if (!checked.ok()) return checked.status();
  result.verified = timed->verified && checked->verified;
  result.checked_bytes = checked->checked_bytes;
  counters.AddTo(result);
  return result;
}

}  // namespace paceline::tools
