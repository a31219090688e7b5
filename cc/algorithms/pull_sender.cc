#include "cc/algorithms/pull_sender.h"

#include <algorithm>

#include "cc/algorithms/bdp.h"

namespace paceline {
namespace {

constexpr int kMostProbeDoublings = 6;

}  // namespace

PullSender::PullSender(const PullRules& rules, const FlowInfo& flow, const PortInfo& port, PullPort& shared)
    : rules_(rules),
      port_(port),
      sizes_(rules, port, flow),
      segment_(SegmentBytes(port)),
      link_rate_(LinkRate(port)),
      shared_(shared) {
  allowance_.credit_end = 0;
  allowance_.pacing_rate = link_rate_;
}

PullSender::~PullSender() {
  if (active_) --shared_.active_flows;
}

void PullSender::OnSent(Time now, uint64_t tx_total, uint64_t in_flight_bytes) {
  tx_total_ = std::max(tx_total_, std::min(tx_total, kMaxBytes));
  in_flight_ = in_flight_bytes;
  Update(now);
}

void PullSender::OnAck(const AckSample& sample) {
  in_flight_ = sample.in_flight_bytes;
  if (sample.acked_bytes > 0) DropFirstWindow(sample.now);
}

void PullSender::OnLoss(const LossSample& sample) {
  in_flight_ = sample.in_flight_bytes;
  if (sample.cause == LossCause::kTrimmed) DropFirstWindow(sample.now);
}

void PullSender::OnGrant(const GrantSample& sample) {
  const uint64_t credit_end = std::min(sample.credit_end, kMaxBytes);
  if (credit_end > credit_end_) {
    credit_end_ = credit_end;
    probes_ = 0;
  }
  DropFirstWindow(sample.now);
}

void PullSender::OnBacklog(Time now, uint64_t backlog_bytes, uint64_t tx_total) {
  tx_total_ = std::max(tx_total_, std::min(tx_total, kMaxBytes));
  const bool backlogged = backlog_bytes > 0;
  if (backlogged != backlogged_) {
    backlogged_ = backlogged;
    if (backlogged) {
      probes_ = 0;
      if (in_flight_ == 0 && credit_end_ <= tx_total_) first_end_ = tx_total_ + sizes_.first_window;
    }
  }
  Update(now);
}

void PullSender::DropFirstWindow(Time now) {
  if (rules_.drop_first_window) first_end_ = std::min(first_end_, tx_total_);
  Update(now);
}

void PullSender::Update(Time now) {
  allowance_.credit_end = std::max(credit_end_, first_end_);
  if (const bool active = backlogged_ && allowance_.credit_end > tx_total_; active != active_) {
    active_ = active;
    active ? ++shared_.active_flows : --shared_.active_flows;
  }
  if (!backlogged_ || allowance_.credit_end > tx_total_) {
    probe_at_ = Time::Never();
  } else if (probe_at_.is_never()) {
    probe_at_ = now + sizes_.rtt.Scaled(rules_.probe_rtts) * (int64_t{1} << std::min(probes_, kMostProbeDoublings));
  }
}

Rate PullSender::cap() const {
  return Rate::BytesPerSecond(link_rate_.bytes_per_second() / std::max<uint32_t>(shared_.active_flows, 1));
}

void PullSender::HandleTimeout(Time now) {
  if (now < probe_at_) return;
  ++probes_;
  probe_at_ = Time::Never();
  first_end_ = tx_total_ + segment_;
  Update(now);
}

}  // namespace paceline
