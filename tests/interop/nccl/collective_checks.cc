// Collectives as NCCL builds them from sends and receives, in chunks, with every sum checked.
#include <algorithm>
#include <memory>

#include "tests/interop/nccl/job.h"

namespace paceline::nccl_test {
namespace {

constexpr size_t kElements = 60'013;  // no multiple of a chunk
constexpr size_t kChunk = 8'192;      // elements
constexpr size_t kChunks = (kElements + kChunk - 1) / kChunk;

using Vector = std::vector<uint32_t>;

uint32_t ElementOf(uint32_t rank, size_t at) { return static_cast<uint32_t>(at * 2'654'435'761u) ^ (rank * 40'503u); }

Vector Own(const Job& job) {
  Vector own(kElements);
  for (size_t i = 0; i < kElements; ++i) own[i] = ElementOf(job.rank(), i);
  return own;
}

void ExpectSum(const Job& job, const Vector& sum) {
  for (size_t i = 0; i < kElements; ++i) {
    uint32_t wanted = 0;
    for (uint32_t rank = 0; rank < job.world(); ++rank) wanted += ElementOf(rank, i);
    if (sum[i] != wanted) Fail("element " + std::to_string(i) + " of the sum is wrong");
  }
}

size_t LengthOf(size_t begin, size_t step) { return begin >= kElements ? 0 : std::min(step, kElements - begin); }

}  // namespace

// Reduce-scatter and all-gather round the ring: in step s a rank sends the block it has just completed or received.
void CheckRing(Job& job) {
  const uint32_t world = job.world();
  if (world < 2) return;
  const uint32_t me = job.rank(), next = (me + 1) % world, previous = (me + world - 1) % world;
  Comms comms = job.Connect([&](uint32_t from, uint32_t to) { return to == (from + 1) % world; });
  Vector data = Own(job);
  const size_t block = (kElements + world - 1) / world;
  Vector incoming(block);
  void* memory = nullptr;
  Check(job.net().Register(comms.send[next], data.data(), data.size() * 4, abi::kPointerHost, &memory), "regMr");
  Proxy proxy(&job.net());
  for (uint32_t step = 0; step < 2 * (world - 1); ++step) {
    const size_t out = (me + 2 * world - step) % world * block;
    const size_t in = (me + 2 * world - step - 1) % world * block;
    const bool adds = step < world - 1;
    proxy.Receive(comms.receive[previous], {{.data = adds ? incoming.data() : data.data() + std::min(in, kElements),
                                             .bytes = LengthOf(in, block) * 4}});
    proxy.Send(comms.send[next],
               {.data = data.data() + std::min(out, kElements), .bytes = LengthOf(out, block) * 4, .memory = memory});
    proxy.Drain();
    for (size_t i = 0; adds && i < LengthOf(in, block); ++i) data[in + i] += incoming[i];
  }
  ExpectSum(job, data);
  job.Barrier();
  Check(job.net().Deregister(comms.send[next], memory), "deregMr");
  job.Close(comms);
}

// Up a binary tree, where each rank adds what its children bring, and down again, chunk after chunk without a pause.
void CheckTree(Job& job) {
  const uint32_t world = job.world(), me = job.rank();
  const auto parent_of = [](uint32_t rank) { return (rank - 1) / 2; };
  const auto linked = [&](uint32_t a, uint32_t b) { return a != 0 && parent_of(a) == b; };
  Comms comms = job.Connect([&](uint32_t from, uint32_t to) { return linked(from, to) || linked(to, from); });
  Vector data = Own(job);
  std::vector<uint32_t> children;
  for (uint32_t rank = 1; rank < world; ++rank) {
    if (parent_of(rank) == me) children.push_back(rank);
  }
  Proxy proxy(&job.net());
  const auto chunk_of = [&](Vector& vector, size_t c) {
    return Slot{.data = vector.data() + c * kChunk, .bytes = LengthOf(c * kChunk, kChunk) * 4, .tag = 3};
  };
  const auto down = [&](size_t c) {
    for (const uint32_t child : children) proxy.Send(comms.send[child], chunk_of(data, c));
  };
  const auto up = [&](size_t c) {
    if (me == 0) return down(c);
    proxy.Send(comms.send[parent_of(me)], chunk_of(data, c), [&, c](const std::vector<int>&) {
      // Only now may the sum be written over what was sent.
      proxy.Receive(comms.receive[parent_of(me)], {chunk_of(data, c)}, [&, c](const std::vector<int>&) { down(c); });
    });
  };
  std::vector<Vector> from_child(children.size(), Vector(kElements));
  std::vector<size_t> missing(kChunks, children.size());
  for (size_t c = 0; c < kChunks; ++c) {
    for (size_t k = 0; k < children.size(); ++k) {
      proxy.Receive(comms.receive[children[k]], {chunk_of(from_child[k], c)}, [&, c, k](const std::vector<int>&) {
        for (size_t i = 0; i < LengthOf(c * kChunk, kChunk); ++i) data[c * kChunk + i] += from_child[k][c * kChunk + i];
        if (--missing[c] == 0) up(c);
      });
    }
    if (children.empty()) up(c);
  }
  proxy.Drain();
  ExpectSum(job, data);
  job.Barrier();
  job.Close(comms);
}

void CheckAllToAll(Job& job) {
  Comms comms = job.ConnectAll();
  constexpr size_t kBlock = 100'003;
  std::vector<std::vector<uint8_t>> from(job.world(), std::vector<uint8_t>(kBlock));
  std::vector<std::vector<uint8_t>> to = from;
  Proxy proxy(&job.net());
  for (uint32_t shift = 1; shift < job.world(); ++shift) {
    const uint32_t peer = (job.rank() + shift) % job.world();
    Fill(from[peer].data(), kBlock, job.rank(), peer);
    for (size_t at = 0; at < kBlock; at += 20'000) {
      const size_t bytes = std::min<size_t>(20'000, kBlock - at);
      proxy.Receive(comms.receive[peer], {{.data = to[peer].data() + at, .bytes = bytes}});
      proxy.Send(comms.send[peer], {.data = from[peer].data() + at, .bytes = bytes});
    }
  }
  proxy.Drain();
  for (uint32_t peer = 0; peer < job.world(); ++peer) {
    Expect(peer == job.rank() || IsFilled(to[peer].data(), kBlock, peer, job.rank()), "wrong bytes from a peer");
  }
  job.Barrier();
  job.Close(comms);
}

}  // namespace paceline::nccl_test
