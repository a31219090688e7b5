#include "tests/interop/nccl/proxy.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace paceline::nccl_test {
namespace {

constexpr int kUntouched = -77;

}  // namespace

void Fail(const std::string& what, const char* file, int line) {
  std::fprintf(stderr, "failed: %s (%s:%d)\n", what.c_str(), file, line);
  std::_Exit(1);
}

void Proxy::Send(void* comm, const Slot& slot, Done done) {
  queues_[comm].operations.push_back({.is_send = true, .slots = {slot}, .done = std::move(done), .flush = false});
}

void Proxy::Receive(void* comm, std::vector<Slot> slots, Done done, bool flush) {
  queues_[comm].operations.push_back(
      {.is_send = false, .slots = std::move(slots), .done = std::move(done), .flush = flush});
}

bool Proxy::PostNext(void* comm, Queue& queue) {
  if (queue.posted == queue.operations.size() || queue.posted >= in_flight_) return false;
  Operation& next = queue.operations[queue.posted];
  next.request = &next;  // a plugin that writes nothing is found out
  if (next.is_send) {
    Check(net_->Send(comm, next.slots.front(), &next.request), "isend");
  } else {
    Check(net_->Receive(comm, next.slots.data(), static_cast<int>(next.slots.size()), &next.request), "irecv");
  }
  Expect(next.request != &next, "a post has not written its request");
  if (next.request == nullptr) return false;
  ++queue.posted;
  return true;
}

bool Proxy::TestOldest(void* comm, Queue& queue) {
  if (queue.posted == 0) return false;
  Operation& oldest = queue.operations.front();
  const size_t count = oldest.slots.size();
  int done = kUntouched;
  std::vector<int> bytes(count + 1, kUntouched);
  Check(net_->Test(oldest.request, &done, oldest.flushing ? nullptr : bytes.data()), "test");
  Expect(done == 0 || done == 1, "test has not written done");
  Expect(bytes[count] == kUntouched, "test has written more sizes than the request has");
  if (done == 0) return false;
  if (!oldest.flushing) {
    bytes.pop_back();
    for (size_t i = 0; i < count; ++i) {
      Expect(bytes[i] >= 0 && static_cast<size_t>(bytes[i]) <= oldest.slots[i].bytes,
             "a size of " + std::to_string(bytes[i]) + " for a buffer of " + std::to_string(oldest.slots[i].bytes));
    }
    oldest.bytes = bytes;
    if (oldest.flush) {
      oldest.flushing = true;
      Check(net_->Flush(comm, oldest.slots.data(), static_cast<int>(count), &oldest.request), "iflush");
      if (oldest.request != nullptr) return true;
    }
  }
  const Operation finished = std::move(oldest);
  queue.operations.pop_front();
  --queue.posted;
  if (finished.done) finished.done(finished.bytes);
  return true;
}

bool Proxy::Progress() {
  bool moved = false;
  for (auto at = queues_.begin(); at != queues_.end();) {
    void* comm = at->first;
    moved |= PostNext(comm, at->second);
    moved |= TestOldest(comm, at->second);
    at = at->second.operations.empty() ? queues_.erase(at) : std::next(at);
  }
  if (!moved) sched_yield();
  return moved;
}

void Proxy::RunUntil(const std::function<bool()>& done) {
  while (!done()) Progress();
}

}  // namespace paceline::nccl_test
