// The C++ API and several threads: those of a program that wait for one context, and those of the context itself.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "paceline/context.h"
#include "tests/unit/api/context_options.h"

namespace paceline::api {
namespace {

using namespace std::chrono_literals;

// Two threads wait, each for one message, and the first does not come back to see to the second.
class ContextWait : public ::testing::TestWithParam<uint32_t> {};

TEST_P(ContextWait, EveryThreadThatWaitsIsWoken) {
  ContextOptions options = DefaultOptions();
  options.progress = ProgressMode::kThread;
  options.engines = GetParam();
  auto receives = Context::Create(options), sends = Context::Create(options);
  ASSERT_TRUE(receives.ok() && sends.ok());
  auto listener = receives->Listen();
  ASSERT_TRUE(listener.ok());
  auto out = sends->Connect(listener->handle());
  ASSERT_TRUE(out.ok());
  auto in = listener->WaitAccept(5s);
  ASSERT_TRUE(in.ok());
  ASSERT_TRUE(out->WaitEstablished(5s).ok());
  for (int round = 0; round < 50; ++round) {
    uint8_t to[2];
    for (uint8_t& byte : to) ASSERT_EQ(in->Receive({&byte, 1}, 0, 0, 0), PostResult::kOk);
    std::atomic<int> got{0};
    const auto take_one = [&] {
      Completion completion;
      while (receives->completions().Poll(&completion, 1) == 0) receives->Wait(3600s);
      ++got;
    };
    std::thread first(take_one), second(take_one);
    std::this_thread::sleep_for(1ms);  // both asleep, most of the time
    uint8_t byte = 1;
    ASSERT_EQ(out->Send({&byte, 1}, 0, 0), PostResult::kOk);
    while (got == 0) std::this_thread::yield();
    ASSERT_EQ(out->Send({&byte, 1}, 0, 0), PostResult::kOk);
    first.join();
    second.join();
    Completion sent;
    for (int i = 0; i < 2; ++i) {
      while (sends->completions().Poll(&sent, 1) == 0) sends->Wait(3600s);
    }
  }
}

// Each of them for the end of a connection of its own, of which another one may have been told first.
TEST_P(ContextWait, EveryThreadThatWaitsHearsOfItsConnectionsEnd) {
  ContextOptions options;
  options.lane = "udp";
  options.progress = ProgressMode::kThread;
  options.engines = GetParam();
  options.linger_ms = 10;
  auto server = Context::Create(options), client = Context::Create(options);
  ASSERT_TRUE(server.ok() && client.ok());
  auto listener = server->Listen();
  ASSERT_TRUE(listener.ok());
  constexpr auto kLong = std::chrono::seconds(10);
  std::atomic<int> in_vain{0};
  for (int round = 0; round < 20; ++round) {
    constexpr size_t kThreads = 3;
    std::array<Connection, kThreads> out, in;
    std::array<std::thread, kThreads> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      out[i] = *client->Connect(listener->handle());
      in[i] = *listener->WaitAccept(kLong);
      ASSERT_TRUE(out[i].WaitEstablished(kLong).ok());
    }
    for (size_t i = 0; i < kThreads; ++i) {
      threads[i] = std::thread([&, i] {
        while (out[i].state() != ConnectionState::kClosed) in_vain += client->Wait(kLong) ? 0 : 1;
      });
    }
    for (Connection& one : in) one.Close();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(in_vain, 0) << "waits to their time-out";
}

// An event loop that arms the descriptor takes the notice of an interrupt in, which is not for it.
TEST_P(ContextWait, AnInterruptIsNotLostToWhoArmsTheDescriptor) {
  ContextOptions options = DefaultOptions();
  options.progress = ProgressMode::kThread;
  options.engines = GetParam();
  auto context = Context::Create(options);
  ASSERT_TRUE(context.ok());
  constexpr int kRounds = 100;
  std::atomic<int> ended{0};
  std::atomic<bool> stop{false};
  std::thread loop([&] {
    for (; !stop; std::this_thread::yield()) context->completions().Arm();
  });
  std::thread waiting([&] {
    for (int i = 0; i < kRounds; ++i, ++ended) EXPECT_FALSE(context->Wait(3600s));
  });
  for (int i = 0; i < kRounds; ++i) {
    std::this_thread::sleep_for(100us);  // it is asleep, most of the time
    context->Interrupt();
    while (ended <= i) std::this_thread::yield();
  }
  waiting.join();
  stop = true;
  loop.join();
}

TEST_P(ContextWait, AnInterruptEndsOneThatSpins) {
  ContextOptions options = DefaultOptions();
  options.progress = ProgressMode::kThread;
  options.engines = GetParam();
  options.local_ranks = 1;
  options.spin_us = 3'600'000'000;
  auto context = Context::Create(options);
  ASSERT_TRUE(context.ok());
  context->Interrupt();
  EXPECT_FALSE(context->Wait(3600s));
}
INSTANTIATE_TEST_SUITE_P(Engines, ContextWait, ::testing::Values(1, 3));

// They are the program's, whose threads may have blocked them and wait for them.
TEST(ContextThreads, TakeNoSignals) {
  ContextOptions options;
  options.lane = "udp";
  options.progress = ProgressMode::kThread;
  options.engines = 2;
  sigset_t before, after;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &before), 0);
  const auto context = Context::Create(options);
  ASSERT_TRUE(context.ok());
  std::vector<uint64_t> masks;              // of signals that they block
  while (masks.size() < options.engines) {  // each soon names itself
    masks.clear();
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream status(task.path() / "status");
      std::string name, word;
      status >> word >> name;
      while (word != "SigBlk:" && status >> word) {
      }
      uint64_t mask = 0;
      if (name == "paceline" && status >> std::hex >> mask) masks.push_back(mask);
    }
  }
  for (const uint64_t mask : masks) {
    const auto blocks = [mask](int signal) { return (mask >> (signal - 1) & 1) != 0; };
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD}) EXPECT_TRUE(blocks(signal)) << signal;
    for (const int signal : {SIGSEGV, SIGPROF}) EXPECT_FALSE(blocks(signal)) << signal;
  }
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &after), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
}

}  // namespace
}  // namespace paceline::api
