#include "transport/lane/shm/shm_copy_choice.h"

#include <algorithm>

namespace paceline {

int64_t ShmCopyChoice::Samples::Median() const {
  auto sorted = picos_per_byte_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[kCount / 2];
}

void ShmCopyChoice::Begin(Way way) {
  way_ = way;
  streamed_bytes_ = trial_bytes_ = trial_samples_ = 0;
}

ShmCopyChoice::Turn ShmCopyChoice::Next(uint32_t bytes) {
  // The first lap meets pages that nobody has touched.
  if (first_lap_bytes_ < ring_bytes_) {
    first_lap_bytes_ += bytes;
    return {way_, false};
  }
  if (streamed_bytes_ >= kTrialEvery * ring_bytes_) {
    const bool has_lap = trial_bytes_ >= ring_bytes_;
    trial_bytes_ += bytes;
    return {Way::kCached, has_lap};
  }
  if (way_ == Way::kStreaming) streamed_bytes_ += bytes;
  if (++copies_ % kTimedEvery != 0) return {way_, false};
  if (way_ == Way::kStreaming) return {way_, true};
  const uint32_t streamed_every = streaming_.enough() ? kStreamedEvery : 2;
  return {++timed_ % streamed_every == 0 ? Way::kStreaming : Way::kCached, true};
}

void ShmCopyChoice::Note(Way way, uint32_t bytes, Duration took) {
  (way == Way::kCached ? cached_ : streaming_).Add(took.nanos() * 1000 / bytes);
  if (way_ == Way::kCached) {
    const bool known = cached_.enough() && streaming_.enough();
    if (known && cached_.Median() > kLeave * streaming_.Median()) Begin(Way::kStreaming);
  } else if (way == Way::kCached && ++trial_samples_ == Samples::kCount) {
    Begin(cached_.Median() <= kReturn * streaming_.Median() ? Way::kCached : Way::kStreaming);
  }
}

}  // namespace paceline
