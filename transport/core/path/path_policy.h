// Which entropy the next burst takes. A policy object belongs to one connection and one pair of ports; it is told what
// became of its choices. The registry names all policies; each has a file of its own, which says where it comes from.
//
// Thread rule: objects in the endpoint's thread; the registry is immutable, usable from anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cc/congestion_control.h"
#include "transport/base/random.h"
#include "transport/base/time.h"

namespace paceline {

class PathPolicy {
 public:
  virtual ~PathPolicy() = default;
  virtual uint16_t Next() = 0;
  // For the retransmission of a packet whose path may be dead. A packet sent later has arrived by entropy `alive`.
  virtual uint16_t NextForLost(uint16_t alive) {
    (void)alive;
    return Next();
  }
  // A packet on this path has arrived, with or without an ECN mark, while `under_way` bursts of its connection were on
  // their way to that port, itself counted. Where a lane sends several together, once for those of a burst that one
  // acknowledgement tells of.
  virtual void OnAck(uint16_t entropy, bool marked, uint64_t under_way) {
    (void)entropy, (void)marked, (void)under_way;
  }
  // The round trip of a data packet on this path, without the receiver's delay; where it is known, before its OnAck.
  virtual void OnDelay(uint16_t entropy, Duration rtt, Time now) { (void)entropy, (void)rtt, (void)now; }
  virtual void OnLoss(uint16_t entropy, LossCause cause) { (void)entropy, (void)cause; }
};

struct PathPolicyInfo {
  std::string name;
  std::string summary;  // one sentence
  // `entropies` >= 1.
  std::unique_ptr<PathPolicy> (*create)(uint32_t entropies, Random& random);
};

// All policies, by name.
std::span<const PathPolicyInfo> PathPolicies();
// Their names, for messages about unknown ones and for choices.
std::span<const std::string> PathPolicyNames();

// nullptr: unknown name. `entropies` >= 1.
std::unique_ptr<PathPolicy> CreatePathPolicy(const std::string& name, uint32_t entropies, Random& random);

}  // namespace paceline
