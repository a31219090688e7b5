// Comms that come and go.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "tests/interop/nccl/job.h"

namespace paceline::nccl_test {
namespace {

// Comms from every even rank to the next one; ranks in pairs, the last of an odd number is left out.
bool Pairs(uint32_t world, uint32_t from, uint32_t to) { return from % 2 == 0 && to == from + 1 && to < world; }

Comms ConnectPairs(Job& job) {
  return job.Connect([&](uint32_t from, uint32_t to) { return Pairs(job.world(), from, to); });
}

}  // namespace

void CheckManyComms(Job& job) {
  constexpr int kComms = 24;
  std::vector<Comms> all;
  for (int i = 0; i < kComms; ++i) all.push_back(job.ConnectAll());
  std::vector<std::vector<uint32_t>> from(kComms, std::vector<uint32_t>(job.world()));
  std::vector<std::vector<uint32_t>> to = from;
  Proxy proxy(&job.net());
  for (int i = 0; i < kComms; ++i) {
    for (uint32_t peer = 0; peer < job.world(); ++peer) {
      if (peer == job.rank()) continue;
      from[i][peer] = static_cast<uint32_t>(i) * 1000 + job.rank();
      proxy.Receive(all[i].receive[peer], {{.data = &to[i][peer], .bytes = 4}});
      proxy.Send(all[i].send[peer], {.data = &from[i][peer], .bytes = 4});
    }
  }
  proxy.Drain();
  for (int i = 0; i < kComms; ++i) {
    for (uint32_t peer = 0; peer < job.world(); ++peer) {
      Expect(peer == job.rank() || to[i][peer] == static_cast<uint32_t>(i) * 1000 + peer, "another comm's message");
    }
  }
  // Each rank closes in an order of its own.
  std::vector<std::pair<void*, bool>> open;
  for (const Comms& comms : all) {
    for (void* comm : comms.send) open.emplace_back(comm, true);
    for (void* comm : comms.receive) open.emplace_back(comm, false);
  }
  std::shuffle(open.begin(), open.end(), std::mt19937(job.rank() + 1));
  for (const auto& [comm, is_send] : open) {
    if (comm == nullptr) continue;
    Check(is_send ? job.net().CloseSend(comm) : job.net().CloseReceive(comm), "close");
  }
  job.Barrier();
}

// A sender closes as soon as its sends are done, while its receiver has yet to ask for them. Short messages too, which
// a network may have put by.
void CheckLateReceiver(Job& job) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{900}, size_t{70000}}) {
    Comms comms = ConnectPairs(job);
    std::vector<uint8_t> buffer(bytes + 1);
    Proxy proxy(&job.net());
    if (job.rank() % 2 == 0 && job.rank() + 1 < job.world()) {
      Fill(buffer.data(), bytes, job.rank(), 9);
      proxy.Send(comms.send[job.rank() + 1], {.data = buffer.data(), .bytes = bytes, .tag = 1});
      proxy.Drain();
      job.Close(comms);
    } else if (job.rank() % 2 == 1) {
      usleep(30'000);  // late, as a rank may be; nothing is asserted of the time
      int got = -1;
      proxy.Receive(comms.receive[job.rank() - 1], {{.data = buffer.data(), .bytes = bytes, .tag = 1}},
                    [&](const std::vector<int>& sizes) { got = sizes[0]; });
      proxy.Drain();
      Expect(got == static_cast<int>(bytes) && IsFilled(buffer.data(), bytes, job.rank() - 1, 9),
             "a message whose sender has closed since");
      job.Close(comms);
    }
    job.Barrier();
  }
}

// A rank that has posted its receives and calls nothing does not hold up its sender. Not every plugin keeps this.
void CheckIdleRank(Job& job) {
  Comms comms = ConnectPairs(job);
  std::vector<uint8_t> buffer(3'000'000);
  Proxy proxy(&job.net());
  const bool sender = job.rank() % 2 == 0 && job.rank() + 1 < job.world();
  void* request = nullptr;
  if (job.rank() % 2 == 1) {
    const Slot slot{.data = buffer.data(), .bytes = buffer.size(), .tag = 1};
    Check(job.net().Receive(comms.receive[job.rank() - 1], &slot, 1, &request), "irecv");
    Expect(request != nullptr, "the first receive found no room");
  } else if (sender) {
    Fill(buffer.data(), buffer.size(), job.rank(), 4);
    proxy.Send(comms.send[job.rank() + 1], {.data = buffer.data(), .bytes = buffer.size(), .tag = 1});
    proxy.Drain();
  }
  job.Barrier();  // the receiver waits here until the sender has its completion
  if (request != nullptr) {
    int done = 0;
    while (done == 0) Check(job.net().Test(request, &done, nullptr), "test");
    Expect(IsFilled(buffer.data(), buffer.size(), job.rank() - 1, 4), "wrong bytes");
  }
  job.Barrier();
  job.Close(comms);
}

// As when a communicator is aborted: requests are under way, nobody tests them, buffers go away right after the close.
void CheckUnfinished(Job& job) {
  for (int round = 0; round < 4; ++round) {
    Comms comms = ConnectPairs(job);
    const bool sends = job.rank() % 2 == 0 && job.rank() + 1 < job.world();
    auto buffer = std::make_unique<std::vector<uint8_t>>(1 << 20);
    if (job.rank() % 2 == 1 && round != 1) {
      for (int i = 0; i < 4; ++i) {
        const Slot slot{.data = buffer->data() + i * 1000, .bytes = round == 0 ? size_t{1000} : buffer->size() - 4000};
        void* request = nullptr;
        job.net().Receive(comms.receive[job.rank() - 1], &slot, 1,
                          &request);  // the peer may have closed: an error is right
      }
    } else if (sends && round != 0) {
      const Slot slot{.data = buffer->data(), .bytes = buffer->size() - 4000};
      void* request = nullptr;
      job.net().Send(comms.send[job.rank() + 1], slot, &request);
      int done = 0;
      if (request != nullptr && round == 2) job.net().Test(request, &done, nullptr);  // the peer may have closed
    }
    job.Close(comms);
    buffer.reset();
  }
  job.Barrier();
}

// NCCL's service thread opens and closes comms while its progress thread moves data.
void CheckThreads(Job& job) {
  Comms busy = job.ConnectAll();
  std::atomic<bool> stop{false};
  std::thread traffic([&] {
    Proxy proxy(&job.net());
    std::vector<std::vector<uint8_t>> from(job.world(), std::vector<uint8_t>(50'000));
    std::vector<std::vector<uint8_t>> to = from;
    for (uint32_t round = 0; round < 20; ++round) {
      for (uint32_t peer = 0; peer < job.world(); ++peer) {
        if (peer == job.rank()) continue;
        Fill(from[peer].data(), from[peer].size(), job.rank(), round);
        proxy.Receive(busy.receive[peer], {{.data = to[peer].data(), .bytes = to[peer].size()}});
        proxy.Send(busy.send[peer], {.data = from[peer].data(), .bytes = from[peer].size()});
      }
      proxy.Drain();
      for (uint32_t peer = 0; peer < job.world(); ++peer) {
        Expect(peer == job.rank() || IsFilled(to[peer].data(), to[peer].size(), peer, round), "wrong bytes");
      }
    }
    stop = true;
  });
  for (int round = 0; round < 5; ++round) {
    Comms comms = job.ConnectAll();
    job.Close(comms);
  }
  traffic.join();
  Expect(stop, "the traffic has ended");
  job.Barrier();
  job.Close(busy);
}

}  // namespace paceline::nccl_test
