#include "tools/study/report/columns.h"

#include <algorithm>

#include "tools/study/report/format.h"
#include "tools/study/report/run_stats.h"

namespace paceline::tools {
namespace {

struct TimeUnit {
  std::string name;
  double divisor;
};

// Microseconds up to a tenth of a second, then milliseconds, then seconds.
TimeUnit TimeUnitFor(const nlohmann::json& results) {
  double longest = 0;
  for (const auto& run : Runs(results)) longest = std::max(longest, NumberAt(run, "completion_us").value_or(0));
  if (longest >= 1e8) return {"s", 1e6};
  if (longest >= 1e5) return {"ms", 1e3};
  return {"\u00B5s", 1};
}

bool Interesting(const nlohmann::json& results, const Column& column) {
  const bool only_when_seen = column.path == "pfc_pauses" || column.path == "control_drops" ||
                              column.path == "fault_losses" || column.path == "victim_fct_us.mean" ||
                              column.path == "victim_alone_fct_us.mean";
  const auto& runs = Runs(results);
  return std::any_of(runs.begin(), runs.end(), [&](const nlohmann::json& run) {
    const auto value = NumberAt(run, column.path);
    return value && (!only_when_seen || *value != 0);
  });
}

}  // namespace

std::vector<Column> ColumnsFor(const nlohmann::json& results) {
  const TimeUnit time = TimeUnitFor(results);
  const std::string time_group = "Time";
  const std::string packets_group = "Packets";
  const std::string queue_group = "Longest queue";
  std::vector<Column> columns = {
      {"completion_us", time_group, "Completion", time.name,
       "From the start of the run to the moment the last flow is acknowledged. Lower is better.", Better::kLower,
       time.divisor, FormatNumber},
      {"ratio", time_group, "Over ideal", "\u00D7",
       "Completion divided by the earliest possible completion on this fabric. 1.000 means that the busiest link never "
       "idled and nothing was sent twice over it.",
       Better::kLower, 1, FormatRatio},
      {"fct_us.p50", time_group, "FCT p50", time.name,
       "Half of the flows completed within this time. A flow's completion time (FCT) runs from its start to its "
       "sender's notice that all has arrived.",
       Better::kLower, time.divisor, FormatNumber},
      {"fct_us.p99", time_group, "FCT p99", time.name, "99 % of the flows completed within this time. Lower is better.",
       Better::kLower, time.divisor, FormatNumber},
      {"slowdown.p99", time_group, "Slowdown p99", "\u00D7",
       "A flow's slowdown is its completion time over that of the same flow alone on an idle fabric; 99 % of the flows "
       "are at or below this one.",
       Better::kLower, 1, FormatNumber},
      {"goodput_gbps", time_group, "Goodput", "Gb/s",
       "Payload of all flows divided by the completion time. Higher is better.", Better::kHigher, 1, FormatNumber},
      {"step_us", "Training step", "Step", time.name,
       "From the start of the run to the end of everything, computing too. Lower is better.", Better::kLower,
       time.divisor, FormatNumber},
      {"communication_share", "Training step", "Communication", "%",
       "The part of the step that an infinitely fast network would save. Lower is better.", Better::kLower, 0.01,
       FormatNumber},
      {"victim_fct_us.mean", "Victims, mean FCT", "Beside", time.name,
       "Mean completion time of the victim flows while the incast runs beside them. Lower is better.", Better::kLower,
       time.divisor, FormatNumber},
      {"victim_alone_fct_us.mean", "Victims, mean FCT", "Alone", time.name,
       "Mean completion time of the same victim flows without the incast.", Better::kLower, time.divisor, FormatNumber},
      {"background.slowdown.p99", "Background", "Slowdown p99", "\u00D7",
       "Of the random flows beside the workload that finished before it did.", Better::kLower, 1, FormatNumber},
      {"drops", packets_group, "Dropped", "",
       "Data packets that switches dropped because a queue had no room (faults are counted apart).", Better::kLower, 1,
       FormatCount},
      {"trims", packets_group, "Trimmed", "",
       "Data packets whose payload a switch cut off because a queue had no room; the header went on and told the "
       "receiver.",
       Better::kLower, 1, FormatCount},
      {"retransmits", packets_group, "Sent again", "", "Data packets sent more than once (retransmits).",
       Better::kLower, 1, FormatCount},
      {"ecn_marks", packets_group, "ECN marks", "",
       "Data packets that switches marked as having met congestion. Neither good nor bad: some algorithms steer by "
       "marks.",
       Better::kNeither, 1, FormatCount},
      {"control_drops", packets_group, "Control lost", "",
       "Control packets that switches dropped because a queue had no room.", Better::kLower, 1, FormatCount},
      {"pfc_pauses", packets_group, "PFC pauses", "",
       "How often a switch told a neighbour to stop sending. A paused link blocks every flow on it.", Better::kLower, 1,
       FormatCount},
      {"fault_losses", packets_group, "Lost to faults", "",
       "Packets lost to the faults of the scenario: a link down, random loss, corruption.", Better::kNeither, 1,
       FormatCount},
      {"queue_max_bytes", queue_group, "Any port", "KB",
       "The longest data queue of any switch port at any time (1 KB = 1000 bytes). Lower is better.", Better::kLower,
       1000, FormatNumber},
      {"queue_last_hop_max_bytes", queue_group, "Last hop", "KB",
       "The longest data queue of any port that leads to a host. Lower is better.", Better::kLower, 1000, FormatNumber},
      {"queue_p99_bytes", queue_group, "p99", "KB",
       "The busiest port's data queue was at or below this length for 99 % of the time. Lower is better.",
       Better::kLower, 1000, FormatNumber},
  };
  std::erase_if(columns, [&](const Column& column) { return !Interesting(results, column); });
  return columns;
}

}  // namespace paceline::tools
