// How long the runs of a study still take, from what they have taken so far.
//
// A packet of one scenario costs several times that of another (thousands of flows miss caches, lossy ones are sent
// twice), so each section is reckoned at its own pace as soon as something of it is done, until then at that of all.
//
// Thread rule: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace paceline::tools {

struct SectionProgress {
  uint64_t effort = 0;  // of all of its runs (EffortOf)
  uint64_t done = 0;    // of that
  double seconds = 0;   // that its runs have taken, one after the other
};

// Seconds, with `at_a_time` runs at a time. Nothing as long as nothing is done.
std::optional<double> SecondsLeft(std::span<const SectionProgress> sections, uint32_t at_a_time);

}  // namespace paceline::tools
