#include "tests/interop/nccl/collectives.h"

namespace paceline::nccl_test {
namespace {

constexpr uint32_t kRoot = 1;  // not the first, which is special to much

const void* From(const CollectiveCall& call, size_t at = 0) {
  return reinterpret_cast<const void*>(call.from + at * sizeof(uint32_t));
}
void* To(const CollectiveCall& call, size_t at = 0) { return reinterpret_cast<void*>(call.to + at * sizeof(uint32_t)); }

uint32_t Sum(size_t at, uint32_t world) {
  uint32_t sum = 0;
  for (uint32_t rank = 0; rank < world; ++rank) sum += SentValue(at, rank);
  return sum;
}

size_t All(uint32_t, uint32_t, size_t count) { return count; }
double Once(uint32_t) { return 1; }
double AllButOwn(uint32_t world) { return (world - 1.0) / world; }

constexpr Collective kCollectives[] = {
    {.name = "all_reduce",
     .run =
         [](const CollectiveCall& call) {
           call.nccl.Check(
               call.nccl.ncclAllReduce(From(call), To(call), call.count, kNcclUint32, kNcclSum, call.comm, call.stream),
               "ncclAllReduce");
         },
     .expected = [](size_t at, uint32_t, uint32_t world, size_t) { return Sum(at, world); },
     .values = All,
     .bus_factor = [](uint32_t world) { return 2 * AllButOwn(world); }},
    {.name = "reduce_scatter",
     .run =
         [](const CollectiveCall& call) {
           call.nccl.Check(call.nccl.ncclReduceScatter(From(call), To(call), call.count / call.world, kNcclUint32,
                                                       kNcclSum, call.comm, call.stream),
                           "ncclReduceScatter");
         },
     .expected = [](size_t at, uint32_t rank, uint32_t world,
                    size_t count) { return Sum(rank * (count / world) + at, world); },
     .values = [](uint32_t, uint32_t world, size_t count) { return count / world; },
     .bus_factor = AllButOwn},
    {.name = "all_gather",
     .run =
         [](const CollectiveCall& call) {
           call.nccl.Check(call.nccl.ncclAllGather(From(call), To(call), call.count / call.world, kNcclUint32,
                                                   call.comm, call.stream),
                           "ncclAllGather");
         },
     .expected =
         [](size_t at, uint32_t, uint32_t world, size_t count) {
           const size_t each = count / world;
           return SentValue(at % each, static_cast<uint32_t>(at / each));
         },
     .values = All,
     .bus_factor = AllButOwn},
    {.name = "broadcast",
     .run =
         [](const CollectiveCall& call) {
           call.nccl.Check(
               call.nccl.ncclBroadcast(From(call), To(call), call.count, kNcclUint32, kRoot, call.comm, call.stream),
               "ncclBroadcast");
         },
     .expected = [](size_t at, uint32_t, uint32_t, size_t) { return SentValue(at, kRoot); },
     .values = All,
     .bus_factor = Once},
    {.name = "reduce",
     .run =
         [](const CollectiveCall& call) {
           call.nccl.Check(call.nccl.ncclReduce(From(call), To(call), call.count, kNcclUint32, kNcclSum, kRoot,
                                                call.comm, call.stream),
                           "ncclReduce");
         },
     .expected = [](size_t at, uint32_t, uint32_t world, size_t) { return Sum(at, world); },
     .values = [](uint32_t rank, uint32_t, size_t count) { return rank == kRoot ? count : 0; },
     .bus_factor = Once},
    {.name = "all_to_all",
     .run =
         [](const CollectiveCall& call) {
           const size_t each = call.count / call.world;
           call.nccl.Check(call.nccl.ncclGroupStart(), "ncclGroupStart");
           for (uint32_t peer = 0; peer < call.world; ++peer) {
             const int number = static_cast<int>(peer);
             call.nccl.Check(
                 call.nccl.ncclSend(From(call, peer * each), each, kNcclUint32, number, call.comm, call.stream),
                 "ncclSend");
             call.nccl.Check(
                 call.nccl.ncclRecv(To(call, peer * each), each, kNcclUint32, number, call.comm, call.stream),
                 "ncclRecv");
           }
           call.nccl.Check(call.nccl.ncclGroupEnd(), "ncclGroupEnd");
         },
     .expected =
         [](size_t at, uint32_t rank, uint32_t world, size_t count) {
           const size_t each = count / world;
           return SentValue(rank * each + at % each, static_cast<uint32_t>(at / each));
         },
     .values = All,
     .bus_factor = AllButOwn},
};

}  // namespace

std::span<const Collective> Collectives() { return kCollectives; }

uint32_t SentValue(size_t at, uint32_t rank) {
  const auto value = static_cast<uint32_t>(at);
  return (value ^ (value >> 15)) * 0x9e3779b1U + rank * 0x85ebca6bU;
}

}  // namespace paceline::nccl_test
