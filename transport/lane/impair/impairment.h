// What a bad network does to packets, as a person writes it: "loss=1%,dup=0.05,reorder=5%,corrupt=1%,delay=100us".
//
// Thread rule: values and pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "transport/base/time.h"

namespace paceline {

struct Impairment {
  double loss = 0;       // probability that a packet never arrives
  double duplicate = 0;  // probability that it arrives twice
  double reorder = 0;    // probability that it arrives `reorder_delay` late
  double corrupt = 0;    // probability that one of its bits is flipped
  Duration delay;        // added to every packet
  Duration reorder_delay = Duration::Micros(200);
  uint64_t seed = 1;

  bool none() const { return loss == 0 && duplicate == 0 && reorder == 0 && corrupt == 0 && delay == Duration(); }
};

// Keys: loss, dup, reorder, corrupt (a probability: "0.01" or "1%"), delay, reorder_delay ("50", "50us", "2ms"), seed.
// The error names the key or value at fault and what it may be.
absl::StatusOr<Impairment> ParseImpairment(const std::string& text);

}  // namespace paceline
