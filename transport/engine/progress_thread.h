// A thread that makes progress for an engine by itself. All access to the engine and its endpoint from elsewhere goes
// through Locked(), which keeps the thread out for that long and wakes it afterwards when it sleeps.
//
// Thread rule: Locked() from any thread, also several at once; construction and destruction from one.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "transport/engine/progress.h"

namespace paceline {

class ProgressThread {
 public:
  // `after_pass` runs on the thread, with the lock held, after each pass; it returns when it wants the next pass at the
  // latest (Time::Never(): no wish). `progress` outlives this object.
  ProgressThread(Progress* progress, std::function<Time()> after_pass);
  // Stops and joins.
  ~ProgressThread();

  // Runs `function` while the thread is kept out. `posted`: the engine has something new to look at.
  template <typename Function>
  auto Locked(bool posted, Function&& function) {
    Guard guard(this, posted);
    return function();
  }

 private:
  class Guard {
   public:
    Guard(ProgressThread* owner, bool posted);
    ~Guard();

   private:
    ProgressThread* owner_;
    bool posted_;
  };
  void Run();

  Progress* progress_;
  std::function<Time()> after_pass_;
  std::mutex mutex_;
  std::atomic<int> waiting_{0};  // callers at the lock: the thread lets them go first
  std::atomic<bool> stop_{false};
  bool sleeping_ = false;  // under the lock: the thread is in, or about to enter, a sleep
  std::thread thread_;
};

}  // namespace paceline
