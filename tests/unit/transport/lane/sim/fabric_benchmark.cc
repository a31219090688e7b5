// Packet-hops per second of the simulated fabric alone, with hosts that do next to nothing.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "tests/unit/transport/lane/sim/window_host.h"
#include "transport/lane/sim/fabric.h"

namespace paceline::sim {
namespace {

FabricConfig FatTree() {
  FabricConfig config;
  config.topology.kind = TopologyKind::kFatTree;
  config.topology.hosts = 128;
  return config;
}

void RunHosts(benchmark::State& state, bool all_to_all, uint32_t window) {
  uint64_t hops = 0, events = 0;
  for (auto _ : state) {
    auto fabric = Fabric::Create(FatTree());
    if (!fabric.ok()) return state.SkipWithError("no fabric");
    std::vector<std::unique_ptr<WindowHost>> hosts;
    const uint32_t count = (*fabric)->hosts();
    for (uint32_t host = 0; host < count; ++host) {
      std::vector<uint32_t> peers;
      for (uint32_t i = 1; i < (all_to_all ? count : 2); ++i) {
        peers.push_back((host + (all_to_all ? i : count / 2)) % count);
      }
      hosts.push_back(std::make_unique<WindowHost>(**fabric, host, peers, 1016, window));
    }
    (*fabric)->Run(Time::Never());
    hops += (*fabric)->counters().packet_hops;
    events += (*fabric)->counters().events;
  }
  state.counters["hops"] = benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
  state.counters["events"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}

void BM_Permutation(benchmark::State& state) { RunHosts(state, false, static_cast<uint32_t>(state.range(0))); }
void BM_AllToAll(benchmark::State& state) { RunHosts(state, true, static_cast<uint32_t>(state.range(0))); }
BENCHMARK(BM_Permutation)->Arg(43)->Arg(90)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_AllToAll)->Arg(43)->Arg(90)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace paceline::sim

BENCHMARK_MAIN();
