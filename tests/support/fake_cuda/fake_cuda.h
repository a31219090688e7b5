// What a test asks of the fake CUDA driver beside CUDA's own calls, by dlsym.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace paceline::fake_cuda {

// extern "C" fake_cuda_fail: the `nth` call from now (1: the next) of the function so named answers `result`.
using Fail = void (*)(const char* function, int nth, int result);
// extern "C" fake_cuda_hold: 1: copies stay under way until 0, or until somebody synchronises.
using Hold = void (*)(int hold);
// extern "C" fake_cuda_live: what is not freed yet: streams, events, allocations of any kind.
using Live = int (*)();
// extern "C" fake_cuda_flushes: how often cuFlushGPUDirectRDMAWrites has been answered.
using Flushes = int (*)();

}  // namespace paceline::fake_cuda
