// The plugin as NCCL has it: loaded by path, called through its tables, both ends in this process, but for peers that
// are lost. One test per rule that is easy to get wrong; tests/interop/nccl has what else takes several processes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <utility>

#include "tests/unit/api/nccl/plugin_fixture.h"

// OpenSSL's own handler of exit() frees what it keeps of each thread without the lock that the threads take, which are
// not told of it; nothing of that is looked at any more.
extern "C" const char* __tsan_default_suppressions() { return "race:libcrypto.so\n"; }  // NOLINT: a fixed name

namespace paceline::nccl_test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> profiled;
Result Profile(void** event, abi::ProfilerEvent type, void* parent, int64_t, void*) {
  profiled.push_back((type == abi::ProfilerEvent::kStart ? "start " : "stop ") +
                     std::string(static_cast<const char*>(parent == nullptr ? *event : parent)));
  if (type == abi::ProfilerEvent::kStart) *event = parent;
  return Result::kSuccess;
}

class PluginTest : public PluginFixture, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    for (const char* name : {"PACELINE_TRAFFIC_CLASS", "PACELINE_BIND", "PACELINE_LANE", "PACELINE_GPU_STAGING"}) {
      unsetenv(name);
    }
    setenv("PACELINE_HCA", "=lo", 1);
    profiled.clear();
    Start(GetParam(), Profile);
  }
};

class VirtualDeviceTest : public PluginTest {};  // from v9
class CommunicatorTest : public PluginTest {};   // from v11

TEST_P(PluginTest, StatesWhatItCanDo) {
  abi::PropertiesV12 properties{};
  ASSERT_EQ(net_->Properties(0, &properties), Result::kSuccess);
  EXPECT_STREQ(properties.name, "lo");
  EXPECT_EQ(properties.pointer_support, abi::kPointerHost);
  EXPECT_EQ(properties.max_receives, 8);
  if (GetParam() >= 8) {
    EXPECT_EQ(properties.registration_is_global, 1);
  }
  if (GetParam() >= 9) {
    EXPECT_LE(properties.max_p2p_bytes, size_t{1} << 30) << "test reports sizes as int";
    EXPECT_EQ(properties.force_flush, 0);
    EXPECT_EQ(properties.virtual_device.count, 1);
  }
  if (GetParam() >= 12) {
    EXPECT_EQ(properties.rail, -1);
    EXPECT_EQ(properties.plane, -1);
  }
  EXPECT_EQ(net_->Properties(1, &properties), Result::kInvalidArgument);
  EXPECT_THAT(LastLog(), HasSubstr("there is no device 1"));
}

TEST_P(PluginTest, EqualTagsOfAGroupTakeItsSlotsInOrder) {
  Connect();
  uint32_t to[6] = {}, from[6] = {10, 11, 12, 13, 14, 15};
  const auto slot = [&](int i, int tag) { return Slot{.data = &to[i], .bytes = 4, .tag = tag}; };
  void* first = Receive({slot(0, 7), slot(1, 7), slot(2, 9)});
  void* second = Receive({slot(3, 9), slot(4, 7), slot(5, 7)});
  std::vector<void*> sends;
  for (const auto& [value, tag] : {std::pair{0, 9}, {1, 7}, {2, 7}, {3, 7}, {4, 9}, {5, 7}}) {
    sends.push_back(Send(&from[value], 4, tag));
  }
  int bytes[4] = {-1, -1, -1, -5};
  EXPECT_EQ(Await(first, bytes), Result::kSuccess);
  EXPECT_THAT(bytes, ::testing::ElementsAre(4, 4, 4, -5)) << "one done, three sizes";
  EXPECT_EQ(Await(second), Result::kSuccess);
  for (void* send : sends) EXPECT_EQ(Await(send), Result::kSuccess);
  EXPECT_THAT(to, ::testing::ElementsAre(11, 12, 10, 14, 13, 15));
}

TEST_P(PluginTest, WithoutRoomTheRequestIsNullAndLaterItIsNot) {
  Connect();
  uint32_t value = 5, to[2000] = {};
  std::vector<void*> receives;
  while (receives.size() < 2000) {
    void* request = Receive({{.data = &to[receives.size()], .bytes = 4}});
    if (request == nullptr) break;
    receives.push_back(request);
  }
  ASSERT_LT(receives.size(), 2000u) << "requests have a bound";
  ASSERT_GE(receives.size(), 32u) << "NCCL has so many in flight";
  EXPECT_EQ(Await(Send(&value, 4, 0)), Result::kSuccess);
  EXPECT_EQ(Await(receives.front()), Result::kSuccess);
  EXPECT_NE(Receive({{.data = &to[1999], .bytes = 4}}), nullptr);
}

TEST_P(PluginTest, ASendIsNotDoneBeforeItsReceive) {
  Connect();
  for (const size_t bytes : {1, 0}) {
    uint8_t value = 5, to = 0;
    void* send = Send(&value, bytes, 0);
    for (int i = 0; i < 20'000; ++i) {
      int done = -1;
      ASSERT_EQ(net_->Test(send, &done, nullptr), Result::kSuccess);
      ASSERT_EQ(done, 0) << "its rank might end now";
    }
    int got = -1;
    void* receive = Receive({{.data = &to, .bytes = 1}});
    EXPECT_EQ(Await(send), Result::kSuccess);
    EXPECT_EQ(Await(receive, &got), Result::kSuccess);
    EXPECT_EQ(got, static_cast<int>(bytes));
    EXPECT_EQ(to, bytes == 0 ? 0 : 5);
  }
}

// A receive of another tag that stands ready lets sends come; they are not taken for it, nor for done.
TEST_P(PluginTest, ASendIsNotDoneBecauseAnotherReceiveIsPosted) {
  Connect();
  std::vector<uint8_t> from(1 << 20, 5), to(1 << 20), other(1 << 20);
  void* other_receive = Receive({{.data = other.data(), .bytes = other.size(), .tag = 7}});
  void* send = Send(from.data(), from.size(), 1);
  for (int i = 0; i < 20'000; ++i) {
    int done = -1;
    ASSERT_EQ(net_->Test(send, &done, nullptr), Result::kSuccess);
    ASSERT_EQ(done, 0) << "its rank might end now";
  }
  void* receive = Receive({{.data = to.data(), .bytes = to.size(), .tag = 1}});
  EXPECT_EQ(Await(send), Result::kSuccess);
  EXPECT_EQ(Await(receive), Result::kSuccess);
  EXPECT_EQ(to, from);
  void* other_send = Send(from.data(), from.size(), 7);
  EXPECT_EQ(Await(other_receive), Result::kSuccess);
  EXPECT_EQ(Await(other_send), Result::kSuccess);
}

TEST_P(PluginTest, ALongerSendIsAnErrorAndWritesNothingBehindTheBuffer) {
  Connect();
  std::vector<uint8_t> from(100'000, 1), to(100'000, 9);
  void* receive = Receive({{.data = to.data(), .bytes = 50'000}});
  Send(from.data(), from.size(), 0);
  EXPECT_EQ(Await(receive), Result::kRemoteError);
  EXPECT_THAT(LastLog(), HasSubstr("longer than its receive"));
  EXPECT_EQ(to[50'000], 9);
}

TEST_P(PluginTest, NothingIsLeftToFlush) {
  Connect();
  uint32_t from = 3, to = 0;
  void* receive = Receive({{.data = &to, .bytes = 4}});
  void* send = Send(&from, 4, 0);
  EXPECT_EQ(Await(receive), Result::kSuccess);
  EXPECT_EQ(to, 3u);
  const Slot slot{.data = &to, .bytes = 4};
  void* request = &request;
  EXPECT_EQ(net_->Flush(receive_, &slot, 1, &request), Result::kSuccess);
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(Await(send), Result::kSuccess);
}

TEST_P(PluginTest, RegisteredMemoryIsGoodForAnyCommAndItsBoundsAreKept) {
  Connect();
  std::vector<uint8_t> buffer(1000);
  void* memory = nullptr;
  ASSERT_EQ(net_->Register(send_, buffer.data(), buffer.size(), abi::kPointerHost, &memory), Result::kSuccess);
  Slot slot{.data = buffer.data() + 500, .bytes = 500, .memory = memory};
  void* request = nullptr;
  EXPECT_EQ(net_->Receive(receive_, &slot, 1, &request), Result::kSuccess);
  EXPECT_EQ(Await(Send(buffer.data(), 500, 0)), Result::kSuccess);
  EXPECT_EQ(Await(request), Result::kSuccess);
  slot.bytes = 501;
  EXPECT_EQ(net_->Receive(receive_, &slot, 1, &request), Result::kInvalidArgument);
  EXPECT_THAT(LastLog(), HasSubstr("501 bytes"));
  EXPECT_EQ(net_->Deregister(receive_, memory), Result::kSuccess);
}

TEST_P(PluginTest, MemoryOfAGpuIsRefusedWhereItIsNotOffered) {
  Connect();
  int value = 0;
  void* memory = &memory;
  EXPECT_EQ(net_->Register(send_, &value, 4, abi::kPointerCuda, &memory), Result::kInvalidUsage);
  EXPECT_EQ(memory, nullptr);
  EXPECT_THAT(LastLog(), HasSubstr("PACELINE_GPU_STAGING=1"));
}

TEST_P(PluginTest, TheDescriptorOfADmaBufIsNotKept) {
  Connect();
  int value = 0, fds[2];
  ASSERT_EQ(pipe(fds), 0);
  void* memory = &memory;
  EXPECT_EQ(net_->RegisterDmaBuf(send_, &value, 4, abi::kPointerCuda, 0, fds[1], &memory), Result::kInvalidUsage);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(fcntl(fds[1], F_GETFD) & ~FD_CLOEXEC, 0) << "NCCL closes it, not the plugin";
  close(fds[1]);
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  char byte;
  EXPECT_EQ(read(fds[0], &byte, 1), 0) << "no copy of it is open";
  close(fds[0]);
}

TEST_P(PluginTest, ACommWhosePeerIsGoneAnswersWithAnError) {
  Connect();
  uint32_t from = 3, to = 0;
  void* receive = Receive({{.data = &to, .bytes = 4}});
  void* send = Send(&from, 4, 0);
  EXPECT_EQ(Await(receive), Result::kSuccess);
  EXPECT_EQ(Await(send), Result::kSuccess);
  receive = Receive({{.data = &to, .bytes = 4}});
  EXPECT_EQ(net_->CloseSend(std::exchange(send_, nullptr)), Result::kSuccess);
  EXPECT_EQ(Await(receive), Result::kRemoteError) << "nothing comes any more, though the device has another comm";
  EXPECT_THAT(LastLog(), HasSubstr("closed by the peer"));
  const Slot slot{.data = &to, .bytes = 4};
  EXPECT_EQ(net_->Receive(receive_, &slot, 1, &receive), Result::kRemoteError);
  EXPECT_THAT(LastLog(), HasSubstr("the connection is lost: closed by the peer"));
}

TEST_P(PluginTest, ASendWhosePeerIsGoneAnswersWithAnError) {
  Connect();
  uint32_t from = 3;
  void* send = Send(&from, 4, 0);
  EXPECT_EQ(net_->CloseReceive(std::exchange(receive_, nullptr)), Result::kSuccess);
  EXPECT_EQ(Await(send), Result::kRemoteError);
  // The send may have been refused before the close has come.
  const Result again = net_->Send(send_, {.data = &from, .bytes = 4}, &send);
  EXPECT_EQ(again == Result::kSuccess ? Await(send) : again, Result::kRemoteError);
}

TEST_P(PluginTest, AGroupFailsWithTheFirstOfItsSlots) {
  Connect();
  std::vector<uint8_t> from(1000, 1), to(1000);
  void* receive =
      Receive({{.data = to.data(), .bytes = 100, .tag = 1}, {.data = to.data() + 500, .bytes = 500, .tag = 2}});
  Send(from.data(), 200, 1);
  EXPECT_EQ(Await(receive), Result::kRemoteError) << "the other slot may never be filled";
  EXPECT_THAT(LastLog(), HasSubstr("longer than its receive"));
  EXPECT_EQ(Await(Send(from.data(), 500, 2)), Result::kSuccess);
  int room = 0;
  while (room < 2000 && Receive({{.data = to.data(), .bytes = 4}}) != nullptr) ++room;
  EXPECT_EQ(room, 256) << "the group has given its request back, once";
}

TEST_P(PluginTest, AHandleThatIsNoneIsRefused) {
  uint8_t handle[abi::kHandleBytes] = {1, 2, 3};
  EXPECT_EQ(net_->Connect(communicator_, 0, abi::kUndefined, handle, &send_), Result::kInvalidArgument);
  EXPECT_THAT(LastLog(), HasSubstr("not a Paceline handle"));
}

TEST_P(PluginTest, EventsOfTheProfilerBeginAndEnd) {
  Connect();
  uint32_t from = 3, to[2] = {};
  char parents[3][8] = {"send", "slot0", "slot1"};
  void* receive = Receive({{.data = &to[0], .bytes = 4, .tag = 1, .parent = parents[1]},
                           {.data = &to[1], .bytes = 4, .tag = 2, .parent = parents[2]}});
  void* send = Send(&from, 4, 1, parents[0]);
  void* other = Send(&from, 4, 2);
  for (void* request : {send, other, receive}) EXPECT_EQ(Await(request), Result::kSuccess);
  if (net_->has_profiler()) {
    EXPECT_THAT(profiled, ::testing::ElementsAre("start slot0", "start slot1", "start send", "stop send", "stop slot0",
                                                 "stop slot1"));
  } else {
    EXPECT_TRUE(profiled.empty());
  }
}

TEST_P(VirtualDeviceTest, SeveralDevicesMakeOne) {
  int device = -1;
  ASSERT_EQ(net_->MakeVirtualDevice(&device, 0, 1), Result::kSuccess);
  EXPECT_EQ(device, 1);
  Connect(device);
  uint32_t from = 3, to = 0;
  void* receive = Receive({{.data = &to, .bytes = 4}});
  EXPECT_EQ(Await(Send(&from, 4, 0)), Result::kSuccess);
  EXPECT_EQ(Await(receive), Result::kSuccess);
  EXPECT_EQ(to, 3u);
}

// NCCL_NET_PLUGIN_REF_COUNT=1 keeps the plugin, and NCCL what it knows of it.
TEST_P(CommunicatorTest, VirtualDevicesAreThereForTheNextCommunicatorUntilDevicesAreCounted) {
  int device = -1, count = -1;
  ASSERT_EQ(net_->MakeVirtualDevice(&device, 0, 1), Result::kSuccess);
  for (const bool counted : {false, true}) {
    ASSERT_EQ(net_->Finalize(communicator_), Result::kSuccess);
    ASSERT_EQ(net_->Init(&communicator_, 2, abi::kUndefined, Record, Profile), Result::kSuccess);
    if (counted) {
      ASSERT_EQ(net_->Devices(&count), Result::kSuccess);
      EXPECT_EQ(count, 1) << "NCCL makes its virtual devices anew";
    }
    abi::PropertiesV12 properties{};
    EXPECT_EQ(net_->Properties(device, &properties), counted ? Result::kInvalidArgument : Result::kSuccess);
  }
  ASSERT_EQ(net_->MakeVirtualDevice(&device, 0, 1), Result::kSuccess);
  EXPECT_EQ(device, 1);
  ASSERT_EQ(net_->Devices(&count), Result::kSuccess);
  EXPECT_EQ(count, 2);
}

TEST_P(CommunicatorTest, FinalizeClosesWhatWasLeftOpenAndOtherCommunicatorsGoOn) {
  void* other = nullptr;
  ASSERT_EQ(net_->Init(&other, 2, 40, Record, Profile), Result::kSuccess);
  EXPECT_NE(other, communicator_);
  void* const first = std::exchange(communicator_, other);
  Connect();
  communicator_ = first;
  void *left_send = std::exchange(send_, nullptr), *left_receive = std::exchange(receive_, nullptr);
  EXPECT_TRUE(left_send != nullptr && left_receive != nullptr);
  Connect();
  EXPECT_EQ(net_->Finalize(other), Result::kSuccess);
  EXPECT_THAT(LastLog(), HasSubstr("2 comms"));
  EXPECT_EQ(net_->Finalize(other), Result::kInvalidArgument) << "once only";
  uint32_t from = 3, to = 0;
  void* receive = Receive({{.data = &to, .bytes = 4}});
  EXPECT_EQ(Await(Send(&from, 4, 0)), Result::kSuccess);
  EXPECT_EQ(Await(receive), Result::kSuccess);
}

// The thread sanitizer finds what they would share without a lock.
TEST_P(CommunicatorTest, CommunicatorsComeAndGoWhileAnotherThreadConnectsAndRegisters) {
  Connect();
  std::atomic<bool> stop{false};
  std::thread others([&] {
    for (uint64_t id = 2; !stop || id < 10; ++id) {
      void* other = nullptr;
      ASSERT_EQ(net_->Init(&other, id, abi::kUndefined, Record, id % 2 == 0 ? nullptr : Profile), Result::kSuccess);
      ASSERT_EQ(net_->Finalize(other), Result::kSuccess);
    }
  });
  for (int i = 0; i < 20; ++i) {
    Close();
    Connect();
    uint8_t byte = 0;
    void* memory = nullptr;
    EXPECT_EQ(net_->Register(send_, &byte, 1, abi::kPointerHost, &memory), Result::kSuccess);
    EXPECT_EQ(net_->Deregister(send_, memory), Result::kSuccess);
  }
  stop = true;
  others.join();
}

INSTANTIATE_TEST_SUITE_P(Versions, PluginTest, ::testing::Range(kOldestVersion, kNewestVersion + 1));
INSTANTIATE_TEST_SUITE_P(Versions, VirtualDeviceTest, ::testing::Range(9, kNewestVersion + 1));
INSTANTIATE_TEST_SUITE_P(Versions, CommunicatorTest, ::testing::Range(11, kNewestVersion + 1));

class LostPeerTest : public PluginFixture {
 protected:
  void SetUp() override { Set("PACELINE_HCA", "=lo"); }
};

TEST_F(LostPeerTest, WhatWaitsForRoomEndsWithItsConnection) {
  Set("PACELINE_MAX_COMPLETIONS", "2");
  Start(0, nullptr);
  Connect();
  uint32_t to[3] = {};
  std::vector<void*> receives;
  for (uint32_t& one : to) receives.push_back(Receive({{.data = &one, .bytes = 4}}));
  EXPECT_EQ(net_->CloseSend(std::exchange(send_, nullptr)), Result::kSuccess);
  for (void* receive : receives) ASSERT_EQ(Await(receive), Result::kRemoteError);
}

TEST_F(LostPeerTest, ACommThatIsClosedBeforeItsSendFoundRoomIsAborted) {
  Set("PACELINE_MAX_COMPLETIONS", "2");
  Start(0, nullptr);
  Connect();
  uint32_t to[2] = {}, from = 3;
  std::vector<void*> receives;
  for (uint32_t& one : to) receives.push_back(Receive({{.data = &one, .bytes = 4}}));
  Send(&from, 4, 0);
  EXPECT_EQ(net_->CloseSend(std::exchange(send_, nullptr)), Result::kSuccess);
  for (void* receive : receives) ASSERT_EQ(Await(receive), Result::kRemoteError);
  EXPECT_THAT(LastLog(), HasSubstr("aborted by the peer"));
}

TEST_F(LostPeerTest, WhereSendsMayBeAheadOfTheirReceivesAClosedCommKeepsThem) {
  Set("PACELINE_MATCHED_SENDS", "0");
  Start(0, nullptr);
  Connect();
  uint32_t from = 3, to = 0;
  EXPECT_EQ(Await(Send(&from, 4, 0)), Result::kSuccess);
  EXPECT_EQ(net_->CloseSend(std::exchange(send_, nullptr)), Result::kSuccess);
  usleep(100'000);  // the keeper would say a close
  void* receive = Receive({{.data = &to, .bytes = 4}});
  ASSERT_NE(receive, nullptr) << LastLog();
  EXPECT_EQ(Await(receive), Result::kSuccess);
  EXPECT_EQ(to, 3u);
}

// As fork(); `end`: of a pair of sockets, of which the other process has the other.
pid_t ForkJoined(int* end) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
  const pid_t peer = fork();
  *end = ends[peer == 0 ? 1 : 0];
  close(ends[peer == 0 ? 0 : 1]);
  return peer;
}

// A process that ends without a word.
class LostProcessTest : public LostPeerTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(LostProcessTest, WhatIsUnderWayEndsWithAnError) {
  Set("PACELINE_LANE", GetParam());
  Set("PACELINE_PEER_TIMEOUT_MS", "1000");
  int end = -1;
  const pid_t peer = ForkJoined(&end);
  ASSERT_GE(peer, 0);
  Start(0, nullptr);
  uint8_t handle[abi::kHandleBytes] = {};
  void* listener = nullptr;
  EXPECT_EQ(net_->Listen(communicator_, 0, handle, &listener), Result::kSuccess);
  EXPECT_EQ(write(end, handle, sizeof(handle)), ssize_t{sizeof(handle)});
  EXPECT_EQ(read(end, handle, sizeof(handle)), ssize_t{sizeof(handle)});
  Connect(0, listener, handle);
  char byte = 0;
  if (peer == 0) {
    [[maybe_unused]] const ssize_t told = read(end, &byte, 1);
    _exit(HasFailure() ? 1 : 0);
  }
  std::vector<uint8_t> from(1 << 20), to(1 << 20);
  void* receive = Receive({{.data = to.data(), .bytes = to.size()}});
  void* send = Send(from.data(), from.size(), 0);
  EXPECT_EQ(write(end, &byte, 1), 1);
  int status = -1;
  EXPECT_EQ(waitpid(peer, &status, 0), peer);
  EXPECT_EQ(status, 0);
  close(end);
  for (void* request : {receive, send}) {
    EXPECT_EQ(Await(request), Result::kRemoteError);
    EXPECT_THAT(LastLog(), HasSubstr("peer lost"));
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, LostProcessTest, ::testing::Values("udp", "shm"));

// A process that ends with its comms open, as ranks do whose program says no goodbye. Its threads go on until it is
// gone, here as long as a handler of exit() that comes after those of the libraries waits for us.
int last_handler_end = -1;
Net* last_handler_net = nullptr;
void* last_handler_communicator = nullptr;
void LastHandler() {
  uint8_t handle[abi::kHandleBytes];
  void* listener = nullptr;
  if (last_handler_net->Listen(last_handler_communicator, 0, handle, &listener) != Result::kSuccess) _exit(2);
  char byte = 0;
  [[maybe_unused]] ssize_t told = write(last_handler_end, &byte, 1);
  told = read(last_handler_end, &byte, 1);
}

TEST_F(LostPeerTest, AProcessThatEndsWithOpenCommsEndsAsItMeansTo) {
  char key[] = "/tmp/paceline_nccl_key.XXXXXX";
  const int file = mkstemp(key);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, std::string(64, 'a').data(), 64), 64);
  close(file);
  Set("PACELINE_KEY_FILE", key);
  int end = -1;
  const pid_t peer = ForkJoined(&end);
  ASSERT_GE(peer, 0);
  if (peer == 0) {
    last_handler_end = end;
    std::atexit(LastHandler);
  }
  Start(0, nullptr);
  uint8_t handle[abi::kHandleBytes] = {};
  void* listener = nullptr;
  EXPECT_EQ(net_->Listen(communicator_, 0, handle, &listener), Result::kSuccess);
  if (peer == 0) {
    EXPECT_EQ(write(end, handle, sizeof(handle)), ssize_t{sizeof(handle)});
    while (receive_ == nullptr) net_->Accept(listener, &receive_);
    uint32_t to = 0;
    Receive({{.data = &to, .bytes = 4}});
    last_handler_net = net_.get();
    last_handler_communicator = communicator_;
    std::exit(HasFailure() ? 1 : 0);
  }
  EXPECT_EQ(read(end, handle, sizeof(handle)), ssize_t{sizeof(handle)});
  while (send_ == nullptr) {
    ASSERT_EQ(net_->Connect(communicator_, 0, abi::kUndefined, handle, &send_), Result::kSuccess);
  }
  char byte = 0;
  EXPECT_EQ(read(end, &byte, 1), 1) << "its libraries have done what they do at exit()";
  uint32_t from = 3;
  EXPECT_EQ(Await(Send(&from, 4, 0)), Result::kSuccess) << LastLog();
  void* another = nullptr;
  Result refused = Result::kSuccess;
  while (refused == Result::kSuccess && another == nullptr) {
    refused = net_->Connect(communicator_, 0, abi::kUndefined, handle, &another);
  }
  EXPECT_EQ(refused, Result::kRemoteError) << "keys are not made any more";
  EXPECT_EQ(write(end, &byte, 1), 1);
  int status = -1;
  EXPECT_EQ(waitpid(peer, &status, 0), peer);
  EXPECT_EQ(status, 0);
  close(end);
  unlink(key);
  EXPECT_EQ(net_->CloseListen(listener), Result::kSuccess);
}

TEST(PluginStartTest, WrongVariablesAreNamed) {
  auto net = Net::Load(PACELINE_NCCL_PLUGIN, 0);
  ASSERT_TRUE(net.ok());
  EXPECT_EQ((*net)->version(), 12);
  for (const auto& [name, value] : {std::pair{"PACELINE_HCA", "nothing_is_called_so"},
                                    {"PACELINE_GPU_STAGING", "maybe"},
                                    {"PACELINE_TRAFFIC_CLASS", "256"}}) {
    setenv("PACELINE_HCA", "=lo", 1);
    setenv(name, value, 1);
    void* communicator = nullptr;
    EXPECT_NE((*net)->Init(&communicator, 1, abi::kUndefined, Record, nullptr), Result::kSuccess);
    EXPECT_THAT(LastLog(), HasSubstr(std::string(name) + "=" + value));
    unsetenv(name);
  }
}

TEST(PluginStartTest, AWrongLaneIsRefusedAtOnce) {
  const auto net = Net::Load(PACELINE_NCCL_PLUGIN, 0);
  ASSERT_TRUE(net.ok());
  setenv("PACELINE_LANE", "ib", 1);
  void* communicator = nullptr;
  EXPECT_NE((*net)->Init(&communicator, 1, abi::kUndefined, Record, nullptr), Result::kSuccess);
  EXPECT_THAT(LastLog(), HasSubstr("lane \"ib\" is unknown; usable here: auto, udp"));
  unsetenv("PACELINE_LANE");
}

}  // namespace
}  // namespace paceline::nccl_test
