// Messages between neighbours: every rank sends to the next one and receives from the one before.
#include <algorithm>
#include <numeric>

#include "tests/interop/nccl/job.h"

namespace paceline::nccl_test {
namespace {

// The comms round the ring, and their ends by name.
struct Ring {
  explicit Ring(Job& job)
      : next((job.rank() + 1) % job.world()), previous((job.rank() + job.world() - 1) % job.world()) {
    comms = job.Connect([&](uint32_t from, uint32_t to) { return to == (from + 1) % job.world(); });
    out = comms.send[next];
    in = comms.receive[previous];
  }

  uint32_t next, previous;
  Comms comms;
  void* out = nullptr;
  void* in = nullptr;
};

void* Register(Job& job, void* comm, std::vector<uint8_t>& buffer) {
  void* memory = nullptr;
  Check(job.net().Register(comm, buffer.data(), buffer.size(), abi::kPointerHost, &memory), "regMr");
  return memory;
}

}  // namespace

void CheckSizes(Job& job) {
  Ring ring(job);
  constexpr size_t kMost = (4 << 20) + 5;
  std::vector<uint8_t> from(kMost), to(kMost);
  void* const from_memory = Register(job, ring.out, from);
  void* const to_memory = Register(job, ring.in, to);
  Proxy proxy(&job.net());
  uint32_t message = 0;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{3}, size_t{127}, size_t{4097}, size_t{16384}, size_t{65537},
                             size_t{524288}, kMost - 5}) {
    for (const size_t spare : {size_t{0}, size_t{5}}) {  // a send may be shorter than its receive
      ++message;
      Fill(from.data(), bytes, job.rank(), message);
      std::fill(to.begin(), to.end(), uint8_t{0xee});
      int got = -1;
      proxy.Receive(
          ring.in, {{.data = to.data(), .bytes = bytes + spare, .tag = 5, .memory = to_memory}},
          [&](const std::vector<int>& sizes) { got = sizes[0]; }, true);
      proxy.Send(ring.out, {.data = from.data(), .bytes = bytes, .tag = 5, .memory = from_memory});
      proxy.Drain();
      Expect(got == static_cast<int>(bytes),
             "a send of " + std::to_string(bytes) + " arrived as " + std::to_string(got));
      Expect(IsFilled(to.data(), bytes, ring.previous, message),
             "wrong bytes in a message of " + std::to_string(bytes));
      Expect(std::all_of(to.begin() + static_cast<ptrdiff_t>(bytes), to.end(), [](uint8_t b) { return b == 0xee; }),
             "bytes behind a message of " + std::to_string(bytes) + " have changed");
    }
  }
  Check(job.net().Deregister(ring.out, from_memory), "deregMr");
  Check(job.net().Deregister(ring.in, to_memory), "deregMr");
  job.Barrier();
  job.Close(ring.comms);
}

void CheckGroups(Job& job) {
  const size_t group = std::min<size_t>(job.max_receives(), 8);
  if (group < 2) return;
  // One way only, so that a bound of the plugin that receives reach leaves the sends of the same process alone.
  const uint32_t me = job.rank();
  const bool sends = me % 2 == 0 && me + 1 < job.world(), receives = me % 2 == 1;
  Comms comms = job.Connect([](uint32_t from, uint32_t to) { return from % 2 == 0 && to == from + 1; });
  constexpr size_t kGroups = 24, kRoom = 3000;
  // The k-th send with a tag belongs into the k-th slot with it, counted over all groups; lengths tell them apart.
  const auto tag_of = [&](size_t g, size_t slot) { return static_cast<int>((slot + g % 3) / 3); };
  const auto bytes_of = [&](size_t g, size_t slot) { return (g * 131 + slot * 17) % kRoom; };
  std::vector<std::vector<uint8_t>> to(kGroups * group, std::vector<uint8_t>(kRoom));
  std::vector<std::vector<uint8_t>> from = to;
  Proxy proxy(&job.net(), abi::kMaxRequests);
  size_t groups_done = 0;
  for (size_t g = 0; receives && g < kGroups; ++g) {
    std::vector<Slot> slots;
    for (size_t s = 0; s < group; ++s) {
      slots.push_back({.data = to[g * group + s].data(), .bytes = kRoom, .tag = tag_of(g, s)});
    }
    proxy.Receive(comms.receive[me - 1], slots, [&, g](const std::vector<int>& sizes) {
      Expect(sizes.size() == group, "sizes of a group");
      for (size_t s = 0; s < group; ++s) {
        const size_t bytes = bytes_of(g, s);
        Expect(sizes[s] == static_cast<int>(bytes), "slot " + std::to_string(s) + " of group " + std::to_string(g) +
                                                        " has " + std::to_string(sizes[s]) + " bytes, not " +
                                                        std::to_string(bytes));
        Expect(IsFilled(to[g * group + s].data(), bytes, me - 1, static_cast<uint32_t>(g * group + s)),
               "slot " + std::to_string(s) + " of group " + std::to_string(g) + " has another's bytes");
      }
      Expect(g == groups_done, "groups are done in the order of their posting");
      ++groups_done;
    });
  }
  // Sends of one tag keep their order; between tags it is turned round within each group.
  for (size_t g = 0; sends && g < kGroups; ++g) {
    std::vector<size_t> order(group);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tag_of(g, a) > tag_of(g, b); });
    for (const size_t s : order) {
      const auto number = static_cast<uint32_t>(g * group + s);
      Fill(from[number].data(), bytes_of(g, s), me, number);
      proxy.Send(comms.send[me + 1], {.data = from[number].data(), .bytes = bytes_of(g, s), .tag = tag_of(g, s)});
    }
  }
  proxy.Drain();
  job.Barrier();
  job.Close(comms);
}

// The plugin takes abi::kMaxRequests receives (groups, where it has them) before any send exists, and as many sends.
void CheckInFlight(Job& job) {
  Ring ring(job);
  const size_t group = std::max<size_t>(1, std::min<size_t>(job.max_receives(), 8));
  constexpr size_t kBytes = 40'000;
  const size_t messages = abi::kMaxRequests * group;
  std::vector<uint8_t> from(messages * kBytes), to(messages * kBytes);
  std::vector<void*> receives, sends;
  for (int r = 0; r < abi::kMaxRequests; ++r) {
    std::vector<Slot> slots;
    for (size_t s = 0; s < group; ++s) {
      slots.push_back({.data = to.data() + (r * group + s) * kBytes, .bytes = kBytes, .tag = static_cast<int>(s)});
    }
    void* request = nullptr;
    Check(job.net().Receive(ring.in, slots.data(), static_cast<int>(group), &request), "irecv");
    Expect(request != nullptr, "only " + std::to_string(r) + " receives in flight; NCCL has 32");
    receives.push_back(request);
  }
  job.Barrier();
  for (size_t m = 0; m < messages; ++m) {
    uint8_t* data = from.data() + m * kBytes;
    Fill(data, kBytes, job.rank(), static_cast<uint32_t>(m));
    void* request = nullptr;
    // A plugin may want its receiver's word first.
    while (request == nullptr) {
      Check(job.net().Send(ring.out, {.data = data, .bytes = kBytes, .tag = static_cast<int>(m % group)}, &request),
            "isend");
    }
    sends.push_back(request);
  }
  const auto finish = [&](std::vector<void*>& requests, size_t sizes) {
    for (void* request : requests) {
      int done = 0;
      std::vector<int> bytes(sizes);
      while (done == 0) Check(job.net().Test(request, &done, bytes.data()), "test");
      for (const int one : bytes) Expect(one == static_cast<int>(kBytes), "a size reported by test");
    }
  };
  finish(receives, group);
  finish(sends, 1);
  for (size_t m = 0; m < messages; ++m) {
    Expect(IsFilled(to.data() + m * kBytes, kBytes, ring.previous, static_cast<uint32_t>(m)), "wrong bytes");
  }
  job.Barrier();
  job.Close(ring.comms);
}

}  // namespace paceline::nccl_test
