#include "tools/study/report/downsample.h"

#include <algorithm>
#include <cmath>

namespace paceline::tools {
namespace {

TimeSeries Finite(const TimeSeries& series) {
  TimeSeries out;
  const size_t length = std::min(series.times_us.size(), series.values.size());
  out.times_us.reserve(length);
  out.values.reserve(length);
  for (size_t i = 0; i < length; ++i) {
    if (!std::isfinite(series.times_us[i]) || !std::isfinite(series.values[i])) continue;
    out.times_us.push_back(series.times_us[i]);
    out.values.push_back(series.values[i]);
  }
  return out;
}

void Append(const TimeSeries& from, size_t index, TimeSeries& to) {
  to.times_us.push_back(from.times_us[index]);
  to.values.push_back(from.values[index]);
}

}  // namespace

TimeSeries KeepPeaks(const TimeSeries& series, size_t max_points) {
  TimeSeries all = Finite(series);
  const size_t length = all.values.size();
  if (length <= max_points || max_points < 4) return all;
  TimeSeries out;
  Append(all, 0, out);
  const size_t inner = length - 2;
  const size_t stretches = (max_points - 2) / 2;
  for (size_t s = 0; s < stretches; ++s) {
    const size_t begin = 1 + inner * s / stretches;
    const size_t end = 1 + inner * (s + 1) / stretches;
    if (begin == end) continue;
    size_t low = begin;
    size_t high = begin;
    for (size_t i = begin; i < end; ++i) {
      if (all.values[i] < all.values[low]) low = i;
      if (all.values[i] > all.values[high]) high = i;
    }
    Append(all, std::min(low, high), out);
    if (low != high) Append(all, std::max(low, high), out);
  }
  Append(all, length - 1, out);
  return out;
}

TimeSeries KeepMeans(const TimeSeries& series, size_t max_points) {
  TimeSeries all = Finite(series);
  const size_t length = all.values.size();
  if (length <= max_points || max_points == 0) return all;
  TimeSeries out;
  for (size_t s = 0; s < max_points; ++s) {
    const size_t begin = length * s / max_points;
    const size_t end = length * (s + 1) / max_points;
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += all.values[i];
    out.times_us.push_back((all.times_us[begin] + all.times_us[end - 1]) / 2);
    out.values.push_back(sum / static_cast<double>(end - begin));
  }
  return out;
}

Distribution MakeDistribution(std::vector<double> values, size_t max_points) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::sort(values.begin(), values.end());
  Distribution out;
  out.count = values.size();
  const size_t count = values.size();
  std::vector<size_t> ranks;  // 1 is the smallest value, count the largest
  if (count <= max_points || max_points < 4) {
    for (size_t rank = 1; rank <= count; ++rank) ranks.push_back(rank);
  } else {
    const size_t half = max_points / 2;
    for (size_t i = 0; i < half; ++i) ranks.push_back(1 + (count - 1) * i / half);
    const double decades = std::log10(static_cast<double>(count));
    for (size_t i = 0; i < max_points - half; ++i) {
      const double left =
          std::pow(10.0, decades * (1.0 - static_cast<double>(i + 1) / static_cast<double>(max_points - half)));
      ranks.push_back(count + 1 - std::clamp<size_t>(static_cast<size_t>(std::llround(left)), 1, count));
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    // Of equal values the last one tells the fraction.
    if (i + 1 < ranks.size() && values[ranks[i] - 1] == values[ranks[i + 1] - 1]) continue;
    out.values.push_back(values[ranks[i] - 1]);
    out.fractions.push_back(static_cast<double>(ranks[i]) / static_cast<double>(count));
  }
  return out;
}

double Quantile(const std::vector<double>& ascending, double fraction) {
  if (ascending.empty()) return 0;
  const double rank = std::ceil(fraction * static_cast<double>(ascending.size()));
  const size_t index = rank < 1 ? 0 : static_cast<size_t>(rank) - 1;
  return ascending[std::min(index, ascending.size() - 1)];
}

}  // namespace paceline::tools
