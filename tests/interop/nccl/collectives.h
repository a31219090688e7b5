// The collectives of NCCL that are run and checked: for each its buffers, the call, and what has to be in the receive
// buffer afterwards. Values are of 32 bits, sums modulo 2^32, so that every result is exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/interop/nccl/nccl_library.h"

namespace paceline::nccl_test {

// Where one call works.
struct CollectiveCall {
  const NcclLibrary& nccl;
  NcclComm comm;
  NcclLibrary::Stream stream;
  uint32_t rank;
  uint32_t world;
  size_t count;  // values of the larger buffer, a multiple of `world`
  gpudirect::DevicePointer from;
  gpudirect::DevicePointer to;
};

struct Collective {
  const char* name;
  void (*run)(const CollectiveCall& call);
  // Value `at` of the receive buffer of `rank`, which has `values` of them.
  uint32_t (*expected)(size_t at, uint32_t rank, uint32_t world, size_t count);
  // How many values rank `rank` receives.
  size_t (*values)(uint32_t rank, uint32_t world, size_t count);
  // Of the bytes of the larger buffer, how many cross a rank's link (as nccl-tests' "bus bandwidth").
  double (*bus_factor)(uint32_t world);
};

std::span<const Collective> Collectives();

// Value `at` of the send buffer of `rank`.
uint32_t SentValue(size_t at, uint32_t rank);

}  // namespace paceline::nccl_test
