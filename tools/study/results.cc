#include "tools/study/results.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace paceline::tools {
namespace {

using nlohmann::json;

// Nearest rank: the smallest value that at least the share `quantile` of all is at or below.
double Percentile(const std::vector<double>& ascending, double quantile) {
  const auto rank = static_cast<size_t>(std::ceil(quantile * static_cast<double>(ascending.size()) - 1e-9));
  return ascending[std::min(ascending.size() - 1, rank == 0 ? 0 : rank - 1)];
}

json Distribution(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (double value : values) sum += value;
  return {{"mean", sum / static_cast<double>(values.size())},
          {"p50", Percentile(values, 0.5)},
          {"p90", Percentile(values, 0.9)},
          {"p99", Percentile(values, 0.99)},
          {"p999", Percentile(values, 0.999)},
          {"max", values.back()}};
}

double FctMicros(const FlowOutcome& flow) { return static_cast<double>(flow.finish_ns - flow.start_ns) / 1e3; }

// From the start of the run to the end of the last flow, background apart; negative when one is not finished.
double CompletionMicros(const RunOutcome& run) {
  int64_t last = 0;
  for (size_t i = 0; i < run.flows.size(); ++i) {
    if (run.workload.flows[i].background) continue;
    if (run.flows[i].finish_ns < 0) return -1;
    last = std::max(last, run.flows[i].finish_ns);
  }
  return static_cast<double>(last) / 1e3;
}

// Everything is over: what computes may still do so after its last flow.
bool IsOver(const RunOutcome& run) { return CompletionMicros(run) >= 0 && (run.compute_us <= 0 || run.end_ns >= 0); }

TimeSeries QueueSeries(const RunOutcome& run, const PortSeries& port) {
  TimeSeries series;
  for (size_t i = 0; i < port.queue_peak_bytes.size(); ++i) {
    series.times_us.push_back(
        static_cast<double>(run.first_interval_ns + run.interval_ns * static_cast<int64_t>(i + 1)) / 1e3);
    series.values.push_back(port.queue_peak_bytes[i]);
  }
  return series;
}

template <typename Bytes>
TimeSeries RateSeries(const RunOutcome& run, const std::vector<Bytes>& bytes) {
  TimeSeries series;
  for (size_t i = 0; i < bytes.size(); ++i) {
    series.times_us.push_back(
        static_cast<double>(run.first_interval_ns + run.interval_ns * static_cast<int64_t>(i + 1)) / 1e3);
    series.values.push_back(static_cast<double>(bytes[i]) * 8 / static_cast<double>(run.interval_ns));
  }
  return series;
}

}  // namespace

bool AllFinished(const std::vector<RunOutcome>& runs) { return std::all_of(runs.begin(), runs.end(), IsOver); }

json RunToJson(const RunOutcome& run) {
  std::vector<double> fct, slowdown, victims, background_fct, background_slowdown;
  uint64_t bytes = 0, flows = 0;
  for (size_t i = 0; i < run.flows.size(); ++i) {
    const Flow& flow = run.workload.flows[i];
    const bool finished = run.flows[i].finish_ns >= 0;
    if (flow.background) {
      if (!finished) continue;
      background_fct.push_back(FctMicros(run.flows[i]));
      background_slowdown.push_back(run.flows[i].slowdown);
      continue;
    }
    ++flows;
    bytes += flow.bytes;
    if (!finished) continue;
    fct.push_back(FctMicros(run.flows[i]));
    slowdown.push_back(run.flows[i].slowdown);
    if (flow.victim) victims.push_back(fct.back());
  }
  const double completion = CompletionMicros(run);
  const bool finished = completion >= 0;
  json out = {{"algorithm", run.algorithm},
              {"seed", run.seed},
              {"flows", flows},
              {"finished", fct.size()},
              {"missed_deadline", !IsOver(run)},
              {"failed_operations", run.failed_operations},
              {"packets", run.packets},
              {"completion_us", finished ? json(completion) : json(nullptr)},
              {"ideal_us", run.ideal_us},
              {"ratio", finished ? json(completion / run.ideal_us) : json(nullptr)},
              {"fct_us", Distribution(fct)},
              {"slowdown", Distribution(slowdown)},
              {"drops", run.fabric.drops},
              {"trims", run.fabric.trims},
              {"ecn_marks", run.fabric.ecn_marks},
              {"pfc_pauses", run.fabric.pfc_pauses},
              {"retransmits", run.endpoints.retransmits},
              {"control_drops", run.fabric.control_drops},
              {"fault_losses", run.fabric.fault_losses},
              {"fault_duplicates", run.fabric.fault_duplicates},
              {"fault_reorders", run.fabric.fault_reorders},
              {"fault_corruptions", run.fabric.fault_corruptions},
              {"queue_max_bytes", run.queue_max_bytes},
              {"queue_last_hop_max_bytes", run.queue_last_hop_max_bytes},
              {"queue_p99_bytes", run.queue_p99_bytes},
              {"goodput_gbps", finished ? json(static_cast<double>(bytes) * 8 / (completion * 1e3)) : json(nullptr)},
              {"packet_hops", run.fabric.packet_hops},
              {"events", run.fabric.events},
              {"wall_s", run.wall_s}};
  if (run.nic_sent_bytes.size() > 1) out["nic_sent_bytes"] = run.nic_sent_bytes;
  if (run.pfc_paused_us) out["pfc_paused_us"] = *run.pfc_paused_us;
  if (!run.recoveries.empty()) {
    double longest = 0;
    bool all = true;
    for (const Recovery& recovery : run.recoveries) {
      all = all && recovery.recovery_us.has_value();
      longest = std::max(longest, recovery.recovery_us.value_or(0));
      out["recoveries"].push_back(
          {{"at_us", recovery.at_us},
           {"recovery_us", recovery.recovery_us ? json(*recovery.recovery_us) : json(nullptr)}});
    }
    out["recovery_us"] = all ? json(longest) : json(nullptr);
  }
  if (run.ideal_window_us) {
    out["ideal_window_us"] = *run.ideal_window_us;
    out["ratio_window"] = finished ? json(completion / *run.ideal_window_us) : json(nullptr);
  }
  if (run.damaged) out["ideal_damaged_us"] = run.ideal_damaged_us ? json(*run.ideal_damaged_us) : json(nullptr);
  if (flows < run.flows.size()) {
    out["background"] = {{"flows", run.flows.size() - flows},
                         {"started", std::count_if(run.flows.begin() + static_cast<ptrdiff_t>(flows), run.flows.end(),
                                                   [](const FlowOutcome& flow) { return flow.start_ns >= 0; })},
                         {"finished", background_fct.size()},
                         {"fct_us", Distribution(background_fct)},
                         {"slowdown", Distribution(background_slowdown)}};
  }
  if (run.compute_us > 0) {
    const bool over = run.end_ns >= 0;
    const double step = static_cast<double>(run.end_ns) / 1e3;
    out["step_us"] = over ? json(step) : json(nullptr);
    out["ideal_step_us"] = run.ideal_end_us;
    out["compute_us"] = run.compute_us;
    out["communication_share"] = over ? json(1 - run.compute_us / step) : json(nullptr);
  }
  if (!victims.empty() || !run.victim_alone_fct_us.empty()) {
    out["victim_fct_us"] = Distribution(victims);
    out["victim_alone_fct_us"] = Distribution(run.victim_alone_fct_us);
  }
  json& transport = out["transport"];
  const EndpointCounters& endpoints = run.endpoints;
#define PACELINE_PUT(name, unit, meaning) \
  if (endpoints.name != 0) transport[#name] = endpoints.name;
  PACELINE_ENDPOINT_COUNTERS(PACELINE_PUT)
#undef PACELINE_PUT
  return out;
}

json SectionToJson(const StudySection& section, const std::vector<RunOutcome>& runs) {
  json list = json::array();
  for (const RunOutcome& run : runs) list.push_back(RunToJson(run));
  return {{"paceline", PACELINE_VERSION}, {"scenario", section.scenario.resolved}, {"runs", std::move(list)}};
}

json StudyToJson(const Study& study, const std::vector<std::vector<RunOutcome>>& runs) {
  if (!study.has_sections) return SectionToJson(study.sections[0], runs[0]);
  json out = {{"paceline", PACELINE_VERSION},
              {"title", study.title},
              {"scenario", study.sections[0].scenario.resolved},
              {"runs", json::array()},
              {"sections", json::array()}};
  for (size_t i = 0; i < study.sections.size(); ++i) {
    json section = SectionToJson(study.sections[i], runs[i]);
    section["title"] = study.sections[i].title;
    for (json run : section["runs"]) {
      run["section"] = study.sections[i].title;
      out["runs"].push_back(std::move(run));
    }
    out["sections"].push_back(std::move(section));
  }
  return out;
}

ReportSeries SeriesOf(const std::vector<RunOutcome>& runs) {
  ReportSeries all;
  for (const RunOutcome& run : runs) {
    RunSeries series;
    series.algorithm = run.algorithm;
    series.seed = run.seed;
    series.busiest_port = run.busiest.name;
    series.last_hop_port = run.last_hop.name;
    series.queue_bytes = QueueSeries(run, run.busiest);
    series.last_hop_queue_bytes = QueueSeries(run, run.last_hop);
    series.port_rate_gbps = RateSeries(run, run.busiest.sent_bytes);
    series.last_hop_rate_gbps = RateSeries(run, run.last_hop.sent_bytes);
    series.total_rate_gbps = RateSeries(run, run.delivered_bytes);
    for (size_t i = 0; i < run.flows.size(); ++i) {
      if (run.flows[i].finish_ns < 0 || run.workload.flows[i].background) continue;
      series.fct_us.push_back(FctMicros(run.flows[i]));
      series.slowdown.push_back(run.flows[i].slowdown);
      series.flow_bytes.push_back(static_cast<double>(run.workload.flows[i].bytes));
    }
    all.runs.push_back(std::move(series));
  }
  return all;
}

void WriteFlowsCsv(const Study& study, const std::vector<std::vector<RunOutcome>>& runs, std::ostream& out) {
  out << "section,algorithm,seed,flow,source,destination,bytes,victim,start_us,finish_us,fct_us,slowdown,background\n";
  for (size_t section = 0; section < runs.size(); ++section) {
    std::string title = study.sections[section].title;
    std::replace(title.begin(), title.end(), '"', '\'');
    for (const RunOutcome& run : runs[section]) {
      for (size_t i = 0; i < run.flows.size(); ++i) {
        const Flow& flow = run.workload.flows[i];
        const FlowOutcome& outcome = run.flows[i];
        out << '"' << title << "\"," << run.algorithm << ',' << run.seed << ',' << i << ',' << flow.source << ','
            << flow.destination << ',' << flow.bytes << ',' << (flow.victim ? 1 : 0) << ',';
        if (outcome.start_ns >= 0) out << absl::StrFormat("%.3f", static_cast<double>(outcome.start_ns) / 1e3);
        out << ',';
        if (outcome.finish_ns >= 0) {
          out << absl::StrFormat("%.3f,%.3f,%.4f", static_cast<double>(outcome.finish_ns) / 1e3, FctMicros(outcome),
                                 outcome.slowdown);
        } else {
          out << ",,";
        }
        out << ',' << (flow.background ? 1 : 0) << '\n';
      }
    }
  }
}

std::string TableOf(const StudySection& section, const std::vector<RunOutcome>& runs) {
  struct Row {
    int runs = 0, unfinished = 0;
    double completion = 0, ratio = 0, slowdown = 0;  // slowdown 0: no flow finished
    uint64_t drops = 0, trims = 0, retransmits = 0, queue = 0;
  };
  std::map<std::string, Row> rows;
  for (const RunOutcome& run : runs) {
    Row& row = rows[run.algorithm];
    ++row.runs;
    const double completion = CompletionMicros(run);
    if (!IsOver(run)) ++row.unfinished;
    row.completion += completion;
    row.ratio = std::max(row.ratio, completion / run.ideal_us);
    std::vector<double> slowdown;
    for (size_t i = 0; i < run.flows.size(); ++i) {
      if (run.flows[i].finish_ns >= 0 && !run.workload.flows[i].background) slowdown.push_back(run.flows[i].slowdown);
    }
    std::sort(slowdown.begin(), slowdown.end());
    if (!slowdown.empty()) row.slowdown = std::max(row.slowdown, Percentile(slowdown, 0.99));
    row.drops += run.fabric.drops;
    row.trims += run.fabric.trims;
    row.retransmits += run.endpoints.retransmits;
    row.queue = std::max(row.queue, run.queue_max_bytes);
  }
  std::string text = absl::StrFormat("%-14s %14s %9s %13s %9s %9s %9s %13s\n", "algorithm", "completion us", "x ideal",
                                     "p99 slowdown", "drops", "trims", "resent", "max queue KB");
  for (const AlgorithmChoice& algorithm : section.scenario.algorithms) {
    const Row& row = rows[algorithm.name];
    if (row.unfinished > 0) {
      const std::string slowdown = row.slowdown > 0 ? absl::StrFormat("%.2f", row.slowdown) : "-";
      absl::StrAppendFormat(&text, "%-14s %14s %9s %13s %9d %9d %9d %13.1f   %d of %d runs missed the deadline\n",
                            algorithm.name, "-", "-", slowdown, row.drops, row.trims, row.retransmits,
                            static_cast<double>(row.queue) / 1e3, row.unfinished, row.runs);
      continue;
    }
    absl::StrAppendFormat(&text, "%-14s %14.1f %9.3f %13.2f %9d %9d %9d %13.1f\n", algorithm.name,
                          row.completion / row.runs, row.ratio, row.slowdown, row.drops, row.trims, row.retransmits,
                          static_cast<double>(row.queue) / 1e3);
  }
  return text;
}

}  // namespace paceline::tools
