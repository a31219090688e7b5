#include "transport/engine/progress_thread.h"

#include <sched.h>
#include <sys/prctl.h>

#include <utility>

#include "transport/engine/signals_kept_out.h"

namespace paceline {
namespace {

constexpr int kTurnsOfCallers = 100;  // between two passes

}  // namespace

ProgressThread::ProgressThread(Progress* progress, std::function<Time()> after_pass)
    : progress_(progress), after_pass_(std::move(after_pass)) {
  const SignalsKeptOut here;
  thread_ = std::thread([this] { Run(); });
}

ProgressThread::~ProgressThread() {
  stop_.store(true, std::memory_order_release);
  progress_->Wake();
  thread_.join();
}

ProgressThread::Guard::Guard(ProgressThread* owner, bool posted) : owner_(owner), posted_(posted) {
  owner_->waiting_.fetch_add(1, std::memory_order_relaxed);
  owner_->mutex_.lock();
  owner_->waiting_.fetch_sub(1, std::memory_order_relaxed);
}

ProgressThread::Guard::~Guard() {
  const bool wake = posted_ && std::exchange(owner_->sleeping_, false);
  owner_->mutex_.unlock();
  if (wake) owner_->progress_->Wake();
}

void ProgressThread::Run() {
  prctl(PR_SET_NAME, "paceline");
  prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds: paced sending wants its timers on time
  while (!stop_.load(std::memory_order_acquire)) {
    WaitStep step = WaitStep::kSpin;
    {
      std::lock_guard lock(mutex_);
      sleeping_ = false;
      const bool busy = progress_->Poll();
      const Time deadline = after_pass_();
      if (!busy) step = progress_->PlanIdle(deadline);
      // Set before the lock is released: whoever posts after this pass sees it and wakes us.
      sleeping_ = step == WaitStep::kSleep;
    }
    // A mutex is not fair: without this the thread would take it again before a waiting caller gets to run. Callers
    // that never leave off must not keep it from its passes, though.
    for (int turn = 0; turn < kTurnsOfCallers && waiting_.load(std::memory_order_relaxed) > 0; ++turn) sched_yield();
    // The pass may have taken in the wake that came with the order to stop.
    if (!stop_.load(std::memory_order_acquire)) progress_->CarryOut(step);
  }
}

}  // namespace paceline
