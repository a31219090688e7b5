// The plugin as NCCL has it: loaded by path, called through its tables, both ends in this process.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/interop/nccl/net.h"

namespace paceline::nccl_test {

using abi::Result;

inline std::mutex log_mutex;
inline std::vector<std::string> logged;  // level and text, as NCCL is told

inline void Record(abi::LogLevel level, unsigned long, const char*, int, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const std::lock_guard lock(log_mutex);
  logged.push_back(std::to_string(static_cast<int>(level)) + " " + text);
}

inline std::string LastLog() {
  const std::lock_guard lock(log_mutex);
  return logged.empty() ? "" : logged.back();
}

// Whether one of the texts so far holds this.
inline bool WasLogged(const std::string& text) {
  const std::lock_guard lock(log_mutex);
  return std::any_of(logged.begin(), logged.end(),
                     [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

inline size_t Threads() {
  size_t count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(tasks);
  return count;
}

// Threads that were joined may be listed a moment longer: until no more than `wanted` are, or for some seconds.
inline size_t ThreadsOnceEnded(size_t wanted) {
  for (int look = 0; look < 5000 && Threads() > wanted; ++look) usleep(1000);
  return Threads();
}

class PluginFixture : public ::testing::Test {
 protected:
  ~PluginFixture() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  // In the environment, until the test ends.
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  // The plugin of this version, or the newest it has (0), initialised.
  void Start(int version, abi::Profiler profiler) {
    setenv("PACELINE_COUNTERS", "0", 1);
    // With the first one the thread sanitizer starts one of its own, which stays.
    pid_t first = 0;
    std::thread([&first] { first = gettid(); }).join();
    const std::string task = "/proc/self/task/" + std::to_string(first);
    for (int look = 0; look < 5000 && access(task.c_str(), F_OK) == 0; ++look) usleep(1000);
    threads_before_ = Threads();
    auto loaded = Net::Load(PACELINE_NCCL_PLUGIN, version);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    net_ = *std::move(loaded);
    ASSERT_EQ(net_->Init(&communicator_, 1, abi::kUndefined, Record, profiler), Result::kSuccess);
  }
  void TearDown() override {
    if (net_ == nullptr) return;
    Close();
    EXPECT_EQ(net_->Finalize(communicator_), Result::kSuccess);
    EXPECT_EQ(ThreadsOnceEnded(threads_before_), threads_before_)
        << "all threads are joined before the library is unloaded";
  }

  void Close() {
    if (send_ != nullptr) {
      EXPECT_EQ(net_->CloseSend(send_), Result::kSuccess);
    }
    if (receive_ != nullptr) {
      EXPECT_EQ(net_->CloseReceive(receive_), Result::kSuccess);
    }
    send_ = receive_ = nullptr;
  }

  // Both comms on one device, or the receiving one on another, `listening`.
  void Connect(int device = 0) { Connect(device, device); }
  void Connect(int device, int listening) {
    uint8_t handle[abi::kHandleBytes];
    void* listener = nullptr;
    ASSERT_EQ(net_->Listen(communicator_, listening, handle, &listener), Result::kSuccess);
    void* early = &early;
    ASSERT_EQ(net_->Accept(listener, &early), Result::kSuccess);
    EXPECT_EQ(early, nullptr) << "nobody has connected";
    Connect(device, listener, handle);
  }
  // A comm to `handle`, and one from `listener`, which is closed.
  void Connect(int device, void* listener, const uint8_t* handle) {
    for (int i = 0; i < 1'000'000 && (send_ == nullptr || receive_ == nullptr); ++i) {
      // Each time with a fresh copy of the handle: what is remembered is not its place in memory.
      std::vector<uint8_t> copy(handle, handle + abi::kHandleBytes);
      if (send_ == nullptr) {
        ASSERT_EQ(net_->Connect(communicator_, device, abi::kUndefined, copy.data(), &send_), Result::kSuccess);
      }
      if (receive_ == nullptr) {
        ASSERT_EQ(net_->Accept(listener, &receive_), Result::kSuccess);
      }
      sched_yield();
    }
    ASSERT_TRUE(send_ != nullptr && receive_ != nullptr);
    EXPECT_EQ(net_->CloseListen(listener), Result::kSuccess);
  }

  void* Send(void* data, size_t bytes, int tag, void* parent = nullptr) {
    void* request = nullptr;
    EXPECT_EQ(net_->Send(send_, {.data = data, .bytes = bytes, .tag = tag, .parent = parent}, &request),
              Result::kSuccess);
    return request;
  }
  void* Receive(const std::vector<Slot>& slots) {
    void* request = nullptr;
    EXPECT_EQ(net_->Receive(receive_, slots.data(), static_cast<int>(slots.size()), &request), Result::kSuccess);
    return request;
  }
  // Result of the test that said done.
  Result Await(void* request, int* bytes = nullptr) {
    for (int i = 0; i < 10'000'000; ++i) {
      int done = -1;
      const Result result = net_->Test(request, &done, bytes);
      EXPECT_TRUE(done == 0 || done == 1) << "test always writes done";
      if (done == 1 || result != Result::kSuccess) return result;
      sched_yield();
    }
    return Result::kInternalError;
  }

  std::unique_ptr<Net> net_;
  void* communicator_ = nullptr;
  void *send_ = nullptr, *receive_ = nullptr;
  size_t threads_before_ = 0;

 private:
  std::vector<std::string> set_;
};

}  // namespace paceline::nccl_test
