#include "transport/core/tx/class_recovery.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr uint32_t kMaxDoublings = 6;
constexpr uint32_t kProbesBeforeDoubling = 12;
constexpr uint32_t kMaxProbes = 20;  // of which each waits twice as long as the one before
// A pause of the process or a leap of the clock may make any round trip look long.
constexpr Duration kLongestTimeout = Duration::Seconds(2);
// Round trips without a late arrival after which the lateness that is reckoned with is halved.
constexpr int64_t kLatenessRounds = 64;
constexpr int64_t kDistrustRounds = 16;  // first, after a wrong verdict by path order; doubles with each further one
constexpr Duration kLongestDistrust = Duration::Seconds(60);

}  // namespace

void ClassRecovery::OnSent(uint64_t psn, uint64_t count, Time now) {
  if (outstanding_ == 0) {
    scan_ = psn;
    last_progress_ = now;
    if (backoff_ == 0) {  // after a time-out only an acknowledgement ends the back-off
      probes_ = questions_ = 0;
      silent_since_ = now;
    }
  }
  outstanding_ += count;
}

Duration ClassRecovery::OnProgress(Time now) {
  const bool was_lost = questions_ > 1 || (questions_ == 1 && now - asked_at_ < rtt_.smoothed() * 2);
  const Duration silence = was_lost ? Duration() : now - last_progress_;
  last_progress_ = silent_since_ = now;
  probes_ = backoff_ = questions_ = 0;
  if (now >= lateness_fades_at_) {
    for (Duration* learned : {&lateness_, &pause_}) *learned = *learned < rtt_.least() / 8 ? Duration() : *learned / 2;
    LetLatenessFade(now);
  }
  return silence;
}

void ClassRecovery::LetLatenessFade(Time now) {
  const Duration learned = std::max(lateness_, pause_);
  lateness_fades_at_ = learned > Duration() ? now + (rtt_.smoothed() + learned) * kLatenessRounds : Time::Never();
}

void ClassRecovery::OnLateArrival(Time sent_at, LossCause cause, const RecoveryLimits& limits, Time now) {
  const Duration lateness = (newest_arrived_sent_at_ - sent_at) * 9 / 8;
  lateness_ = std::min(std::max(lateness_, lateness), Timeout(limits));
  if (cause == LossCause::kTimeout) pause_ = std::min(std::max(pause_, (now - silent_since_) * 9 / 8), kLongestTimeout);
  LetLatenessFade(now);
  if (cause != LossCause::kPathGap || now < trust_path_order_from_ - distrust_ / 2) return;
  distrust_ = std::min(std::max(distrust_ * 2, rtt_.smoothed() * kDistrustRounds), kLongestDistrust);
  trust_path_order_from_ = now + distrust_;
}

Duration ClassRecovery::ReorderWindow() const {
  return std::max(std::min(rtt_.least() + rtt_.variation(), rtt_.smoothed() * 2), lateness_);
}

Duration ClassRecovery::Timeout(const RecoveryLimits& limits) const {
  return std::max(rtt_.smoothed() + rtt_.variation() * 4, limits.min_timeout) + limits.max_ack_delay;
}

Duration ClassRecovery::ProbeDelay(Duration ack_delay, const RecoveryLimits& limits) const {
  const Duration usual = std::min(limits.usual_silence * 5 / 4, Timeout(limits));
  return std::max({rtt_.smoothed() * 2, usual, limits.min_probe}) + ack_delay;
}

Duration ClassRecovery::Backoff(Duration delay) const {
  return std::min(delay * (int64_t{1} << std::min(backoff_, kMaxDoublings)), kLongestTimeout);
}

Duration ClassRecovery::NextTimeout(const RecoveryLimits& limits) const {
  return Backoff(std::max(Timeout(limits), rtt_.measured() ? Duration() : limits.first_timeout));
}

// The questions go on for as long as the time-out is away, each by another path: what is lost by chance, or on a path
// that is dead, is heard of soon. In back-off each waits twice as long as the one before, and so do those after the
// first few while no round trip is known.
Duration ClassRecovery::NextQuestion(Duration probe, const RecoveryLimits& limits) const {
  const auto after = [this, probe](uint32_t probes) {
    if (in_backoff()) return probe * (int64_t{1} << std::min(probes, kMaxProbes));
    const uint32_t first = rtt_.measured() ? probes : std::min(probes, kProbesBeforeDoubling);
    return probe * ((int64_t{first} * (first + 1) / 2 + 1) << std::min(probes - first, kMaxProbes));
  };
  const bool soon = after(probes_) + probe <= NextTimeout(limits);  // so that the answer may come before
  return probes_ < kProbesBeforeTimeout || soon ? after(probes_) : Duration();
}

Time ClassRecovery::TimeoutAt(Duration ack_delay, const RecoveryLimits& limits) const {
  if (outstanding_ == 0) return Time::Never();
  const Duration probe = ProbeDelay(ack_delay, limits);
  const Duration timeout = std::min(std::max(NextTimeout(limits), probe * 4), kLongestTimeout);
  if (limits.others_arrive && !in_backoff()) {
    const Duration usual = std::max(rtt_.smoothed() + rtt_.variation() * 4, pause_);
    return silent_since_ + std::min(usual + ack_delay + limits.delay_error, timeout);
  }
  const Duration question = NextQuestion(probe, limits);
  return last_progress_ + (question > Duration() ? std::min(question, kLongestTimeout) : timeout);
}

bool ClassRecovery::HandleTimeout(Duration ack_delay, const RecoveryLimits& limits, Time now) {
  ++questions_;
  asked_at_ = now;
  const bool alone = limits.others_arrive && !in_backoff();
  if (!alone && NextQuestion(ProbeDelay(ack_delay, limits), limits) > Duration()) {
    ++probes_;
    return true;
  }
  ++backoff_;
  probes_ = 0;
  last_progress_ = now;
  return false;
}

}  // namespace paceline
