// The sender side of `tita` for one flow: sends what it has credit for, near the rate that the receiver states.
//
//   credit      credit_end = the largest grant seen
//   start       a backlog that appears on an idle flow goes out at once if it is at most `unscheduled` (at least one
//               segment) in a base round trip; a larger one waits for credit (a request travels meanwhile), except for
//               its first `unscheduled_large` segments. When credit does not come for `probe` round trips, one segment
//               goes out without, at doubling intervals: a lost request cannot strand a flow.
//   singles     messages of one segment go beside a longer backlog without waiting for its credit, as many bytes in a
//               round trip as a small backlog has; they use credit all the same, which then comes for the backlog later
//   pace        max(pace_gain * granted rate, unused credit per base round trip), at most the port's rate: credit that
//               piled up while this port was busy elsewhere is used within a round trip, and never as a burst
//   phase       credit that came before there was data (a posted receive) keeps the time slot in which it came: the
//               receiver spaced its grants so that their data does not land together. The slots repeat with the flow's
//               own period (a segment at the granted rate), at most the length of the receiver's train of first grants
//               (its budget at line rate). A small backlog does not wait for its slot.
//   cap         the port's UplinkShare
//
// Owned by the core; refers to the parameters and the TitaPort of its Tita, which outlives it. Thread rule: as in
// cc/congestion_control.h.
#pragma once

#include <cstdint>

#include "cc/algorithms/tita.h"
#include "cc/algorithms/tita_parameters.h"
#include "cc/congestion_control.h"

namespace paceline {

class TitaSender : public SenderController {
 public:
  TitaSender(const TitaParameters& parameters, const FlowInfo& flow, const PortInfo& port, TitaPort& shared);
  ~TitaSender() override;
  TitaSender(const TitaSender&) = delete;
  TitaSender& operator=(const TitaSender&) = delete;

  void OnSent(Time now, uint64_t tx_total, uint64_t in_flight_bytes) override;
  void OnAck(const AckSample& sample) override;
  void OnLoss(const LossSample& sample) override;
  void OnGrant(const GrantSample& sample) override;
  void OnBacklog(Time now, uint64_t backlog_bytes, uint64_t tx_total) override;
  void OnBaseRtt(Duration rtt, Time now) override;
  Allowance allowance() const override { return allowance_; }
  Rate cap() const override;
  Time PollTimeout() const override;
  void HandleTimeout(Time now) override;

 private:
  uint64_t Limit() const { return credit_end_ > unscheduled_end_ ? credit_end_ : unscheduled_end_; }
  void SetBaseRtt(Duration rtt, Duration network_rtt);
  void StartFromIdle(Time now);
  void AllowUnscheduled(Time now);
  void RenewUnscheduled(Time now);
  void HoldForPhase(Time now);
  void ArmProbe(Time now);
  void Publish();

  const TitaParameters& parameters_;
  const double link_rate_;  // wire bytes per second
  const uint64_t segment_, segment_wire_;
  uint64_t small_ = 0;         // bytes that may go unscheduled in a round trip
  Duration rtt_, train_;       // train_: the receiver's budget at line rate
  double rate_of_credit_ = 0;  // wire bytes per second for each byte of credit, if spent in one round trip
  const uint32_t control_bytes_;
  const PortInfo port_;
  TitaPort& shared_;
  const uint32_t uplink_id_;

  uint64_t credit_end_ = 0, unscheduled_end_ = 0;
  uint64_t tx_total_ = 0, in_flight_ = 0, backlog_ = 0;
  double rate_ = 0;  // as granted; 0: not stated yet
  bool unscheduled_used_ = false;
  Time unscheduled_start_;  // of the round trip that unscheduled_spent_ counts
  uint64_t unscheduled_spent_ = 0;
  bool phase_known_ = false, holding_ = false;
  Time phase_;  // when unused credit first came
  Time hold_until_;
  Time probe_at_ = Time::Never();
  int probes_ = 0;
  Allowance allowance_;
};

}  // namespace paceline
