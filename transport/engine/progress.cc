#include "transport/engine/progress.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <initializer_list>

#include "absl/status/status.h"
#include "transport/engine/clock.h"

namespace paceline {
namespace {

timespec ToTimespec(Duration span) {
  const int64_t nanos = std::max<int64_t>(span.nanos(), 0);
  return {.tv_sec = nanos / 1'000'000'000, .tv_nsec = nanos % 1'000'000'000};
}

// The first of these environment variables that holds a number; 1 when none does.
unsigned FirstOf(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    // SLURM writes "8(x2)": the number in front is what counts here.
    const unsigned long value = std::strtoul(text, nullptr, 10);
    if (value > 0 && value < 1'000'000) return static_cast<unsigned>(value);
  }
  return 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Progress>> Progress::Create(Engine* engine, const WaitPolicyOptions& options) {
  std::unique_ptr<Progress> progress(new Progress(engine, options));
  if (absl::Status status = progress->Open(); !status.ok()) return status;
  return progress;
}

Progress::Progress(Engine* engine, const WaitPolicyOptions& options) : engine_(engine), policy_(options) {}

Progress::~Progress() {
  for (const int fd : {timer_, event_, epoll_}) {
    if (fd >= 0) close(fd);
  }
}

absl::Status Progress::Open() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return absl::ErrnoToStatus(errno, "epoll_create1");
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ < 0) return absl::ErrnoToStatus(errno, "eventfd");
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer_ < 0) return absl::ErrnoToStatus(errno, "timerfd_create");
  const auto add = [this](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  };
  if (add(event_) != 0 || add(timer_) != 0) return absl::ErrnoToStatus(errno, "epoll_ctl");
  for (const auto& lane : engine_->lanes()) {
    const int fd = lane->wait_descriptor();
    if (fd < 0) {
      every_lane_can_wake_ = false;
    } else if (add(fd) != 0) {
      return absl::ErrnoToStatus(errno, "epoll_ctl on a lane's descriptor");
    }
  }
  now_ = next_ = MonotonicNow();
  return absl::OkStatus();
}

bool Progress::Poll() {
  if (woken_.load(std::memory_order_acquire)) DrainWake();
  slept_in_vain_ = false;
  now_ = MonotonicNow();
  return After(engine_->Poll(now_));
}

void Progress::Transmit() {
  slept_in_vain_ = false;
  now_ = MonotonicNow();
  After(engine_->Transmit(now_));
}

bool Progress::After(Time next) {
  next_ = next;
  if (!engine_->last_poll_was_busy()) return false;
  policy_.OnBusy();
  return true;
}

WaitStep Progress::PlanIdle(Time deadline) {
  if (next_ <= now_ || deadline <= now_ || woken_.load(std::memory_order_seq_cst)) return WaitStep::kSpin;
  const Time until = std::min(next_, deadline);
  const WaitStep step = policy_.OnIdle(now_, until, every_lane_can_wake_);
  if (step != WaitStep::kSleep) return step;
  if (!PrepareLanes()) return WaitStep::kSpin;
  sleep_ = until.is_never() ? Duration::Infinite() : until - now_;
  WatchWritable(engine_->blocked_on_room());
  const bool blind = !every_lane_can_wake_ || engine_->blocked_on_room();
  if (blind) sleep_ = std::min(sleep_, policy_.BlindSleep(now_));
  until_deadline_ = !blind && until < next_;
  if (timer_set_) SetTimer(Time::Never());
  return step;
}

bool Progress::CarryOut(WaitStep step) {
  slept_in_vain_ = false;
  if (step == WaitStep::kYield) sched_yield();
  if (step != WaitStep::kSleep) return false;
  epoll_event events[4];
  const timespec timeout = ToTimespec(sleep_);
  const int came = epoll_pwait2(epoll_, events, 4, sleep_.is_infinite() ? nullptr : &timeout, nullptr);
  slept_in_vain_ = came == 0 && until_deadline_;
  if (came < 0 && errno == ENOSYS) {
    // Linux before 5.11: the timer, which is among the descriptors, has the precision that epoll_wait lacks.
    SetTimer(sleep_.is_infinite() ? Time::Never() : now_ + sleep_);
    epoll_wait(epoll_, events, 4, -1);
  }
  return true;
}

bool Progress::MayGoOnSleeping() {
  if (!slept_in_vain_ || woken_.load(std::memory_order_acquire)) return false;
  now_ = MonotonicNow();
  return next_ > now_;
}

bool Progress::PrepareLanes() {
  return std::all_of(engine_->lanes().begin(), engine_->lanes().end(),
                     [](const auto& lane) { return lane->PrepareToWait(); });
}

bool Progress::Arm() {
  if (next_ <= now_ || woken_.load(std::memory_order_acquire) || !PrepareLanes()) return false;
  const Time latest = every_lane_can_wake_ && !engine_->blocked_on_room()
                          ? next_
                          : std::min(next_, now_ + policy_.options().most_blind_sleep);
  WatchWritable(engine_->blocked_on_room());
  SetTimer(latest);
  return true;
}

void Progress::Wake() {
  if (woken_.exchange(true, std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof(one));
}

void Progress::DrainWake() {
  // The flag first: a Wake between the two lines may have its write eaten, but its flag stays, and Idle looks at that.
  woken_.store(false, std::memory_order_seq_cst);
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(event_, &count, sizeof(count));
}

void Progress::WatchWritable(bool on) {
  if (on == watching_writable_) return;
  watching_writable_ = on;
  for (const auto& lane : engine_->lanes()) {
    const int fd = lane->wait_descriptor();
    if (fd < 0) continue;
    epoll_event event{};
    event.events = EPOLLIN | (on ? EPOLLOUT : 0u);
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
  }
}

void Progress::SetTimer(Time at) {
  itimerspec spec{};
  timer_set_ = !at.is_never();
  if (timer_set_) {
    spec.it_value = {.tv_sec = at.nanos() / 1'000'000'000, .tv_nsec = at.nanos() % 1'000'000'000};
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

unsigned AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1u, static_cast<unsigned>(CPU_COUNT(&set)));
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<unsigned>(online) : 1;
}

unsigned LocalRanksFromEnvironment() {
  return FirstOf({"PACELINE_LOCAL_RANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE",
                  "SLURM_TASKS_PER_NODE"});
}

unsigned JobRanksFromEnvironment() {
  return FirstOf({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_STEP_NUM_TASKS"});
}

}  // namespace paceline
