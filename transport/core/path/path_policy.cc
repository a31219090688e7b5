#include "transport/core/path/path_policy.h"

#include <array>
#include <vector>

#include "transport/core/path/bitmap.h"
#include "transport/core/path/ecmp.h"
#include "transport/core/path/least_delay.h"
#include "transport/core/path/random_path.h"
#include "transport/core/path/reps.h"
#include "transport/core/path/reps_plain.h"
#include "transport/core/path/round_robin.h"

namespace paceline {
namespace {

template <typename Policy>
PathPolicyInfo Entry(std::string name, std::string summary) {
  return {std::move(name), std::move(summary), [](uint32_t entropies, Random& random) -> std::unique_ptr<PathPolicy> {
            return std::make_unique<Policy>(entropies, random);
          }};
}

// In the order of their names.
const std::array<PathPolicyInfo, 7>& Policies() {
  static const std::array<PathPolicyInfo, 7> policies = {
      Entry<BitmapPath>("bitmap", "The next entropy in turn that carries no penalty for marks, trims and losses"),
      Entry<EcmpPath>("ecmp", "One entropy until a time-out, then another: a network without spraying"),
      Entry<LeastDelayPath>("least_delay", "Of two entropies at random the one with the shorter round trip"),
      Entry<RandomPath>("random", "A random entropy (oblivious spraying)"),
      Entry<RepsPath>("reps", "Entropies that came back unmarked are used again, with penalties for bad ones"),
      Entry<RepsPlainPath>("reps_plain", "Entropies that came back unmarked are used again, else a random one"),
      Entry<RoundRobinPath>("round_robin", "The next entropy in turn, from a random start (oblivious spraying)"),
  };
  return policies;
}

}  // namespace

std::span<const PathPolicyInfo> PathPolicies() { return Policies(); }

std::span<const std::string> PathPolicyNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const PathPolicyInfo& policy : Policies()) list.push_back(policy.name);
    return list;
  }();
  return names;
}

std::unique_ptr<PathPolicy> CreatePathPolicy(const std::string& name, uint32_t entropies, Random& random) {
  for (const PathPolicyInfo& policy : Policies()) {
    if (policy.name == name) return policy.create(entropies, random);
  }
  return nullptr;
}

}  // namespace paceline
