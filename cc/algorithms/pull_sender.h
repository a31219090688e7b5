// The sender side of the pull schemes for one flow: a first window without credit, then what the receiver pulls.
//
//   start    a backlog on a flow with nothing on the way and no unused credit may send `first_window`
//   limit    tx_total < max(end of the first window, largest credit seen)
//   drop     (drop_first_window) with the first acknowledgement, trim or grant the rest of the first window is void:
//            from here on the receiver has the say
//   probe    no credit for `probe_rtts` base round trips: one segment without, at doubling intervals (at most 64 times
//            as long). Lost requests cannot strand a flow. (Ours; the schemes themselves ask again on a timer, which
//            the protocol core does too.)
//   cap      the port's rate divided by its flows that have a backlog and credit for some of it
//
// Owned by the core; refers to the PullPort of its algorithm, which outlives it. Thread rule: as in
// cc/congestion_control.h.
#pragma once

#include <cstdint>

#include "cc/algorithms/pull_rules.h"
#include "cc/congestion_control.h"

namespace paceline {

class PullSender : public SenderController {
 public:
  PullSender(const PullRules& rules, const FlowInfo& flow, const PortInfo& port, PullPort& shared);
  ~PullSender() override;
  PullSender(const PullSender&) = delete;
  PullSender& operator=(const PullSender&) = delete;

  void OnSent(Time now, uint64_t tx_total, uint64_t in_flight_bytes) override;
  void OnAck(const AckSample& sample) override;
  void OnLoss(const LossSample& sample) override;
  void OnGrant(const GrantSample& sample) override;
  void OnBacklog(Time now, uint64_t backlog_bytes, uint64_t tx_total) override;
  void OnBaseRtt(Duration rtt, Time) override { sizes_ = PullSizes(rules_, port_, {.base_rtt = rtt}); }
  Allowance allowance() const override { return allowance_; }
  Rate cap() const override;
  Time PollTimeout() const override { return probe_at_; }
  void HandleTimeout(Time now) override;

 private:
  void DropFirstWindow(Time now);
  void Update(Time now);

  const PullRules rules_;
  const PortInfo port_;
  PullSizes sizes_;
  const uint64_t segment_;
  const Rate link_rate_;
  PullPort& shared_;

  uint64_t credit_end_ = 0, first_end_ = 0;  // first_end_: of the first window, and of probes
  uint64_t tx_total_ = 0, in_flight_ = 0;
  bool backlogged_ = false;
  bool active_ = false;  // counted in shared_
  Time probe_at_ = Time::Never();
  int probes_ = 0;  // since the last credit
  Allowance allowance_;
};

}  // namespace paceline
