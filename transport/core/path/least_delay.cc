#include "transport/core/path/least_delay.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr uint32_t kExploreEvery = 8;
constexpr int64_t kMemory = 8;                         // mean round trips
constexpr int64_t kLossDelay = 4, kTimeoutDelay = 16;  // mean round trips

}  // namespace

LeastDelayPath::Path& LeastDelayPath::At(uint16_t entropy) {
  if (paths_.empty()) paths_.resize(entropies_);
  return paths_[entropy];
}

Duration LeastDelayPath::Estimate(uint16_t entropy) const {
  if (paths_.empty()) return mean_;
  const Path& path = paths_[entropy];
  const bool known = path.delay > Duration() && now_ - path.heard <= mean_ * (kMemory << path.losses);
  return known ? path.delay : mean_;
}

uint16_t LeastDelayPath::Next() {
  const bool explore = returned_.empty() || ++choices_ % kExploreEvery == 0;
  const auto first = explore ? static_cast<uint16_t>(random_.Below(entropies_)) : returned_.TakeOldest();
  const auto second = static_cast<uint16_t>(random_.Below(entropies_));
  return Estimate(second) < Estimate(first) ? second : first;
}

void LeastDelayPath::OnAck(uint16_t entropy, bool, uint64_t) {
  returned_.Add(entropy);
  if (paths_.empty() || paths_[entropy].losses == 0) return;
  paths_[entropy] = Path();  // it lives; how long it takes is not known
}

void LeastDelayPath::OnDelay(uint16_t entropy, Duration rtt, Time now) {
  now_ = std::max(now_, now);
  mean_ = mean_ == Duration() ? rtt : (mean_ * 15 + rtt) / 16;
  At(entropy) = {.delay = rtt, .heard = now_};
}

void LeastDelayPath::OnLoss(uint16_t entropy, LossCause cause) {
  if (mean_ == Duration()) return;  // nothing to compare with
  Path& path = At(entropy);
  path.delay = mean_ * (cause == LossCause::kTimeout ? kTimeoutDelay : kLossDelay);
  path.heard = now_;
  path.losses = std::min<uint8_t>(path.losses + 1, kMostLosses);
}

}  // namespace paceline
