// Progress of an engine of a context, by the caller or by its thread, and waiting for it. What it has, connections and
// memory, is in context_engine.cc.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "api/cpp/src/context_engine.h"
#include "api/cpp/src/convert.h"
#include "api/cpp/src/counter_list.h"
#include "api/cpp/src/engine_options.h"
#include "transport/engine/clock.h"

namespace paceline::api {
namespace {

constexpr Duration kPublishEvery = Duration::Millis(20);
// What arrived is answered by the next pass, and a caller that found nothing may give up its core: it goes on while
// data move, for at most so many passes.
constexpr int kPollPasses = 8;

}  // namespace

bool ContextEngine::Pass() {
  const bool busy = progress_->Poll();
  AfterPass();
  return busy;
}

void ContextEngine::Transmit() {
  progress_->Transmit();
  AfterPass();
}

Time ContextEngine::AfterPass() {
  if (TakeBrought()) progress_->Kick();  // a refusal leaves with the next pass
  DrainEvents();
  load_.store(connections_.size(), std::memory_order_relaxed);
  if (threaded_ && (FillRing() || event_seen_)) NotifyWaiters();
  if (page_ == nullptr) return Time::Never();
  page_is_old_ |= engine_->last_poll_was_busy();
  if (!page_is_old_) return Time::Never();
  if (progress_->now() - published_ >= kPublishEvery) {
    PublishCounters();
    return Time::Never();
  }
  return published_ + kPublishEvery;
}

void ContextEngine::NotifyWaiters() {
  ready_.store(true, std::memory_order_release);
  if (!armed_) return;
  armed_ = false;
  Notify();
}

bool ContextEngine::FillRing() {
  if (ring_count_ == 0) {
    ring_next_ = 0;
    ring_count_ = endpoint().PollCompletions(ring_);
  }
  return ring_count_ > 0;
}

size_t ContextEngine::PollCompletions(Completion* out, size_t room) {
  const auto take = [&]() -> size_t {
    size_t count = 0;
    while (count < room && FillRing()) {
      const size_t some = std::min(room - count, ring_count_);
      for (size_t i = 0; i < some; ++i) out[count + i] = FromCore(ring_[ring_next_ + i]);
      ring_next_ += some;
      ring_count_ -= some;
      count += some;
    }
    return count;
  };
  if (threaded_) {
    if (!ready_.load(std::memory_order_acquire)) return 0;
    return Locked(false, [&] {
      const size_t count = take();
      if (count < room && !event_seen_) ready_.store(false, std::memory_order_release);
      return count;
    });
  }
  size_t count = take();
  bool moved = true;
  for (int pass = 0; count == 0 && moved && pass < kPollPasses; ++pass) {
    moved = Pass();
    count = take();
  }
  return count;
}

bool ContextEngine::IdleOnce(Time deadline) {
  const Time wish = page_is_old_ ? published_ + kPublishEvery : Time::Never();
  progress_->Idle(std::min(deadline, wish));
  return wish < deadline || !progress_->slept_in_vain();
}

bool ContextEngine::WaitUntil(const std::function<bool()>& done, std::chrono::nanoseconds timeout) {
  const Time deadline = MonotonicNow() + Duration::Nanos(timeout.count());
  while (true) {
    if (Locked(false, done)) return true;
    if (threaded_) {
      if (MonotonicNow() >= deadline) return false;
      usleep(50);  // connection set-up only: no need to be quick
    } else {
      const bool busy = Pass();
      if (done()) return true;  // also by a timer, which moves nothing
      if (progress_->now() >= deadline) return false;
      if (!busy) IdleOnce(deadline);
    }
  }
}

bool ContextEngine::WaitManually(std::chrono::nanoseconds timeout) {
  const Time deadline = MonotonicNow() + Duration::Nanos(timeout.count());
  if (TakeReady()) return true;
  // One wait after the other, and nothing in between: the sleep looks at the lanes.
  for (bool look = timeout.count() <= 0 || !progress_->MayGoOnSleeping();; look = true) {
    const bool busy = look && Pass();
    if (TakeReady()) return true;
    // After the pass, which takes in the wake that comes with an interrupt.
    if (TakeInterrupt()) return false;
    if (progress_->now() >= deadline || (!busy && !IdleOnce(deadline))) return false;
  }
}

bool ContextEngine::JoinWait(bool* joined) {
  return Locked(false, [&] {
    const bool there = !ArmUnlessReady();
    if (there) {
      EndWait(joined);
    } else if (!std::exchange(*joined, true)) {
      ++waiters_;
    }
    return there;
  });
}

void ContextEngine::LeaveWait(bool* joined) {
  Locked(false, [&] { EndWait(joined); });
}

// This thread may have taken in a notice that was for all: the next one looks for itself, and arms again.
void ContextEngine::EndWait(bool* joined) {
  if (std::exchange(*joined, false)) --waiters_;
  if (waiters_ > 0 || armed_by_caller_) Notify();
}

void ContextEngine::Interrupt() {
  interrupted_.store(true);
  if (!threaded_) {
    progress_->Wake();
    return;
  }
  Notify();
}

bool ContextEngine::Arm() {
  if (!threaded_) {
    return !TakeReady() && progress_->Arm();
  }
  return Locked(false, [&] {
    armed_by_caller_ = ArmUnlessReady();
    // It has taken in a notice that was for them, too, or that of an interrupt.
    if (waiters_ > 0 && (!armed_by_caller_ || interrupted())) Notify();
    return armed_by_caller_;
  });
}

bool ContextEngine::TakeReady() {
  if (FillRing()) return true;
  const bool unseen = std::exchange(event_seen_, false);
  return (threaded_ && TakeNewsForThread()) || unseen;
}

uint64_t ContextEngine::NextNumber() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Events that another thread has taken note of may be those that this one waits for. What it knows of the engines that
// it has waited for last; of others it takes all for news, and looks once in vain.
bool ContextEngine::TakeNewsForThread() {
  struct Known {
    uint64_t engine = 0;  // number_
    uint64_t events = 0;  // events_seen_
  };
  static thread_local std::array<Known, 2 * kMostEngines> known;
  static thread_local size_t oldest = 0;
  auto mine = std::find_if(known.begin(), known.end(), [this](const Known& one) { return one.engine == number_; });
  if (mine == known.end()) {
    mine = known.begin() + static_cast<std::ptrdiff_t>(oldest++ % known.size());
    *mine = {.engine = number_};
  }
  return std::exchange(mine->events, events_seen_) != events_seen_;
}

bool ContextEngine::ArmUnlessReady() {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(notify_, &count, sizeof(count));
  armed_ = !TakeReady();
  if (armed_) ready_.store(false, std::memory_order_release);
  return armed_;
}

void ContextEngine::Notify() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(notify_, &one, sizeof(one));
}

void ContextEngine::PublishCounters() {
  size_t record = 0;
  ForEachCounterValue(*engine_, impaired_, [&](uint64_t value) { page_->Set(record++, value); });
  page_->Stamp();
  published_ = progress_->now();
  page_is_old_ = false;
}

}  // namespace paceline::api
