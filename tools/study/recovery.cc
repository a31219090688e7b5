#include "tools/study/recovery.h"

#include <algorithm>
#include <numeric>

namespace paceline::tools {
namespace {

constexpr size_t kLeastWindows = 8;
constexpr double kSettled = 0.95;
constexpr double kTail = 0.9;  // of all payload

}  // namespace

std::vector<Recovery> MeasureRecoveries(const std::vector<uint64_t>& delivered, int64_t interval_ns, int64_t first_ns,
                                        int64_t window_ns, const std::vector<int64_t>& changes_ns) {
  const auto width = static_cast<size_t>(std::max<int64_t>(1, (window_ns + interval_ns - 1) / interval_ns));
  const double total = static_cast<double>(std::accumulate(delivered.begin(), delivered.end(), uint64_t{0}));
  size_t tail = 0;  // intervals until then count
  for (double sum = 0; tail < delivered.size() && sum < kTail * total; ++tail) {
    sum += static_cast<double>(delivered[tail]);
  }
  // The first interval that begins at `time` or later.
  const auto index_of = [&](int64_t time) {
    return static_cast<size_t>(std::max<int64_t>(0, (time - first_ns + interval_ns - 1) / interval_ns));
  };
  const auto rate = [&](size_t begin) {
    double sum = 0;
    for (size_t i = begin; i < begin + width; ++i) sum += static_cast<double>(delivered[i]);
    return sum;
  };

  std::vector<Recovery> result;
  for (size_t change = 0; change < changes_ns.size(); ++change) {
    result.push_back({static_cast<double>(changes_ns[change]) / 1e3, std::nullopt});
    const size_t begin = index_of(changes_ns[change]);
    const size_t next = change + 1 < changes_ns.size() ? index_of(changes_ns[change + 1]) : tail;
    const size_t end = std::min(next, tail);
    if (end < begin + kLeastWindows * width) continue;
    std::vector<double> rates;  // of windows that begin at `begin` and later
    for (size_t i = begin; i + width <= end; ++i) rates.push_back(rate(i));
    std::vector<double> sorted = rates;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2), sorted.end());
    const double enough = kSettled * sorted[sorted.size() / 2];
    const auto below = [enough](double value) { return value < enough; };
    const auto search_end = rates.begin() + static_cast<ptrdiff_t>(std::min(rates.size(), kLeastWindows * width));
    const auto dip = std::find_if(rates.begin(), search_end, below);
    if (dip == search_end) {
      result.back().recovery_us = 0;
      continue;
    }
    const auto back = std::find_if_not(dip, rates.end(), below);
    if (back == rates.end()) continue;
    const int64_t time =
        first_ns + static_cast<int64_t>(begin + static_cast<size_t>(back - rates.begin())) * interval_ns;
    result.back().recovery_us = static_cast<double>(time - changes_ns[change]) / 1e3;
  }
  return result;
}

}  // namespace paceline::tools
