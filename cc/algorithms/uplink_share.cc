#include "cc/algorithms/uplink_share.h"

#include <algorithm>
#include <limits>

#include "cc/algorithms/water_filling.h"

namespace paceline {

uint32_t UplinkShare::Add() {
  uint32_t id;
  if (free_.empty()) {
    id = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
    entries_[id] = Entry();
  }
  entries_[id].rate = std::numeric_limits<double>::infinity();
  return id;
}

void UplinkShare::Remove(uint32_t id) {
  SetBacklogged(id, false);
  free_.push_back(id);
}

void UplinkShare::SetBacklogged(uint32_t id, bool backlogged) {
  Entry& entry = entries_[id];
  if (entry.backlogged == backlogged) return;
  entry.backlogged = backlogged;
  if (backlogged) {
    entry.active_index = static_cast<uint32_t>(active_.size());
    active_.push_back(id);
  } else {
    const uint32_t last = active_.back();
    active_[entry.active_index] = last;
    entries_[last].active_index = entry.active_index;
    active_.pop_back();
  }
  stale_ = true;
  ++steps_;
}

void UplinkShare::SetGrantedRate(uint32_t id, double rate) {
  Entry& entry = entries_[id];
  if (entry.rate != rate) {
    entry.rate = rate;
    stale_ = stale_ || entry.backlogged;
  }
  ++steps_;
}

double UplinkShare::Cap(uint32_t id) {
  const Entry& entry = entries_[id];
  const size_t flows = active_.size() + (entry.backlogged ? 0 : 1);
  if (flows == 1) return capacity_;
  if (stale_ && steps_ * 8 > active_.size()) Recompute();
  const double equal = capacity_ / static_cast<double>(flows);
  // What is left over, and what this flow has, is its own; when nothing is, the level divides.
  const bool slack = level_ == std::numeric_limits<double>::infinity();
  const double share = slack ? std::min(entry.rate, capacity_) + left_over_ : level_;
  return std::clamp(share, equal, capacity_);
}

void UplinkShare::Recompute() {
  stale_ = false;
  steps_ = 0;
  scratch_.clear();
  double sum = 0;
  for (const uint32_t id : active_) {
    scratch_.push_back(entries_[id].rate);
    sum += entries_[id].rate;
  }
  level_ = WaterLevel(capacity_, scratch_);
  left_over_ = std::max(0.0, capacity_ - sum);
}

}  // namespace paceline
