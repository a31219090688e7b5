#include "cc/algorithms/tita_sender.h"

#include <algorithm>
#include <limits>

#include "cc/algorithms/bdp.h"
#include "cc/algorithms/tita_budget.h"

namespace paceline {
namespace {

constexpr int kMostProbeDoublings = 6;
constexpr double kPhaseFraction =
    0.125;  // a flow whose period is below this part of a round trip need not keep a phase

}  // namespace

TitaSender::TitaSender(const TitaParameters& parameters, const FlowInfo& flow, const PortInfo& port, TitaPort& shared)
    : parameters_(parameters),
      link_rate_(LinkRate(port).bytes_per_second()),
      segment_(SegmentBytes(port)),
      segment_wire_(SegmentWireBytes(port)),
      control_bytes_(port.control_packet_bytes),
      port_(port),
      shared_(shared),
      uplink_id_(shared.uplink.Add()) {
  SetBaseRtt(BaseRtt(port, flow), BaseRtt(port));
  Publish();
}

TitaSender::~TitaSender() { shared_.uplink.Remove(uplink_id_); }

void TitaSender::SetBaseRtt(Duration rtt, Duration network_rtt) {
  small_ = parameters_.unscheduled > 0 ? BdpScaled(port_, rtt, parameters_.unscheduled) : 0;
  rtt_ = rtt;
  train_ = network_rtt.Scaled(parameters_.budget_floor);
  rate_of_credit_ = static_cast<double>(segment_wire_) / static_cast<double>(segment_) / rtt.seconds();
}

void TitaSender::OnBaseRtt(Duration rtt, Time) {
  const Duration bounded = BaseRtt(port_, {.base_rtt = rtt});
  SetBaseRtt(bounded, bounded);
  Publish();
}

void TitaSender::OnSent(Time now, uint64_t tx_total, uint64_t in_flight_bytes) {
  const uint64_t covered = std::max(tx_total_, Limit());
  tx_total_ = std::max(tx_total_, std::min(tx_total, kMaxBytes));
  if (tx_total_ > covered) {  // a single
    RenewUnscheduled(now);
    unscheduled_spent_ += tx_total_ - covered;
  }
  in_flight_ = in_flight_bytes;
  phase_known_ = false;
  ArmProbe(now);
  Publish();
}

void TitaSender::OnAck(const AckSample& sample) {
  in_flight_ = sample.in_flight_bytes;
  RenewUnscheduled(sample.now);
  shared_.control_bytes_in += control_bytes_;
  Publish();
}

// No rate follows from a loss: what was lost takes credit again, and the receiver sees what its core limits are.
void TitaSender::OnLoss(const LossSample& sample) { in_flight_ = sample.in_flight_bytes; }

void TitaSender::OnGrant(const GrantSample& sample) {
  const double stated = sample.rate.bytes_per_second();
  if (stated > 0) {  // false for a NaN
    rate_ = std::min(stated, link_rate_);
    shared_.uplink.SetGrantedRate(uplink_id_, rate_);
  }
  const uint64_t credit_end = std::min(sample.credit_end, kMaxBytes);
  if (credit_end > credit_end_) {
    if (backlog_ == 0 && credit_end_ <= tx_total_) {
      phase_known_ = true;
      phase_ = sample.now;
    }
    credit_end_ = credit_end;
    probes_ = 0;
  }
  ArmProbe(sample.now);
  Publish();
}

void TitaSender::OnBacklog(Time now, uint64_t backlog_bytes, uint64_t tx_total) {
  const bool started = backlog_ == 0 && backlog_bytes > 0;
  tx_total_ = std::max(tx_total_, std::min(tx_total, kMaxBytes));
  backlog_ = std::min(backlog_bytes, kMaxBytes);
  shared_.uplink.SetBacklogged(uplink_id_, backlog_ > 0);
  if (started) {
    StartFromIdle(now);
  } else if (backlog_ > small_ && unscheduled_used_ && unscheduled_end_ > tx_total_) {
    // It was small when it appeared and has grown before a byte was sent: it is not small.
    unscheduled_used_ = false;
    unscheduled_end_ = 0;
    AllowUnscheduled(now);
  }
  if (backlog_ == 0) holding_ = false;
  ArmProbe(now);
  Publish();
}

void TitaSender::StartFromIdle(Time now) {
  probes_ = 0;
  holding_ = false;
  unscheduled_end_ = 0;
  unscheduled_used_ = false;
  if (credit_end_ > tx_total_) {
    if (phase_known_ && parameters_.phase && backlog_ > small_) HoldForPhase(now);
  } else {
    AllowUnscheduled(now);
  }
  phase_known_ = false;
}

// What goes unscheduled is counted by the round trip; nothing of it counts when nothing of ours is in the network.
void TitaSender::RenewUnscheduled(Time now) {
  if (now - unscheduled_start_ < rtt_ && in_flight_ > 0) return;
  unscheduled_start_ = now;
  unscheduled_spent_ = 0;
}

void TitaSender::AllowUnscheduled(Time now) {
  if (backlog_ <= small_) {
    RenewUnscheduled(now);
    if (unscheduled_spent_ + backlog_ > small_) return;
    unscheduled_spent_ += backlog_;
    unscheduled_end_ = tx_total_ + backlog_;
    unscheduled_used_ = true;
  } else {
    const double bytes = parameters_.unscheduled_large * static_cast<double>(segment_);
    unscheduled_end_ = tx_total_ + std::min(backlog_, static_cast<uint64_t>(bytes));
  }
}

// Waits for the next repetition of the slot in which the credit came.
void TitaSender::HoldForPhase(Time now) {
  if (rate_ <= 0) return;
  const double period_nanos = static_cast<double>(segment_wire_) * 1e9 / rate_;
  const Duration period = std::min(Duration::Nanos(static_cast<int64_t>(std::min(period_nanos, 1e15))), train_);
  if (period < rtt_.Scaled(kPhaseFraction) || now < phase_) return;
  const int64_t since = (now - phase_).nanos() % period.nanos();
  if (since == 0) return;
  holding_ = true;
  hold_until_ = now + (period - Duration::Nanos(since));
}

void TitaSender::ArmProbe(Time now) {
  const bool stuck = backlog_ > 0 && Limit() <= tx_total_;
  if (!stuck) {
    probe_at_ = Time::Never();
  } else if (probe_at_.is_never()) {
    const int64_t doublings = std::min(probes_, kMostProbeDoublings);
    probe_at_ = now + rtt_.Scaled(parameters_.probe_rtts) * (int64_t{1} << doublings);
  }
}

Rate TitaSender::cap() const { return Rate::BytesPerSecond(shared_.uplink.Cap(uplink_id_)); }

Time TitaSender::PollTimeout() const { return holding_ ? std::min(hold_until_, probe_at_) : probe_at_; }

void TitaSender::HandleTimeout(Time now) {
  if (holding_ && now >= hold_until_) holding_ = false;
  if (now >= probe_at_) {
    ++probes_;
    probe_at_ = Time::Never();
    unscheduled_end_ = tx_total_ + segment_;
    shared_.uplink.SetGrantedRate(uplink_id_, 0);  // who grants nothing for so long leaves the uplink to the others
    ArmProbe(now);
  }
  Publish();
}

void TitaSender::Publish() {
  allowance_.credit_end = holding_ ? tx_total_ : Limit();
  allowance_.held_end = holding_ ? Limit() : 0;
  allowance_.single_end = tx_total_ + (small_ - std::min(small_, unscheduled_spent_));
  const uint64_t unused = credit_end_ - std::min(credit_end_, tx_total_);
  const double in_one_rtt = static_cast<double>(unused) * rate_of_credit_;
  const double pace = rate_ > 0 ? std::max(rate_ * parameters_.pace_gain, in_one_rtt) : link_rate_;
  allowance_.pacing_rate = Rate::BytesPerSecond(std::min(pace, link_rate_));
}

}  // namespace paceline
