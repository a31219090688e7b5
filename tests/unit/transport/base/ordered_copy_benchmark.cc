// Placing a segment in order beside its limit, memcpy: in the cache, and out of memory.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "transport/base/ordered_copy.h"

namespace paceline {
namespace {

constexpr size_t kSegment = 8'928;  // of a packet of 9,000 bytes

template <typename Copy>
void CopySegments(benchmark::State& state, Copy copy) {
  const auto total = static_cast<size_t>(state.range(0));
  std::vector<uint8_t> from(total + kSegment, 1), to(total + kSegment, 2);
  size_t at = 0;
  for (auto _ : state) {
    copy(to.data() + at, from.data() + at, kSegment);
    benchmark::ClobberMemory();
    at = at < total ? at + kSegment : 0;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(kSegment));
}

void BM_Memcpy(benchmark::State& state) {
  CopySegments(state, [](uint8_t* to, const uint8_t* from, size_t bytes) { std::memcpy(to, from, bytes); });
}
void BM_OrderedCopy(benchmark::State& state) {
  CopySegments(state, [](uint8_t* to, const uint8_t* from, size_t bytes) { OrderedCopy(to, from, bytes); });
}
BENCHMARK(BM_Memcpy)->Arg(64 << 10)->Arg(64 << 20);
BENCHMARK(BM_OrderedCopy)->Arg(64 << 10)->Arg(64 << 20);

}  // namespace
}  // namespace paceline

BENCHMARK_MAIN();
