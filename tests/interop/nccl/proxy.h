// What NCCL's proxy thread does with a plugin: operations of a comm are posted in order, again where the plugin had no
// room, at most so many at a time; the oldest is tested until it is done; all comms in turn, and the core is given away
// when nothing moved.
//
// Anything that a plugin must not do ends the process with a message and exit status 1.
//
// Thread rule: one thread. Buffers live until their operation is done.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/interop/nccl/net.h"

namespace paceline::nccl_test {

[[noreturn]] void Fail(const std::string& what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

inline void Check(abi::Result result, const std::string& what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (result != abi::Result::kSuccess) {
    Fail(what + " answered " + std::to_string(static_cast<int>(result)), file, line);
  }
}
inline void Expect(bool condition, const std::string& what, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  if (!condition) Fail(what, file, line);
}

class Proxy {
 public:
  using Done = std::function<void(const std::vector<int>& bytes)>;

  explicit Proxy(Net* net, size_t in_flight = abi::kMaxRequests) : net_(net), in_flight_(in_flight) {}

  void Send(void* comm, const Slot& slot, Done done = {});
  // `slots`: 1 to maxRecvs. `flush`: as for GPU memory, a flush is asked for and awaited after the receive.
  void Receive(void* comm, std::vector<Slot> slots, Done done = {}, bool flush = false);

  // One round over all comms; true: something moved.
  bool Progress();
  // Until `done` answers true.
  void RunUntil(const std::function<bool()>& done);
  void Drain() {
    RunUntil([this] { return queues_.empty(); });
  }

 private:
  struct Operation {
    bool is_send;
    std::vector<Slot> slots;
    Done done;
    bool flush;
    void* request = nullptr;
    bool flushing = false;
    std::vector<int> bytes;
  };
  struct Queue {
    std::deque<Operation> operations;
    size_t posted = 0;
  };
  bool PostNext(void* comm, Queue& queue);
  bool TestOldest(void* comm, Queue& queue);

  Net* const net_;
  const size_t in_flight_;
  std::map<void*, Queue> queues_;
};

}  // namespace paceline::nccl_test
