#include "tests/interop/nccl/job.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace paceline::nccl_test {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr uint8_t kGuard = 0xa5;

uint8_t ByteOf(size_t at, uint32_t rank, uint32_t message) {
  return static_cast<uint8_t>((at * 31 + at / 251) ^ (rank * 101 + message * 7 + 13));
}

}  // namespace

void Job::Barrier() { Expect(rendezvous_->Barrier().ok(), "another rank has ended"); }

std::vector<std::string> Job::AllGather(const std::string& own) {
  auto all = rendezvous_->AllGather(own);
  if (!all.ok()) Fail("another rank has ended: " + std::string(all.status().message()));
  return *std::move(all);
}

std::string Job::Listen(void** listener) {
  std::vector<uint8_t> handle(abi::kHandleBytes + kGuardBytes, kGuard);
  Check(net_->Listen(communicator_, device_, handle.data(), listener), "listen");
  Expect(*listener != nullptr, "listen gave no listener");
  Expect(std::all_of(handle.begin() + abi::kHandleBytes, handle.end(), [](uint8_t byte) { return byte == kGuard; }),
         "listen has written behind the 128 bytes of its handle");
  return std::string(handle.begin(), handle.begin() + abi::kHandleBytes);
}

Comms Job::Connect(const std::function<bool(uint32_t from, uint32_t to)>& wanted) {
  const uint32_t me = rank();
  Comms comms{.send = std::vector<void*>(world()), .receive = std::vector<void*>(world())};
  std::vector<void*> listeners(world());
  std::string handles;  // one per rank, for those that connect to this one
  for (uint32_t peer = 0; peer < world(); ++peer) {
    handles += wanted(peer, me) ? Listen(&listeners[peer]) : std::string(abi::kHandleBytes, '\0');
  }
  std::vector<std::string> all = AllGather(handles);
  bool complete = false;
  while (!complete) {
    complete = true;
    for (uint32_t peer = 0; peer < world(); ++peer) {
      if (wanted(me, peer) && comms.send[peer] == nullptr) {
        char* handle = all[peer].data() + me * abi::kHandleBytes;
        Check(net_->Connect(communicator_, device_, abi::kUndefined, handle, &comms.send[peer]), "connect");
        complete &= comms.send[peer] != nullptr;
      }
      if (wanted(peer, me) && comms.receive[peer] == nullptr) {
        Check(net_->Accept(listeners[peer], &comms.receive[peer]), "accept");
        complete &= comms.receive[peer] != nullptr;
      }
    }
    sched_yield();
  }
  for (void* listener : listeners) {
    if (listener != nullptr) Check(net_->CloseListen(listener), "closeListen");
  }
  Barrier();  // as NCCL does when all transports are up: nobody closes what a peer is still connecting
  return comms;
}

void Job::Close(Comms& comms) {
  for (void* comm : comms.send) {
    if (comm != nullptr) Check(net_->CloseSend(comm), "closeSend");
  }
  for (void* comm : comms.receive) {
    if (comm != nullptr) Check(net_->CloseReceive(comm), "closeRecv");
  }
}

void Fill(void* data, size_t bytes, uint32_t rank, uint32_t message) {
  for (size_t i = 0; i < bytes; ++i) static_cast<uint8_t*>(data)[i] = ByteOf(i, rank, message);
}

bool IsFilled(const void* data, size_t bytes, uint32_t rank, uint32_t message) {
  for (size_t i = 0; i < bytes; ++i) {
    if (static_cast<const uint8_t*>(data)[i] != ByteOf(i, rank, message)) return false;
  }
  return true;
}

}  // namespace paceline::nccl_test
