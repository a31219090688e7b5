#include "tools/study/workloads/rank_graph.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace paceline::tools {

RankKeys RankKeys::Read(PatternReader& reader, uint32_t ranks_per_host) {
  RankKeys keys;
  keys.ranks = reader.Count("ranks", 0, 0, 65536);
  keys.ranks_per_host = reader.Count("ranks_per_host", ranks_per_host, 1, 64);
  keys.nvlink_gbps = reader.Number("nvlink_gbps", 3600, 0.001, 1e6);
  keys.pinned = reader.Choice("rails", "sprayed", {"sprayed", "pinned"}) == "pinned";
  return keys;
}

absl::StatusOr<RankGraph> RankGraph::Create(WorkloadBuilder& builder, const RankKeys& keys) {
  const uint32_t hosts = builder.hosts().count;
  const uint32_t ranks = keys.ranks == 0 ? hosts * keys.ranks_per_host : keys.ranks;
  if (ranks % keys.ranks_per_host != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload.ranks = ", ranks, " must be a multiple of workload.ranks_per_host = ", keys.ranks_per_host));
  }
  const uint32_t used = ranks / keys.ranks_per_host;
  if (ranks < 2 || used > hosts) {
    return absl::InvalidArgumentError(absl::StrCat("workload.ranks = ", ranks, " must be from 2 to fabric.hosts = ",
                                                   hosts, " times workload.ranks_per_host = ", keys.ranks_per_host));
  }
  RankGraph graph(builder);
  graph.ranks_per_host_ = keys.ranks_per_host;
  graph.nvlink_gbps_ = keys.nvlink_gbps;
  graph.pinned_ = keys.pinned;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    graph.host_of_.push_back(static_cast<uint32_t>(rank / keys.ranks_per_host * hosts / used));
  }
  return graph;
}

uint8_t RankGraph::NicBetween(uint32_t from, uint32_t to) const {
  const uint32_t place = from % ranks_per_host_;
  if (!pinned_ || place != to % ranks_per_host_) return kAllNics;
  return static_cast<uint8_t>(place % builder_->hosts().nics);
}

Event RankGraph::NewEvent(uint32_t firings) {
  Trigger trigger;
  trigger.firings = firings;
  trigger.start = builder_->start();
  builder_->workload().triggers.push_back(std::move(trigger));
  return static_cast<Event>(builder_->workload().triggers.size() - 1);
}

Event RankGraph::Join(const std::vector<Event>& after) {
  const Event event = NewEvent(static_cast<uint32_t>(after.size()));
  for (Event one : after) Link(one, event);
  return event;
}

Event RankGraph::NewCompute(uint32_t rank, sim::Picos time, uint32_t firings) {
  const Event event = NewEvent(firings);
  trigger(event).delay = time;
  trigger(event).computes = true;
  trigger(event).host = host_of_[rank];
  return event;
}

Event RankGraph::Compute(uint32_t rank, sim::Picos time, const std::vector<Event>& after) {
  const Event event = NewCompute(rank, time, static_cast<uint32_t>(after.size()));
  for (Event one : after) Link(one, event);
  return event;
}

void RankGraph::Send(uint32_t from, uint32_t to, uint64_t bytes, Event after, Event into) {
  if (bytes == 0) return Link(after, into);
  if (host_of_[from] == host_of_[to]) {
    const Event copy = Join({after});
    trigger(copy).delay = std::llround(static_cast<double>(bytes) * 8000 / nvlink_gbps_);
    trigger(copy).host = host_of_[from];
    return Link(copy, into);
  }
  Flow& flow = builder_->AddFlow(host_of_[from], host_of_[to], bytes);
  flow.nic = NicBetween(from, to);
  flow.fires_when_received = into;
  if (after == kAtStart) return;
  flow.trigger = after;
  trigger(after).flows.push_back(static_cast<uint32_t>(builder_->workload().flows.size() - 1));
}

Event RankGraph::Send(uint32_t from, uint32_t to, uint64_t bytes, Event after) {
  const Event into = NewEvent(1);
  Send(from, to, bytes, after, into);
  return into;
}

void RankGraph::Link(Event after, Event target) {
  if (after == kAtStart) {
    --trigger(target).firings;
  } else {
    trigger(after).fires.push_back(target);
  }
}

uint64_t PartOf(uint64_t bytes, uint64_t parts, uint64_t index) {
  return bytes / parts + (index < bytes % parts ? 1 : 0);
}

}  // namespace paceline::tools
