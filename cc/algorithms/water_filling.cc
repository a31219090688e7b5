#include "cc/algorithms/water_filling.h"

#include <algorithm>
#include <limits>

namespace paceline {

double WaterLevel(double capacity, std::vector<double>& bounds) {
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
