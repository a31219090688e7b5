#include "tools/study/critical_path.h"

#include <algorithm>
#include <utility>

namespace paceline::tools {
namespace {

using sim::Picos;

constexpr Picos kNotStarted = -1;

class Search {
 public:
  Search(const Workload& workload, const CostModel& cost, bool copies_count)
      : workload_(workload),
        cost_(cost),
        copies_count_(copies_count),
        waits_for_(workload.triggers.size()),
        firings_(workload.triggers.size()),
        flows_in_(workload.triggers.size()),
        starts_(workload.flows.size(), kNotStarted) {}

  std::optional<CriticalPath> Find() {
    const std::vector<Trigger>& triggers = workload_.triggers;
    for (const Flow& flow : workload_.flows) {
      for (uint32_t fired : {flow.fires_when_sent, flow.fires_when_received}) CountEdge(fired);
    }
    for (const Trigger& trigger : triggers) {
      for (uint32_t fired : trigger.fires) CountEdge(fired);
    }
    for (uint32_t number = 0; number < triggers.size(); ++number) {
      if (waits_for_[number] == 0 && !triggers[number].one_at_a_time) ready_.push_back(number);
    }
    for (uint32_t index = 0; index < workload_.flows.size(); ++index) {
      if (StartsByItself(workload_.flows[index])) Start(index, workload_.flows[index].start);
    }
    while (!ready_.empty()) {
      const uint32_t number = ready_.back();
      ready_.pop_back();
      if (!GoOff(number)) return std::nullopt;
    }
    return Ended();
  }

 private:
  bool StartsByItself(const Flow& flow) const {
    return flow.trigger == kNoTrigger || workload_.triggers[flow.trigger].one_at_a_time;
  }

  void CountEdge(uint32_t trigger) {
    if (trigger != kNoTrigger) ++waits_for_[trigger];
  }

  void Fire(uint32_t trigger, Picos at) {
    if (trigger == kNoTrigger || workload_.triggers[trigger].one_at_a_time) return;
    firings_[trigger].push_back(at);
    if (--waits_for_[trigger] == 0) ready_.push_back(trigger);
  }

  void Start(uint32_t index, Picos at) {
    const Flow& flow = workload_.flows[index];
    const FlowCost cost = cost_.flow(flow);
    path_.flows = std::max(path_.flows, at + cost.sent);
    starts_[index] = at;
    for (const auto& [trigger, time] :
         {std::pair{flow.fires_when_sent, at + cost.sent}, std::pair{flow.fires_when_received, at + cost.received}}) {
      if (trigger == kNoTrigger || workload_.triggers[trigger].one_at_a_time) continue;
      flows_in_[trigger].push_back(index);
      Fire(trigger, time);
    }
  }

  bool GoOff(uint32_t number) {
    const Trigger& trigger = workload_.triggers[number];
    std::vector<Picos>& firings = firings_[number];
    Picos at = trigger.firings == 0 ? trigger.start : 0;
    if (trigger.firings > 0 && !firings.empty()) {
      const size_t last = std::min<size_t>(trigger.firings, firings.size()) - 1;
      std::nth_element(firings.begin(), firings.begin() + static_cast<ptrdiff_t>(last), firings.end());
      at = firings[last];
      // Flows that must all be there share links.
      if (trigger.firings >= firings.size() && flows_in_[number].size() > 1) {
        const std::optional<Picos> together = cost_.together(flows_in_[number], starts_);
        if (!together) return false;
        at = std::max(at, *together);
      }
    }
    if (trigger.computes || copies_count_) at += trigger.delay;
    path_.end = std::max(path_.end, at);
    for (uint32_t flow : trigger.flows) Start(flow, at);
    for (uint32_t fired : trigger.fires) Fire(fired, at);
    std::vector<Picos>().swap(firings);
    std::vector<uint32_t>().swap(flows_in_[number]);
    return true;
  }

  std::optional<CriticalPath> Ended() {
    std::vector<uint32_t> started;
    for (uint32_t index = 0; index < starts_.size(); ++index) {
      if (starts_[index] != kNotStarted) started.push_back(index);
    }
    const std::optional<Picos> together = started.empty() ? path_.flows : cost_.together(started, starts_);
    if (!together) return std::nullopt;
    path_.flows = std::max(path_.flows, *together);
    path_.end = std::max(path_.end, path_.flows);
    return path_;
  }

  const Workload& workload_;
  const CostModel& cost_;
  const bool copies_count_;
  std::vector<uint32_t> waits_for_;  // by trigger: firings still to come
  std::vector<std::vector<Picos>> firings_;
  std::vector<std::vector<uint32_t>> flows_in_;  // that fired it
  std::vector<Picos> starts_;                    // by flow
  std::vector<uint32_t> ready_;
  CriticalPath path_;
};

}  // namespace

std::optional<CriticalPath> FindCriticalPath(const Workload& workload, const CostModel& cost) {
  return Search(workload, cost, true).Find();
}

Picos ComputingAlone(const Workload& workload) {
  const auto computes = [](const Trigger& trigger) { return trigger.computes && trigger.delay > 0; };
  if (std::none_of(workload.triggers.begin(), workload.triggers.end(), computes)) return 0;
  const auto nothing = [](const Flow&) { return FlowCost(); };
  const auto none_together = [](const auto&, const auto&) { return std::optional<Picos>(0); };
  return Search(workload, {nothing, none_together}, false).Find()->end;
}

}  // namespace paceline::tools
