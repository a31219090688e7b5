// When packets of one traffic class that left through one local port are to be asked for, and when they count as lost.
// A network may send packets of one class ahead of another's (short ones before long ones), and ports differ in delay,
// so an acknowledgement is evidence only about its own class and port: each has its own round-trip time, its own RACK
// evidence and its own timers. Which packets these are is the sender's business; this object sees times and counts.
//
// RACK and tail probes as RFC 8985, time-outs as RFC 6298, both without a congestion reaction of their own. Different
// from RFC 8985: the reordering window follows the lateness that was measured on packets which arrived after their
// verdict, not a count of such mistakes.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/congestion_control.h"
#include "transport/base/time.h"
#include "transport/core/tx/rtt.h"

namespace paceline {

struct RecoveryLimits {
  Duration min_timeout;    // least retransmission time-out
  Duration first_timeout;  // the same until a round trip has been measured
  Duration min_probe;      // least time before a tail probe
  Duration max_ack_delay;  // the peer's acknowledgements wait this long at most
  Duration usual_silence;  // the peer's pauses: a shorter one is no reason to ask
  // What was sent a round trip after the last news by other ports has arrived: the peer is there and not at rest, and
  // this port alone is silent, but for what its hosts may add to a delay.
  bool others_arrive = false;
  Duration delay_error;
};

class ClassRecovery {
 public:
  static constexpr uint32_t kTrialPackets = 32;
  static constexpr uint32_t kProbesBeforeTimeout = 2;  // the first

  // `next_psn`: of the first packet that it may be told of.
  ClassRecovery(const RttEstimator& rtt, uint64_t next_psn) : rtt_(rtt), scan_(next_psn) {}

  // ---- facts
  void OnSent(uint64_t psn, uint64_t count, Time now);
  // They are acknowledged, found lost, or no longer wanted.
  void OnResolved(uint64_t count) { outstanding_ -= count; }
  // A packet has arrived that took the path `entropy`.
  void OnArrived(Time sent_at, uint16_t entropy) {
    if (sent_at <= newest_arrived_sent_at_) return;
    newest_arrived_sent_at_ = sent_at;
    newest_arrived_entropy_ = entropy;
  }
  void OnRttSample(Duration rtt, Time now) { rtt_.OnSample(rtt, now); }
  // An acknowledgement brought news of this class. Returns how long the peer had been silent of its own accord; zero:
  // packets were lost, as the news came within two round trips of a question or after several.
  Duration OnProgress(Time now);
  // A packet sent at `sent_at` has arrived after it was found lost because of `cause`.
  void OnLateArrival(Time sent_at, LossCause cause, const RecoveryLimits& limits, Time now);
  // The header of a packet has arrived without its payload: the way is open.
  void OnTrimmed(Time now) { last_progress_ = now; }
  // The peer takes packets of this class, but has no room for what they carry.
  void OnNotReady(Time now) { silent_since_ = now; }

  // ---- verdicts
  // A packet sent before this moment, and not acknowledged, is lost if it is of this class, or of one that the network
  // sends no later.
  Time LostBefore() const { return newest_arrived_sent_at_ - ReorderWindow(); }
  Time newest_arrived_sent_at() const { return newest_arrived_sent_at_; }
  bool any_arrived() const { return newest_arrived_sent_at_ > Time(); }
  // The path that this packet took: of all it is the one that was alive last.
  uint16_t newest_arrived_entropy() const { return newest_arrived_entropy_; }
  Duration ReorderWindow() const;
  // Gaps on a path count: not for some time after such a verdict was wrong.
  bool trusts_path_order(Time now) const { return now >= trust_path_order_from_; }
  // Below it every packet of this class has been looked at.
  uint64_t scan() const { return scan_; }
  void ScanUpTo(uint64_t psn) { scan_ = psn; }

  // ---- timers
  // Never() with nothing outstanding. `ack_delay`: how long the newest packet's acknowledgement may wait.
  Time TimeoutAt(Duration ack_delay, const RecoveryLimits& limits) const;
  // TimeoutAt() has come: true: a tail probe is due; false: a time-out, all that is outstanding is lost.
  bool HandleTimeout(Duration ack_delay, const RecoveryLimits& limits, Time now);
  Duration ProbeDelay(Duration ack_delay, const RecoveryLimits& limits) const;
  Duration Timeout(const RecoveryLimits& limits) const;
  // How long a packet found lost is remembered, so that its late arrival is noticed.
  Duration MemoryOfLost(const RecoveryLimits& limits) const { return Backoff(Timeout(limits)); }
  // After a time-out a few packets try whether anything arrives again, half as many after each further one.
  bool may_send() const {
    return backoff_ == 0 || outstanding_ == 0 || outstanding_ < (uint64_t{kTrialPackets} >> std::min(backoff_, 8u));
  }

  bool in_backoff() const { return backoff_ > 0; }
  uint32_t timeouts_in_a_row() const { return backoff_; }
  // Since when nothing of this class has arrived at the peer; meaningful while in_backoff().
  Time silent_since() const { return silent_since_; }
  uint32_t questions_in_a_row() const { return questions_; }
  uint64_t outstanding() const { return outstanding_; }
  const RttEstimator& rtt() const { return rtt_; }

 private:
  // How long after the last news (or time-out) the next probe goes; zero: the time-out is next.
  Duration NextQuestion(Duration probe, const RecoveryLimits& limits) const;
  Duration Backoff(Duration delay) const;
  Duration NextTimeout(const RecoveryLimits& limits) const;
  void LetLatenessFade(Time now);

  RttEstimator rtt_;
  uint64_t scan_;
  uint64_t outstanding_ = 0;
  Time newest_arrived_sent_at_;  // RACK: send time of the newest packet that arrived
  uint16_t newest_arrived_entropy_ = 0;
  Duration lateness_;  // of late arrivals, behind what had overtaken them; fades
  Duration pause_;     // longest silence that was taken for loss and was none; fades alike
  Time lateness_fades_at_ = Time::Never();
  Time trust_path_order_from_;
  Duration distrust_;       // how long after the last wrong verdict by path order
  Time last_progress_;      // last news, first packet after idle, or last time-out
  Time silent_since_;       // last news, or first packet after idle
  uint32_t probes_ = 0;     // since the last news or time-out
  uint32_t backoff_ = 0;    // time-outs since the last news
  uint32_t questions_ = 0;  // probes and time-outs since the last news
  Time asked_at_;           // the newest of them
};

}  // namespace paceline
