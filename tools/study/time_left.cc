#include "tools/study/time_left.h"

#include <algorithm>

namespace paceline::tools {

std::optional<double> SecondsLeft(std::span<const SectionProgress> sections, uint32_t at_a_time) {
  double done = 0, seconds = 0;
  for (const SectionProgress& section : sections) {
    if (section.done == 0) continue;
    done += static_cast<double>(section.done);
    seconds += section.seconds;
  }
  if (done == 0) return std::nullopt;
  double left = 0;
  for (const SectionProgress& section : sections) {
    const double pace = section.done > 0 ? section.seconds / static_cast<double>(section.done) : seconds / done;
    left += static_cast<double>(section.effort - std::min(section.done, section.effort)) * pace;
  }
  return left / std::max(1u, at_a_time);
}

}  // namespace paceline::tools
