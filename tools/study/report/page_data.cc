#include "tools/study/report/page_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tools/study/report/describe.h"
#include "tools/study/report/downsample.h"
#include "tools/study/report/format.h"
#include "tools/study/report/run_stats.h"

namespace paceline::tools {
namespace {

// Points in all time series of a page together: about 14 bytes each, so that a page stays under 2 MB.
constexpr size_t kPointBudget = 60000;
constexpr size_t kMostPoints = 600;   // of one series: more than a chart has pixels for
constexpr size_t kFewestPoints = 60;  // of one series
constexpr size_t kSeriesPerRun = 5;
constexpr size_t kDistributionPoints = 400;
constexpr size_t kMostSizes = 24;  // bins of flow sizes

nlohmann::json Rounded(const std::vector<double>& values, int digits) {
  nlohmann::json list = nlohmann::json::array();
  for (const double value : values) {
    const double rounded = RoundSignificant(value, digits);
    if (rounded == std::floor(rounded) && std::fabs(rounded) < 1e15) {
      list.push_back(static_cast<int64_t>(rounded));
    } else {
      list.push_back(rounded);
    }
  }
  return list;
}

nlohmann::json Points(const TimeSeries& series) {
  return {{"x", Rounded(series.times_us, 7)}, {"y", Rounded(series.values, 4)}};
}

nlohmann::json SeriesJson(const RunSeries& run, size_t points) {
  return {{"algorithm", run.algorithm},
          {"seed", run.seed},
          {"busiest_port", run.busiest_port},
          {"last_hop_port", run.last_hop_port},
          {"queue", Points(KeepPeaks(run.queue_bytes, points))},
          {"last_hop_queue", Points(KeepPeaks(run.last_hop_queue_bytes, points))},
          {"port_rate", Points(KeepMeans(run.port_rate_gbps, points))},
          {"last_hop_rate", Points(KeepMeans(run.last_hop_rate_gbps, points))},
          {"total_rate", Points(KeepMeans(run.total_rate_gbps, points))}};
}

// All flows of an algorithm, over its seeds.
std::vector<double> Pooled(const ReportSeries& series, const std::string& algorithm,
                           std::vector<double> RunSeries::*member) {
  std::vector<double> all;
  for (const auto& run : series.runs) {
    if (run.algorithm == algorithm) all.insert(all.end(), (run.*member).begin(), (run.*member).end());
  }
  return all;
}

nlohmann::json Distributions(const ReportSeries& series, std::vector<double> RunSeries::*member) {
  nlohmann::json out = nlohmann::json::object();
  std::set<std::string> names;
  for (const auto& run : series.runs) names.insert(run.algorithm);
  for (const auto& name : names) {
    const Distribution distribution = MakeDistribution(Pooled(series, name, member), kDistributionPoints);
    if (distribution.count == 0) continue;
    out[name] = {{"x", Rounded(distribution.values, 6)},
                 {"y", Rounded(distribution.fractions, 6)},
                 {"count", distribution.count}};
  }
  return out;
}

// The upper ends of the size bins: the sizes themselves while they are few, otherwise powers of a constant factor.
std::vector<double> SizeBins(const std::set<double>& sizes) {
  if (sizes.size() <= kMostSizes) return {sizes.begin(), sizes.end()};
  const double low = std::max(1.0, *sizes.begin());
  const double high = *sizes.rbegin();
  std::vector<double> bins;
  for (size_t i = 1; i <= kMostSizes; ++i) {
    bins.push_back(std::ceil(low * std::pow(high / low, static_cast<double>(i) / kMostSizes)));
  }
  bins.back() = high;
  return bins;
}

nlohmann::json SlowdownBySize(const ReportSeries& series) {
  std::set<double> sizes;
  for (const auto& run : series.runs) {
    for (const double bytes : run.flow_bytes) {
      if (std::isfinite(bytes)) sizes.insert(bytes);
    }
  }
  nlohmann::json out = nlohmann::json::object();
  if (sizes.size() < 2) return out;
  const std::vector<double> bins = SizeBins(sizes);
  std::map<std::string, std::vector<std::vector<double>>> binned;
  for (const auto& run : series.runs) {
    auto& lists = binned.try_emplace(run.algorithm, bins.size()).first->second;
    const size_t flows = std::min(run.flow_bytes.size(), run.slowdown.size());
    for (size_t i = 0; i < flows; ++i) {
      if (!std::isfinite(run.flow_bytes[i]) || !std::isfinite(run.slowdown[i])) continue;
      const auto bin = std::lower_bound(bins.begin(), bins.end(), run.flow_bytes[i]);
      lists[static_cast<size_t>(bin - bins.begin())].push_back(run.slowdown[i]);
    }
  }
  for (auto& [name, lists] : binned) {
    std::vector<double> bytes;
    std::vector<double> p50;
    std::vector<double> p99;
    nlohmann::json flows = nlohmann::json::array();
    for (size_t bin = 0; bin < bins.size(); ++bin) {
      if (lists[bin].empty()) continue;
      std::sort(lists[bin].begin(), lists[bin].end());
      bytes.push_back(bins[bin]);
      p50.push_back(Quantile(lists[bin], 0.5));
      p99.push_back(Quantile(lists[bin], 0.99));
      flows.push_back(lists[bin].size());
    }
    if (bytes.empty()) continue;
    out[name] = {{"bytes", Rounded(bytes, 6)}, {"p50", Rounded(p50, 5)}, {"p99", Rounded(p99, 5)}, {"flows", flows}};
  }
  return out;
}

void CopyNumber(const nlohmann::json& from, const std::string& path, const std::string& key, nlohmann::json& to) {
  const auto value = NumberAt(from, path);
  if (value && *value > 0) to[key] = *value;
}

nlohmann::json Limits(const nlohmann::json& results) {
  const nlohmann::json& scenario = Scenario(results);
  nlohmann::json limits = nlohmann::json::object();
  for (const char* key : {"queue_bytes", "ecn_min_bytes", "ecn_max_bytes", "link_gbps"}) {
    CopyNumber(scenario, std::string("fabric.") + key, key, limits);
  }
  if (!PortsHaveALimit(scenario)) limits.erase("queue_bytes");
  // The mean rate of a run that takes exactly the ideal time.
  for (const auto& run : Runs(results)) {
    const auto goodput = NumberAt(run, "goodput_gbps");
    const auto completion = NumberAt(run, "completion_us");
    const auto ideal = NumberAt(run, "ideal_us");
    if (!Finished(run) || !goodput || !completion || !ideal || *ideal <= 0) continue;
    limits["ideal_gbps"] = RoundSignificant(*goodput * *completion / *ideal, 5);
    break;
  }
  return limits;
}

// The thresholds in an algorithm's own table, where they are not the fabric's.
nlohmann::json Marking(const nlohmann::json& results) {
  nlohmann::json marking = nlohmann::json::object();
  const nlohmann::json& scenario = Scenario(results);
  const auto cc = scenario.find("cc");
  if (cc == scenario.end() || !cc->is_object()) return marking;
  for (const auto& name : AlgorithmsOf(results)) {
    if (!cc->contains(name)) continue;
    for (const char* key : {"ecn_min_bytes", "ecn_max_bytes"}) {
      const auto own = NumberAt((*cc)[name], key);
      if (own && *own > 0 && own != NumberAt(scenario, std::string("fabric.") + key)) marking[name][key] = *own;
    }
  }
  return marking;
}

nlohmann::json Faults(const nlohmann::json& scenario) {
  nlohmann::json out = nlohmann::json::array();
  const auto faults = scenario.find("fault");
  if (faults == scenario.end() || !faults->is_array()) return out;
  for (const auto& fault : *faults) {
    std::string name = TextAt(fault, "kind");
    std::replace(name.begin(), name.end(), '_', ' ');
    nlohmann::json entry = {
        {"at_us", NumberAt(fault, "at_us").value_or(0)}, {"name", name}, {"target", TextAt(fault, "target")}};
    CopyNumber(fault, "until_us", "until_us", entry);
    out.push_back(entry);
  }
  return out;
}

nlohmann::json SectionJson(const ReportSection& section, size_t points) {
  nlohmann::json series = nlohmann::json::array();
  for (const auto& run : section.series.runs) series.push_back(SeriesJson(run, points));
  const nlohmann::json& scenario = Scenario(section.results);
  return {{"title", section.title.empty() ? DescribeTitle(scenario) : section.title},
          {"results", StableResults(section.results)},
          {"limits", Limits(section.results)},
          {"marking", Marking(section.results)},
          {"faults", Faults(scenario)},
          {"fct", Distributions(section.series, &RunSeries::fct_us)},
          {"slowdown", Distributions(section.series, &RunSeries::slowdown)},
          {"by_size", SlowdownBySize(section.series)},
          {"series", series}};
}

}  // namespace

nlohmann::json PageData(const ReportPage& page, const StyleOf& styles) {
  size_t runs = 0;
  for (const auto& section : page.sections) runs += section.series.runs.size();
  const size_t points =
      std::clamp(kPointBudget / std::max<size_t>(1, runs * kSeriesPerRun), kFewestPoints, kMostPoints);

  nlohmann::json algorithms = nlohmann::json::array();
  std::set<std::string> seen;
  for (const auto& section : page.sections) {
    for (const auto& name : AlgorithmsOf(section.results)) {
      if (seen.insert(name).second)
        algorithms.push_back({{"name", name}, {"colour", styles.at(name).colour}, {"dash", styles.at(name).dash}});
    }
  }
  nlohmann::json sections = nlohmann::json::array();
  for (const auto& section : page.sections) sections.push_back(SectionJson(section, points));
  return {{"version", VersionOf(page)}, {"algorithms", algorithms}, {"sections", sections}};
}

nlohmann::json StableResults(const nlohmann::json& results) {
  nlohmann::json stable = results;
  if (!stable.is_object()) return nlohmann::json::object();
  const auto runs = stable.find("runs");
  if (runs == stable.end() || !runs->is_array()) return stable;
  for (auto& run : *runs) {
    if (run.is_object()) run.erase("wall_s");
  }
  return stable;
}

std::string VersionOf(const ReportPage& page) {
  for (const auto& section : page.sections) {
    std::string version = TextAt(section.results, "paceline");
    if (!version.empty()) return version;
  }
  return "";
}

}  // namespace paceline::tools
