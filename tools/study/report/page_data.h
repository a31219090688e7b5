// What the page's scripts draw from: the results and the series, made small, as one JSON value.
//
// Who calls it: the report only; pure functions, any thread. The layout (all lists of points are two lists of the same
// length, x ascending):
//   {"version", "algorithms": [{"name", "colour", "dash"}],
//    "sections": [{"title", "results",  as written by `paceline study`, less wall_s
//      "limits": {"queue_bytes", "ecn_min_bytes", "ecn_max_bytes", "link_gbps", "ideal_gbps"},   any may be missing
//      "marking": {algorithm: {"ecn_min_bytes", "ecn_max_bytes"}},                  where it differs from the fabric's
//      "faults": [{"at_us", "until_us", "name"}],
//      "fct": {algorithm: {"x", "y", "count"}}, "slowdown": the same, cumulative over all seeds,
//      "by_size": {algorithm: {"bytes", "p50", "p99", "flows"}},                    slowdown; only when sizes differ
//      "series": [{"algorithm", "seed", "busiest_port", "last_hop_port",
//                  "queue", "last_hop_queue", "port_rate", "last_hop_rate", "total_rate": {"x", "y"}}]}]}
#pragma once

#include <nlohmann/json.hpp>

#include "tools/study/report/report.h"
#include "tools/study/report/tables.h"

namespace paceline::tools {

nlohmann::json PageData(const ReportPage& page, const StyleOf& styles);

// The results without what differs between two runs of the same study.
nlohmann::json StableResults(const nlohmann::json& results);

// The version that wrote the results; empty when they do not say.
std::string VersionOf(const ReportPage& page);

}  // namespace paceline::tools
