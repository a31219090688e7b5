// Which entropy the next burst takes. A policy object belongs to one connection and one pair of ports; it is told what
// became of its choices. Policies and where they come from:
//   round_robin  the next of all entropies, from a random start (oblivious spraying)
//   random       a uniformly random one (oblivious spraying)
//   ecmp         one entropy for the life of the object: what a network without spraying does
//   reps         recycled entropies: those that came back unmarked are used again first (Bonato et al., "REPS", 2024),
//                else the next one in turn (as do the first 48 choices, ours: short flows gain nothing from
//                recycling and crowd the same routes); with a penalty per entropy: mark +1, trim +4, time-out +15,
//                decremented when skipped
//
// Thread rule: the endpoint's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cc/congestion_control.h"
#include "transport/base/random.h"

namespace paceline {

class PathPolicy {
 public:
  virtual ~PathPolicy() = default;
  virtual uint16_t Next() = 0;
  virtual void OnAck(uint16_t entropy, bool marked) { (void)entropy, (void)marked; }
  virtual void OnLoss(uint16_t entropy, LossCause cause) { (void)entropy, (void)cause; }
};

// Names, for messages about unknown ones and for studies.
std::span<const std::string> PathPolicyNames();

// nullptr: unknown name. `entropies` >= 1.
std::unique_ptr<PathPolicy> CreatePathPolicy(const std::string& name, uint32_t entropies, Random& random);

}  // namespace paceline
