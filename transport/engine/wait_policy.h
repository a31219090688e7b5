// What to do when a poll pass found nothing: spin, yield or sleep. Pure decisions, no system calls: engine/progress.h
// carries them out.
//
// Waking another core costs about 17 us, so a rank that has a core of its own spins for a little while first. With more
// ranks than cores spinning would cost the others a scheduler tick (4 ms) per hop, so such a rank yields at once, a few
// times, and then sleeps. Who cannot be woken goes on looking between yields for a while, as what comes would wait for
// the end of the sleep; others who want the core get it. Nobody sleeps for less than `min_sleep`: the timer would be
// late, and paced sending with it.
//
// Thread rule: one thread at a time.
#pragma once

#include <algorithm>

#include "transport/base/time.h"

namespace paceline {

struct WaitPolicyOptions {
  unsigned local_ranks = 1;                   // processes of this job on this machine
  unsigned allowed_cores = 1;                 // cores that this process may use
  Duration spin = Duration::Micros(20);       // longest time without work before sleeping, where cores suffice
  unsigned yields = 3;                        // passes with a yield before sleeping, where they do not
  Duration min_sleep = Duration::Micros(60);  // a timer due sooner is waited for awake
  // Of a lane that cannot wake us, or is full and cannot say when it is no longer.
  Duration least_blind_sleep = Duration::Micros(10), most_blind_sleep = Duration::Micros(200);

  // More ranks than cores.
  bool crowded() const { return local_ranks > allowed_cores; }
};

enum class WaitStep : uint8_t { kSpin, kYield, kSleep };

class WaitPolicy {
 public:
  explicit WaitPolicy(const WaitPolicyOptions& options) : options_(options) {}

  // The last pass moved something.
  void OnBusy() { idle_ = false; }

  // The last pass moved nothing; `next` is when the engine wants to be polled again at the latest. `can_be_woken`: by
  // whatever arrives.
  WaitStep OnIdle(Time now, Time next, bool can_be_woken) {
    if (!idle_) {
      idle_ = true;
      idle_since_ = now;
      yields_ = 0;
    }
    const bool timer_soon = !next.is_never() && next - now < options_.min_sleep;
    if (crowded()) {
      if (timer_soon) return WaitStep::kYield;
      if (yields_ >= options_.yields) return WaitStep::kSleep;
      ++yields_;
      return WaitStep::kYield;
    }
    if (timer_soon || now - idle_since_ < options_.spin) return WaitStep::kSpin;
    return !can_be_woken && now - idle_since_ < options_.most_blind_sleep ? WaitStep::kYield : WaitStep::kSleep;
  }

  // The longest sleep where nobody can wake us: as long as there has been nothing, so that what has come meanwhile
  // waits no longer than that, and long idleness costs few looks.
  Duration BlindSleep(Time now) const {
    return std::clamp(idle_ ? now - idle_since_ : Duration(), options_.least_blind_sleep, options_.most_blind_sleep);
  }

  bool crowded() const { return options_.crowded(); }
  const WaitPolicyOptions& options() const { return options_; }

 private:
  WaitPolicyOptions options_;
  bool idle_ = false;
  Time idle_since_;
  unsigned yields_ = 0;
};

}  // namespace paceline
