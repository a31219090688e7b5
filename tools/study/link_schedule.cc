#include "tools/study/link_schedule.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace paceline::tools {

using sim::Picos;

Picos EarliestEnd(std::span<const Transmission> by_head) {
  std::priority_queue<std::pair<Picos, double>> waiting;  // tail, and service that is left
  double now = 0, end = 0;
  for (size_t next = 0; next < by_head.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, static_cast<double>(by_head[next].head));
    for (; next < by_head.size() && static_cast<double>(by_head[next].head) <= now; ++next) {
      waiting.emplace(by_head[next].tail, by_head[next].service);
    }
    const auto [tail, left] = waiting.top();
    waiting.pop();
    if (next < by_head.size() && now + left > static_cast<double>(by_head[next].head)) {
      const auto until = static_cast<double>(by_head[next].head);
      waiting.emplace(tail, left - (until - now));
      now = until;
    } else {
      now += left;
      end = std::max(end, now + static_cast<double>(tail));
    }
  }
  return static_cast<Picos>(end);
}

}  // namespace paceline::tools
