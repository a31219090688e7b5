#include "transport/core/rx/ack_state.h"

#include <algorithm>

namespace paceline {

void AckState::RaiseFloor(uint64_t floor) {
  received_.AdvanceTo(floor);
  if (any_marked_) {
    marked_.AdvanceTo(floor);
    any_marked_ = marked_.end() > marked_.begin();
  }
  cumulative_ = std::max(cumulative_, floor);
}

void AckState::OnMarked(uint64_t psn) {
  if (!any_marked_) marked_.AdvanceTo(received_.begin());
  marked_.Set(psn);
  any_marked_ = true;
}

void AckState::OnTelemetry(uint32_t port, std::span<const HopTelemetry> hops) {
  if (telemetry_ == nullptr) telemetry_ = std::make_unique<wire::TelemetryFrame>();
  telemetry_->port = static_cast<uint8_t>(port);
  telemetry_->hops = static_cast<uint8_t>(std::min<size_t>(hops.size(), limits::kMaxTelemetryHops));
  std::copy_n(hops.begin(), telemetry_->hops, telemetry_->hop.begin());
  telemetry_news_ = true;
}

const wire::TelemetryFrame* AckState::TakeTelemetry() {
  return std::exchange(telemetry_news_, false) ? telemetry_.get() : nullptr;
}

void AckState::LetWait(Duration delay, Time now) {
  cumulative_ = std::max(cumulative_, received_.FirstClear(cumulative_));
  if (waits_ || at_once_ || cumulative_ < received_.end()) return;
  waits_ = true;
  ack_at_ = now + delay;
}

void AckState::Build(wire::AckFrame* frame, Time now) {
  cumulative_ = std::max(cumulative_, received_.FirstClear(cumulative_));
  frame->last_psn = static_cast<uint32_t>(last_psn_);
  frame->timestamp = last_timestamp_;
  const int64_t delay = now > last_arrived_ ? (now - last_arrived_).nanos() : 0;
  frame->delay_nanos = static_cast<uint32_t>(std::min<int64_t>(delay, 0xffffffff));
  frame->cumulative = static_cast<uint32_t>(cumulative_);
  // From the first gap on; when that is too far back, the newest words. Marks are told from the window's begin.
  const uint64_t from = any_marked_ ? received_.begin() : cumulative_;
  const uint64_t last_word =
      received_.end() == received_.begin() ? from & ~uint64_t{63} : (received_.end() - 1) & ~uint64_t{63};
  uint64_t base = from & ~uint64_t{63};
  constexpr uint64_t kSpan = (limits::kSackWords - 1) * uint64_t{64};
  if (last_word > base + kSpan) base = last_word - kSpan;
  frame->base = static_cast<uint32_t>(base);
  frame->words = 0;
  frame->has_marks = any_marked_;
  for (uint64_t word = base; word <= last_word && word < received_.end(); word += 64) {
    frame->received[frame->words] = received_.Word(word);
    frame->marked[frame->words] = any_marked_ ? marked_.Word(word) : 0;
    ++frame->words;
  }
  unacknowledged_ = 0;
  deferred_ = at_once_ = waits_ = false;
  ack_at_ = std::exchange(twice_, false) ? now : Time::Never();
}

uint64_t AckState::ArrivedWord(uint64_t base) const {
  if (base + 64 <= received_.begin()) return ~uint64_t{0};
  const uint64_t below = base < received_.begin() ? (uint64_t{1} << (received_.begin() - base)) - 1 : 0;
  return received_.Word(base) | below;
}

void AckState::ReleaseIdleState() {
  telemetry_.reset();
  telemetry_news_ = false;
  // What is missing may still be on its way, or be found lost by its sender, who must not hear that it has arrived.
  cumulative_ = std::max(cumulative_, received_.FirstClear(cumulative_));
  if (cumulative_ < received_.end()) return;
  received_.AdvanceTo(cumulative_);
  received_.Release();
  marked_.AdvanceTo(cumulative_);
  marked_.Release();
  any_marked_ = false;
}

}  // namespace paceline
