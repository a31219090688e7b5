#include "cc/algorithms/water_filling.h"

#include <algorithm>
#include <limits>

namespace paceline {

double WaterLevel(double capacity, std::vector<double>& bounds) {
  if (bounds.empty()) return std::numeric_limits<double>::infinity();
  // Often none is below an equal share; then their order does not matter.
  const double equal = std::max(capacity, 0.0) / static_cast<double>(bounds.size());
  if (std::all_of(bounds.begin(), bounds.end(), [equal](double bound) { return bound >= equal; })) return equal;
  std::sort(bounds.begin(), bounds.end());
  double left = capacity;
  for (size_t i = 0; i < bounds.size(); ++i) {
    // All that are left share equally, unless the smallest of them wants less than that.
    const double share = std::max(left, 0.0) / static_cast<double>(bounds.size() - i);
    if (bounds[i] >= share) return share;
    left -= std::max(bounds[i], 0.0);
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace paceline
