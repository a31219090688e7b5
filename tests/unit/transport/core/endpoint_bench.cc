// What the core costs: a poll with few and with many idle connections, the memory of an idle connection, and a packet
// from one endpoint to another (4 KB of payload, real and phantom), next to copying the same bytes.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/endpoint_pair.h"
#include "transport/wire/checksum.h"

namespace paceline {
namespace {

using Pair = support::EndpointPair;

void BM_IdlePoll(benchmark::State& state) {
  auto pair = std::make_unique<Pair>();
  std::vector<ConnectionId> connections;
  for (int64_t i = 0; i < state.range(0); ++i) connections.push_back(pair->Connect().first);
  TxBurst burst;
  for (auto _ : state) {
    benchmark::DoNotOptimize(pair->a().PollTimeout());
    benchmark::DoNotOptimize(pair->a().PollTransmit(0, burst, TxBurst::kSegments, pair->now()));
    std::array<Completion, 16> completions;
    benchmark::DoNotOptimize(pair->a().PollCompletions(completions));
  }
  state.counters["bytes_per_idle_connection"] = static_cast<double>(pair->a().MemoryOf(connections[0]));
}
BENCHMARK(BM_IdlePoll)->Arg(10)->Arg(10'000);

// A connection that was used and then left alone.
void BM_IdleMemoryAfterUse(benchmark::State& state) {
  auto pair = std::make_unique<Pair>();
  const auto [a, b] = pair->Connect();
  std::vector<uint8_t> out(1 << 20), in(1 << 20);
  pair->b().PostReceive(b, {.buffer = {in.data(), in.size()}}, pair->now());
  pair->a().PostSend(a, {.buffer = {out.data(), out.size()}}, pair->now());
  std::array<Completion, 16> completions;
  while (pair->a().PollCompletions(completions) == 0) pair->Step();
  const size_t used = pair->a().MemoryOf(a);
  for (int i = 0; i < 30; ++i) pair->Advance(Duration::Millis(100));
  for (auto _ : state) benchmark::DoNotOptimize(pair->a().MemoryOf(a));
  state.counters["in_use_bytes"] = static_cast<double>(used);
  state.counters["idle_bytes"] = static_cast<double>(pair->a().MemoryOf(a));
}
BENCHMARK(BM_IdleMemoryAfterUse);

// Both endpoints' work for each packet with payload, acknowledgements included.
void Transfer(benchmark::State& state, bool phantom, size_t idle, const char* algorithm = nullptr,
              uint32_t max_packet_bytes = 4096 + 96) {
  constexpr size_t kBytes = 4 << 20;
  auto pair = std::make_unique<Pair>(algorithm, max_packet_bytes);
  const auto [a, b] = pair->Connect();
  for (size_t i = 0; i < idle; ++i) pair->Connect();
  std::vector<uint8_t> out(phantom ? 0 : kBytes, 1), in(phantom ? 0 : kBytes);
  LocalBuffer from{out.data(), kBytes}, to{in.data(), kBytes};
  if (phantom) {
    from = {nullptr, kBytes, pair->a().RegisterMemory(nullptr, kBytes, kLocalOnly, MemoryKind::kPhantom)};
    to = {nullptr, kBytes, pair->b().RegisterMemory(nullptr, kBytes, kLocalOnly, MemoryKind::kPhantom)};
  }
  // So long that a paced sender has a burst in each step, as a busy one has over real sockets.
  const Duration step = algorithm == nullptr ? Duration::Nanos(200) : Duration::Micros(5);
  std::array<Completion, 16> completions;
  for (auto _ : state) {
    pair->b().PostReceive(b, {.buffer = to}, pair->now());
    pair->a().PostSend(a, {.buffer = from}, pair->now());
    size_t done = 0;
    while (done < 2) {
      pair->Step(step);
      done += pair->a().PollCompletions(completions);
      done += pair->b().PollCompletions(completions);
    }
  }
  const auto packets = static_cast<double>(pair->a().counters().tx_data_packets);
  state.counters["per_packet"] = benchmark::Counter(packets, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetBytesProcessed(static_cast<int64_t>(pair->a().counters().tx_data_bytes));
}
BENCHMARK_CAPTURE(Transfer, real_payload, false, 0);
BENCHMARK_CAPTURE(Transfer, tita_1500, false, 0, "tita", 1472);
BENCHMARK_CAPTURE(Transfer, phantom_payload, true, 0);
BENCHMARK_CAPTURE(Transfer, phantom_payload_beside_10000_idle, true, 10'000);

// A message of 64 bytes to the other side and one back: both endpoints' work, each answer posted as soon as the message
// is there.
void RoundTrip(benchmark::State& state, const char* algorithm) {
  auto pair = std::make_unique<Pair>(algorithm);
  const auto [a, b] = pair->Connect();
  std::array<uint8_t, 64> out{}, in_a{}, in_b{};
  std::array<Completion, 16> completions;
  const auto turn = [&](Endpoint& from, ConnectionId sending, Endpoint& to, uint8_t* into, ConnectionId receiving) {
    to.PostReceive(receiving, {.buffer = {into, 64}}, pair->now());
    from.PostSend(sending, {.buffer = {out.data(), out.size()}}, pair->now());
    for (bool arrived = false; !arrived;) {
      pair->Step();
      const size_t count = to.PollCompletions(completions);
      for (size_t i = 0; i < count; ++i) arrived |= completions[i].operation == Operation::kReceive;
    }
  };
  for (auto _ : state) {
    turn(pair->a(), a, pair->b(), in_b.data(), b);
    turn(pair->b(), b, pair->a(), in_a.data(), a);
  }
  const auto messages = static_cast<double>(2 * state.iterations());
  state.counters["packets_per_message"] =
      static_cast<double>(pair->a().counters().tx_packets + pair->b().counters().tx_packets) / messages;
}
BENCHMARK_CAPTURE(RoundTrip, window, nullptr);
BENCHMARK_CAPTURE(RoundTrip, none, "none");
BENCHMARK_CAPTURE(RoundTrip, tita, "tita");

// A checksum and the ordinary code after it, which pays if the checksum leaves vector registers in a bad state.
void BM_ChecksumAndMultiply(benchmark::State& state) {
  const std::vector<uint8_t> packet(1420, 1);
  volatile double factor = 1.5;
  for (auto _ : state) {
    benchmark::DoNotOptimize(wire::Crc32c(packet));
    benchmark::DoNotOptimize(factor * factor);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(packet.size()));
}
BENCHMARK(BM_ChecksumAndMultiply);

void BM_Memcpy(benchmark::State& state) {
  std::vector<uint8_t> out(4 << 20, 1), in(4 << 20);
  for (auto _ : state) {
    std::memcpy(in.data(), out.data(), out.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * (4 << 20));
}
BENCHMARK(BM_Memcpy);

}  // namespace
}  // namespace paceline

BENCHMARK_MAIN();
