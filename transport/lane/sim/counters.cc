#include "transport/lane/sim/counters.h"

#include <algorithm>

namespace paceline::sim {

uint32_t QueueStatistics::Quantile(uint32_t port, double quantile, Picos total) const {
  const uint64_t* levels = &time_at_level_[size_t{port} * kLevels];
  // Time not accounted for is time with an empty queue.
  uint64_t busy = 0;
  for (uint32_t level = 1; level < kLevels; ++level) busy += levels[level];
  const auto allowed_above = static_cast<uint64_t>((1 - quantile) * static_cast<double>(total));
  if (busy <= allowed_above) return 0;
  uint64_t above = 0;
  for (uint32_t level = kLevels; level-- > 1;) {
    above += levels[level];
    if (above > allowed_above) return (level + 1) << shift_;
  }
  return 0;
}

void Series::Append(uint64_t delivered_payload_bytes) {
  if (delivered_.size() == kMaxPoints) JoinNeighbours();
  delivered_.push_back(delivered_payload_bytes);
  peaks_.resize(delivered_.size() * ports_);
  sent_.resize(delivered_.size() * ports_);
}

void Series::JoinNeighbours() {
  const size_t half = delivered_.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    delivered_[i] = delivered_[2 * i] + delivered_[2 * i + 1];
    for (size_t port = 0; port < ports_; ++port) {
      const size_t a = 2 * i * ports_ + port, b = a + ports_;
      peaks_[i * ports_ + port] = std::max(peaks_[a], peaks_[b]);
      sent_[i * ports_ + port] = sent_[a] + sent_[b];
    }
  }
  delivered_.resize(half);
  interval_ *= 2;
}

}  // namespace paceline::sim
