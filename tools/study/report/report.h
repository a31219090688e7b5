// The page of a study: one self-contained HTML file with a comparison table, charts and the scenario to repeat.
//
// Who calls it: `paceline study`, once, after the last run, from any thread; the functions keep no state.
// Who owns what: everything is passed by const reference and copied into the returned text.
// Units: as in each field's name; a microsecond of simulated time is `us`, a rate is in 10^9 bits per second.
// The page needs no network: scripts, styles and data are inside the file, and a content security policy in it forbids
// every request. It holds no wall-clock time or date, so the same results give the same bytes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace paceline::tools {

// One value over simulated time. Both lists have the same length; times ascend.
struct TimeSeries {
  std::vector<double> times_us;
  std::vector<double> values;
};

// What one run recorded beside its line of results. Anything may be empty: its chart is then left out. Long series may
// be handed over as they are, the page keeps a few hundred points of each (peaks survive in queues, means in rates).
struct RunSeries {
  std::string algorithm;
  uint64_t seed = 0;
  std::string busiest_port;         // for a person to read, e.g. "agg 5, port 4 to core 1"
  std::string last_hop_port;        // the port towards a host that held the longest queue
  TimeSeries queue_bytes;           // data queue of busiest_port
  TimeSeries last_hop_queue_bytes;  // data queue of last_hop_port
  TimeSeries port_rate_gbps;        // wire bytes that left busiest_port
  TimeSeries last_hop_rate_gbps;    // wire bytes that left last_hop_port
  TimeSeries total_rate_gbps;       // payload delivered to all receivers together, each byte once
  // One entry for each finished flow, in the same order in all three lists (any order).
  std::vector<double> fct_us;
  std::vector<double> slowdown;
  std::vector<double> flow_bytes;
};

struct ReportSeries {
  std::vector<RunSeries> runs;  // one for each entry of results["runs"]; matched by algorithm and seed
};

// One scenario of a study.
struct ReportSection {
  std::string title;    // empty: made from the scenario
  std::string shows;    // a sentence on why one should look at it; may be empty
  std::string command;  // the command that repeats it; empty: "paceline study scenario.toml"
  nlohmann::json results;
  ReportSeries series;
};

// A study of several scenarios on one page, with an overview of all of them at the top.
struct ReportPage {
  std::string title;
  std::string lead;  // one or two sentences under the title; may be empty
  std::vector<ReportSection> sections;
};

// The page of one scenario. `results` is the JSON that `paceline study --json` writes.
std::string RenderReport(const nlohmann::json& results, const ReportSeries& series);

std::string RenderReport(const ReportPage& page);

}  // namespace paceline::tools
