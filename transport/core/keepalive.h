// Whether the peer of a connection is still there. After silence it is asked for a sign of life (Ping), and given up
// when several questions and the peer time-out have passed. Beside that it is asked whether it still has the connection
// (Ask): a process that was started anew at the same address says that it does not (Gone), and then nobody waits for
// the peer time-out.
//
// It takes two answers, to questions with different tokens, which nobody can guess, and nothing heard from the peer
// since the first question. Any packet of the peer starts that over.
//
// Thread rule: the endpoint's thread. Reads no clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "transport/base/time.h"

namespace paceline {

class Keepalive {
 public:
  void Start(Time now) { last_heard_ = last_ping_ = now; }

  // Anything came from the peer.
  void OnHeard(Time now) {
    last_heard_ = now;
    token_ = 0;
    unanswered_pings_ = unanswered_questions_ = gone_answers_ = 0;
  }

  // When HandleTimeout is to be called. `interval`: of silence, after which a peer is asked when something is expected
  // of it; of which nothing is expected, it is asked more seldom.
  Time PollTimeout(Duration interval, bool expects_peer) const {
    const bool often = unanswered_pings_ > 0 || expects_peer;
    return std::max(last_heard_, last_ping_) + interval * (often ? 1 : kIdleFactor);
  }
  // False: the peer is lost.
  bool HandleTimeout(Duration interval, bool expects_peer, Duration peer_timeout, Time now) {
    if (PollTimeout(interval, expects_peer) > now) return true;
    if (unanswered_pings_ >= kPingsBeforeLost && now - last_heard_ >= peer_timeout) return false;
    ping_due_ = true;
    last_ping_ = now;
    if (unanswered_pings_ < kMostCounted) ++unanswered_pings_;
    Ask();
    return true;
  }

  Time last_heard() const { return last_heard_; }
  bool ping_due() const { return ping_due_; }
  bool TakePing() { return std::exchange(ping_due_, false); }

  // The sender has asked for news: by a probe, a time-out or a demand. Not the first of them, and not before the
  // silence is longer than those that a network makes, the peer is asked whether it still has the connection.
  void OnQuestion(Time now) {
    if (unanswered_questions_ < kMostCounted) ++unanswered_questions_;
    if (unanswered_questions_ > 1 && now - last_heard_ >= kQuietBeforeAsking) Ask();
  }
  void Ask() { ask_due_ = true; }
  bool ask_due() const { return ask_due_; }
  // The question goes out with this token, never 0; answers to earlier ones count no more.
  void TakeAsk(uint64_t token) {
    ask_due_ = false;
    token_ = token;
  }
  // Somebody says that the peer does not have the connection. True: it is so.
  bool OnGone(uint64_t token) {
    if (token_ == 0 || token != token_) return false;
    token_ = 0;
    if (++gone_answers_ == kGoneAnswersBeforeLost) return true;
    Ask();
    return false;
  }

  // The connection is over: nobody is asked any more.
  void Stop() {
    ping_due_ = ask_due_ = false;
    token_ = 0;
  }

 private:
  static constexpr int64_t kIdleFactor = 15;
  static constexpr uint8_t kPingsBeforeLost = 3;
  static constexpr uint8_t kMostCounted = 255;
  static constexpr uint8_t kGoneAnswersBeforeLost = 2;
  static constexpr Duration kQuietBeforeAsking = Duration::Millis(50);

  Time last_heard_, last_ping_;
  uint64_t token_ = 0;  // of the question that waits for an answer; 0: none does
  bool ping_due_ = false, ask_due_ = false;
  uint8_t unanswered_pings_ = 0;
  uint8_t unanswered_questions_ = 0;
  uint8_t gone_answers_ = 0;
};

}  // namespace paceline
