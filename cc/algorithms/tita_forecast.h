// How much credit the `tita` receiver of a port gives to silent flows beyond its budget. A flow is silent while it has
// demand (a posted receive) and nothing has come from its sender. Unused credit fills no queue; the risk is that all
// its holders begin together.
//
// So trust is earned. All members of an incast begin within a round trip, and earn none. Where at most half of the
// silent flows begin in a round trip, as when each sender has a few messages in flight at a time, the others are
// trusted from then on: their credit no longer counts towards the budget. (Fewer than eight flows leave room in it, and
// earn none.) All together may hold
//
//   idle * budget * (trusted flows) / (starts in a round trip)
//
// so that the starts of a round trip fit into the free capacity of the port. `idle` is the share of the next round trip
// that active senders leave. The bound is reached in steps: a few budgets at first, a factor for each further round
// trip with starts. If more trusted flows begin in a round trip than stay silent, all trust ends.
//
// One trusted flow may hold the start credit: a third of a BDP over the starts in a round trip at first; then as much,
// up to half a BDP, as keeps the credit in use after a start at 0.6 to 0.8 BDP; half of it after a loss.
//
// Flows that fall silent later (receives posted since) are fresh, and have to earn trust anew.
//
// Thread rule: one owner at a time.
#pragma once

#include <cstdint>

#include "cc/algorithms/tita_budget.h"
#include "transport/base/time.h"

namespace paceline {

class TitaForecast {
 public:
  enum class Verdict : uint8_t {
    kAsBefore,
    kTrustFresh,   // the fresh flows are trusted too
    kTrustNobody,  // the trusted ones are so no longer
  };

  // Payload bytes that trusted flows may hold, all together and one of them.
  uint64_t ahead_limit() const { return ahead_limit_; }
  uint64_t start_credit() const { return static_cast<uint64_t>(start_credit_); }

  // A packet of a silent flow has arrived.
  void OnStart(bool trusted, Time now);
  // Credit in use after the start of a trusted flow.
  void OnLoad(uint64_t charged, const TitaSizes& sizes);
  // A sender has found something lost.
  void OnLoss(Time now, const TitaSizes& sizes);

  // When the round trip in which starts are counted is over; Never() when none is under way.
  Time due(Duration rtt) const { return counting_ ? counted_since_ + rtt : Time::Never(); }
  bool IsDue(Duration rtt, Time now) const { return counting_ && counted_since_ + rtt <= now; }
  // At that time or later. `trusted` and `fresh` flows are silent still. `ready`: payload bytes that active senders can
  // send in a round trip.
  Verdict Close(uint64_t trusted, uint64_t fresh, uint64_t ready, uint64_t budget, const TitaSizes& sizes);

 private:
  uint64_t Most(uint64_t flows, uint64_t ready, uint64_t budget, const TitaSizes& sizes) const;

  bool counting_ = false;
  Time counted_since_;
  uint64_t trusted_starts_ = 0, fresh_starts_ = 0;  // in this round trip
  uint64_t most_fresh_starts_ = 0;                  // in one, since none was fresh or the fresh ones became trusted
  double starts_ = 0;                               // of trusted flows in one, the most of the last ones
  uint64_t ahead_limit_ = 0;
  double start_credit_ = 0;
  Time shrunk_at_;  // for a loss
};

}  // namespace paceline
