// The sizes that the `tita` receiver of one port works with, derived once from the port and the parameters, and the
// budget of credit in flight, which follows how many senders could fill the port.
//
// Why it follows: credit beyond what the path holds waits in a queue, or at a sender that is busy elsewhere. When the
// senders' announced caps add up to the port's rate (a permutation, an all-to-all), credit does wait at senders and in
// core queues, and a small budget starves the port. When each sender could fill the port alone (an incast), nothing
// waits anywhere but in the last queue, and the budget beyond one BDP is exactly what stands there. So, with x = sum of
// caps over the port's rate:
//   budget(x) = budget_floor + (budget - budget_floor) / max(x, 1)        in BDP, never below one BDP and a grain
//
// Byte counts are payload, rates are wire bytes per second. Thread rule: values; free to copy and use anywhere.
#pragma once

#include <cstdint>

#include "cc/algorithms/tita_parameters.h"
#include "cc/congestion_control.h"

namespace paceline {

struct TitaSizes {
  uint64_t segment = 0, overhead = 0;  // bytes
  uint64_t bdp = 0;
  uint64_t grain = 0;                          // of one grant
  uint64_t tail = 0;                           // so little more goes along with the last grain
  uint64_t budget_most = 0, budget_least = 0;  // both within what the lane can hold
  uint64_t bucket = 0;                         // of one sender
  Duration rtt, park;
  Duration lag;                          // by which the clock of grants may be late while credit is out
  double line_rate = 0, grant_rate = 0;  // grant_rate = rho * line rate

  // Wire bytes of `payload` bytes sent in full segments and a last shorter one.
  uint64_t WireBytes(uint64_t payload) const { return payload + (payload + segment - 1) / segment * overhead; }
  // Budget when the caps of those who wait for credit add up to `cap_sum`.
  uint64_t Budget(double cap_sum) const;
};

TitaSizes TitaSizesFor(const TitaParameters& parameters, const PortInfo& port);

}  // namespace paceline
