// Steps of ranks (GPUs) that wait for each other, as flows and triggers: what collectives and training are built from.
//
// Rank r sits on the host of its group of `ranks_per_host`. What one rank sends to another of the same host does not
// touch the fabric: it is a delay at the speed of NVLink, as if each transfer were alone. Between hosts a message is
// spread over all NICs; or, with ranks pinned to rails, what goes between ranks of equal place in their hosts takes the
// NIC of that place on both sides, as a channel of a collective library does.
//
// Thread rule: as the builder that it adds to, which must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/study/workloads/pattern.h"

namespace paceline::tools {

// Something that happens once: the number of a trigger.
using Event = uint32_t;
inline constexpr Event kAtStart = kNoTrigger;  // of the workload

// The keys of everything that is built from ranks.
struct RankKeys {
  uint32_t ranks = 0;  // 0: as many as the hosts hold
  uint32_t ranks_per_host = 1;
  double nvlink_gbps = 3600;  // of one rank, each way
  bool pinned = false;        // to rails
  static RankKeys Read(PatternReader& reader, uint32_t ranks_per_host);
};

class RankGraph {
 public:
  // Refuses ranks that the hosts do not hold.
  static absl::StatusOr<RankGraph> Create(WorkloadBuilder& builder, const RankKeys& keys);

  uint32_t ranks() const { return static_cast<uint32_t>(host_of_.size()); }
  uint32_t ranks_per_host() const { return ranks_per_host_; }
  uint32_t HostOf(uint32_t rank) const { return host_of_[rank]; }

  // Happens when it was fired so many times; 0: at the start.
  Event NewEvent(uint32_t firings);
  // When all of these have happened.
  Event Join(const std::vector<Event>& after);
  // `rank` computes, when it was fired so many times; or after all of these.
  Event NewCompute(uint32_t rank, sim::Picos time, uint32_t firings);
  Event Compute(uint32_t rank, sim::Picos time, const std::vector<Event>& after);
  // `from` sends to `to`; `into` is fired when all has arrived. No bytes: at once.
  void Send(uint32_t from, uint32_t to, uint64_t bytes, Event after, Event into);
  Event Send(uint32_t from, uint32_t to, uint64_t bytes, Event after);
  // `target` waits for one firing less: that by `after`.
  void Link(Event after, Event target);

 private:
  explicit RankGraph(WorkloadBuilder& builder) : builder_(&builder) {}
  // By which NIC.
  uint8_t NicBetween(uint32_t from, uint32_t to) const;
  Trigger& trigger(Event event) { return builder_->workload().triggers[event]; }

  WorkloadBuilder* builder_;
  uint32_t ranks_per_host_ = 1;
  double nvlink_gbps_ = 0;
  bool pinned_ = false;
  std::vector<uint32_t> host_of_;
};

// Part `index` when `bytes` are cut into `parts` as even as they can be.
uint64_t PartOf(uint64_t bytes, uint64_t parts, uint64_t index);

}  // namespace paceline::tools
