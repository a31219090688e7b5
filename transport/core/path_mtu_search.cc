#include "transport/core/path_mtu_search.h"

#include <algorithm>

namespace paceline {

PathMtuSearch::PathMtuSearch(uint32_t plain, uint32_t most)
    : plain_(plain), most_(std::max(plain, most)), passed_(plain), refused_(most_) {
  sizes_[count_++] = plain_;
  if (most_ > plain_) sizes_[count_++] = most_;
}

void PathMtuSearch::OnAnswer(uint32_t bytes) {
  answered_ = true;
  passed_ = std::max(passed_, std::min(bytes, most_));
  if (passed_ == most_) done_ = true;
}

void PathMtuSearch::EndRound() {
  if (done_) return;
  const auto begin = sizes_.begin(), end = begin + static_cast<std::ptrdiff_t>(count_);
  const auto failed = std::upper_bound(begin, end, passed_);
  const uint32_t smallest = failed == end ? most_ : *failed;
  refusals_ = smallest == refused_ ? refusals_ + 1 : 1;
  refused_ = smallest;
  done_ = (refused_ == passed_ + 1 && refusals_ > 1) || ++rounds_ == kMostRounds;
  if (!done_) BeginRound();
}

void PathMtuSearch::BeginRound() {
  count_ = sent_ = 0;
  answered_ = false;
  const auto add = [this](uint32_t size) {
    if (count_ == 0 || size > sizes_[count_ - 1]) sizes_[count_++] = size;
  };
  add(plain_);
  const uint64_t gap = refused_ - passed_;
  for (uint32_t i = 0; i <= kBetween; ++i) add(static_cast<uint32_t>(passed_ + gap * i / (kBetween + 1)));
  add(refused_);
}

}  // namespace paceline
