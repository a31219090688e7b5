#include "cc/algorithms/core_limit.h"

#include <algorithm>
#include <utility>

namespace paceline {
namespace {

constexpr uint32_t kLeastPackets = 8;  // a window of fewer says nothing
constexpr int64_t kStaleWindows = 4;   // after a pause of so many windows the old counts are dropped
constexpr double kInUse = 0.8;         // a limit is raised only while this much of it is delivered
constexpr double kQueued = 0.25;       // and, if it was stated, while fewer of the packets than this have waited
constexpr double kTarget = 0.2;        // share of marks that is aimed at
constexpr double kCalmGain = 0.1;      // a stated limit comes down to what is delivered even under few marks
constexpr double kEqualise = 0.2;      // of the way to what is expected, per window
constexpr double kDecrease = 0.05;     // of the capacity, times the marks beyond that
constexpr uint32_t kMostDoublings = 3;
constexpr double kSearchWindows = 5;         // windows in which a search multiplies a stated limit by e,
constexpr double kBlindSearchWindows = 2.5;  // and one of which nothing is known
constexpr double kSearchInUse = 0.6;         // it goes on while this much of the growing limit is delivered
constexpr double kSearchEnd = 0.25;          // and ends when this share of packets waits
constexpr double kSearchPackets = 16;        // (a moving average over so many)
constexpr double kSearchBack = 0.92;         // of what it had reached
constexpr double kQuiet = 0.2;               // nobody waits, within the noise

}  // namespace

void CoreLimit::OnArrival(const CoreLimitParameters& parameters, Time now, uint64_t wire_bytes, uint32_t packets,
                          uint32_t marked_packets, uint32_t queued_packets, bool downlink_full) {
  const Duration elapsed = now - window_start_;
  const Duration pause = now - std::exchange(heard_, now);
  if (!open_ || elapsed < Duration() || pause > parameters.window * kStaleWindows) {
    // The packet that opens a window marks its start; what it carries arrived before. Whether the limit is still in use
    // after a pause is to be seen.
    in_use_ = in_use_ && !open_;
    open_ = true;
    window_start_ = now;
    packets_ = marked_packets_ = queued_packets_ = 0;
    wire_bytes_ = 0;
    return;
  }
  if (searching_ && packets > 0) {
    Search(parameters, now, static_cast<double>(std::min(std::max(marked_packets, queued_packets), packets)) / packets);
  }
  packets_ += std::min<uint32_t>(packets, 1u << 20);
  marked_packets_ += std::min({marked_packets, packets, 1u << 20});
  queued_packets_ += std::min({queued_packets, packets, 1u << 20});
  wire_bytes_ += std::min<uint64_t>(wire_bytes, uint64_t{1} << 40);
  if (elapsed < parameters.window || packets_ < kLeastPackets) return;
  if (!downlink_full) EndWindow(parameters, elapsed.seconds());
  window_start_ = now;
  packets_ = marked_packets_ = queued_packets_ = 0;
  wire_bytes_ = 0;
}

void CoreLimit::Expect(double rate) {
  if (!stated()) return;
  expected_ = std::max(rate, stated_);
  if (!measured_) limit_ = capacity_ = expected_;
}

void CoreLimit::Search(const CoreLimitParameters& parameters, Time now, double waited) {
  // What it starts from is tried for a window first.
  if (search_from_.is_never()) search_from_ = now + parameters.window;
  const Duration since = std::clamp(now - last_arrival_, Duration(), parameters.window);
  last_arrival_ = now;
  waiting_ += (waited - waiting_) / kSearchPackets;
  if (waiting_ > kSearchEnd) {
    if (now > search_from_) capacity_ = std::max(capacity_ * kSearchBack, stated_);
    EndSearch();
  } else if (now > search_from_ && in_use_) {
    const double windows = stated() ? kSearchWindows : kBlindSearchWindows;
    capacity_ =
        std::min(capacity_ * (1 + since.seconds() / (parameters.window.seconds() * windows)), parameters.line_rate);
  }
  limit_ = capacity_;
}

void CoreLimit::EndSearch() {
  searching_ = false;
  search_from_ = Time::Never();
  waiting_ = 0;
}

void CoreLimit::EndWindow(const CoreLimitParameters& parameters, double seconds) {
  measured_ = true;
  const double marked = static_cast<double>(marked_packets_) / packets_;
  const double delivered = static_cast<double>(wire_bytes_) / seconds;
  const double least = parameters.floor * parameters.line_rate;
  if (!limited()) {
    if (marked < parameters.heavy || delivered >= parameters.enter * parameters.line_rate) return;
    capacity_ = delivered;
  } else if (marked >= parameters.heavy) {
    capacity_ += parameters.gain * (delivered - capacity_);
  } else if (stated() && marked > 0) {
    capacity_ += kCalmGain * (delivered - capacity_);
  } else if (marked > kTarget) {
    capacity_ *= 1 - kDecrease * (marked - kTarget);
  } else if (!searching_ && delivered >= kInUse * limit_ && (!stated() || queued_packets_ < kQueued * packets_)) {
    capacity_ += parameters.step * parameters.line_rate * (1 - marked / kTarget) *
                 static_cast<double>(1u << std::min(clean_windows_, kMostDoublings));
    ++clean_windows_;
  }
  if (expected_ > 0 && marked < parameters.heavy && (marked_packets_ > 0 || capacity_ < expected_)) {
    capacity_ += kEqualise * (expected_ - capacity_);
  }
  if (marked_packets_ > 0) {
    clean_windows_ = 0;
    EndSearch();
  }
  in_use_ = delivered >= kSearchInUse * limit_;
  const bool quiet = marked_packets_ == 0 && queued_packets_ < kQuiet * packets_ && delivered >= kInUse * limit_;
  if (quiet) searching_ = true;
  capacity_ = std::max({capacity_, stated_, least});
  if (capacity_ >= parameters.line_rate) {  // free again
    capacity_ = limit_ = std::numeric_limits<double>::infinity();
    EndSearch();
    return;
  }
  limit_ = std::max(capacity_ * (1 - parameters.drain * marked), least);
}

void CoreLimit::TakeSlot(Time now, uint64_t wire_bytes) {
  const double slot_nanos = limited() ? std::min(static_cast<double>(wire_bytes) * 1e9 / limit_, 1e9) : 0;
  clock_.RaiseTo(now - Duration::Nanos(static_cast<int64_t>(slot_nanos)));
  clock_.Advance(slot_nanos);
}

}  // namespace paceline
