// The ranks of one run: how they find each other, their comms, and what every check needs.
//
// Thread rule: one thread per rank, but for what a check says of its own threads.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/interop/nccl/net.h"
#include "tests/interop/nccl/proxy.h"
#include "tools/perf/rendezvous.h"

namespace paceline::nccl_test {

// Comms of this rank, by peer; [own rank] is nullptr unless asked for.
struct Comms {
  std::vector<void*> send, receive;
};

class Job {
 public:
  Job(Net* net, tools::Rendezvous* rendezvous, void* communicator, int device, size_t max_receives)
      : net_(net), rendezvous_(rendezvous), communicator_(communicator), device_(device), max_receives_(max_receives) {}

  Net& net() { return *net_; }
  uint32_t rank() const { return rendezvous_->rank(); }
  uint32_t world() const { return rendezvous_->world(); }
  int device() const { return device_; }
  size_t max_receives() const { return max_receives_; }
  void* communicator() const { return communicator_; }
  // Of the messages that CheckRate sends.
  const std::vector<size_t>& rate_bytes() const { return rate_bytes_; }
  void set_rate_bytes(std::vector<size_t> bytes) { rate_bytes_ = std::move(bytes); }
  void Barrier();
  std::vector<std::string> AllGather(const std::string& own);

  // A comm each way between every two ranks that `wanted` (from, to) names, the same question on all ranks.
  Comms Connect(const std::function<bool(uint32_t from, uint32_t to)>& wanted);
  Comms ConnectAll() {
    return Connect([](uint32_t from, uint32_t to) { return from != to; });
  }
  void Close(Comms& comms);

  // A listener's handle, with a look at whether the plugin stays within its 128 bytes.
  std::string Listen(void** listener);

 private:
  Net* const net_;
  tools::Rendezvous* const rendezvous_;
  void* const communicator_;
  const int device_;
  const size_t max_receives_;
  std::vector<size_t> rate_bytes_;
};

// Bytes that a reader can check: of message `message`, for `rank`.
void Fill(void* data, size_t bytes, uint32_t rank, uint32_t message);
bool IsFilled(const void* data, size_t bytes, uint32_t rank, uint32_t message);

// The checks. Each is run by all ranks together and leaves no comm open.
void CheckSizes(Job& job);         // 0, 1, odd and large sizes, sends shorter than their receives
void CheckGroups(Job& job);        // grouped receives, equal tags, tags in another order
void CheckInFlight(Job& job);      // as many requests as NCCL has
void CheckManyComms(Job& job);     // many comms, closed in any order
void CheckLateReceiver(Job& job);  // a sender that is done closes at once
void CheckIdleRank(Job& job);      // peers go on while a rank calls nothing
void CheckUnfinished(Job& job);    // comms closed with requests under way
void CheckThreads(Job& job);       // comms come and go in one thread while another moves data
void CheckRing(Job& job);          // all-reduce round the ring
void CheckTree(Job& job);          // all-reduce up and down a binary tree
void CheckAllToAll(Job& job);
// With the CUDA driver that the loader finds; not run unless named.
void CheckGpu(Job& job);       // device memory at either side
void CheckGpuAhead(Job& job);  // more posted ahead, each way, than staging has pinned memory for
// Measures, and checks nothing; not run unless named.
void CheckRate(Job& job);

}  // namespace paceline::nccl_test
