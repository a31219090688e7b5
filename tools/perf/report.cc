#include "tools/perf/report.h"

#include <algorithm>
#include <cstdio>

namespace paceline::tools {
namespace {

std::string SizeText(uint64_t size) {
  if (size % (1u << 20) == 0) return std::to_string(size >> 20) + " MiB";
  if (size % (1u << 10) == 0) return std::to_string(size >> 10) + " KiB";
  return std::to_string(size) + " B";
}

// What nccl-tests reckon with: the bytes of an operation (of one rank), and the factor from algorithm to bus bandwidth.
struct Bandwidth {
  double bytes = 0;
  double factor = 1;
};

Bandwidth BandwidthOf(const std::string& kind, uint64_t size, double ranks) {
  const auto bytes = static_cast<double>(size);
  if (kind == "alltoall") return {bytes * ranks, (ranks - 1) / ranks};
  if (kind == "allreduce") return {bytes, 2 * (ranks - 1) / ranks};
  if (kind == "incast") return {bytes * ranks, (ranks - 1) / ranks};  // a gather
  return {bytes, 1};                                                  // a permutation: send and receive
}

}  // namespace

SizeReport JoinResults(const TestSpec& spec, const std::string& lane, uint64_t size, uint32_t window,
                       const std::vector<RankResult>& ranks) {
  RankResult all;
  double seconds = 0;
  for (const RankResult& rank : ranks) {
    all.messages += rank.messages;
    all.messages_not_started += rank.messages_not_started;
    all.bytes += rank.bytes;
    all.cpu_seconds += rank.cpu_seconds;
    all.iterations = std::max(all.iterations, rank.iterations);
    all.latency.Merge(rank.latency);
    all.operation.Merge(rank.operation);
    all.verified &= rank.verified;
    all.checked_bytes += rank.checked_bytes;
    all.retransmits += rank.retransmits;
    all.retransmitted_bytes += rank.retransmitted_bytes;
    all.base_rtt_us = std::max(all.base_rtt_us, rank.base_rtt_us);
    all.drops += rank.drops;
    all.impaired_bytes += rank.impaired_bytes;
    all.data_bytes += rank.data_bytes;
    if (!rank.latency_kind.empty()) all.latency_kind = rank.latency_kind;
    seconds = std::max(seconds, rank.seconds);
  }
  const bool pair = spec.kind == "pair";
  const double scale = all.latency_kind == "half round trip" ? 0.0005 : 0.001;
  SizeReport report;
  report.size = size;
  report.verified = all.verified && all.checked_bytes > 0;
  nlohmann::json& json = report.json;
  json = {{"op", pair ? spec.op : spec.kind},
          {"lane", lane},
          {"size", size},
          {"messages", all.messages},
          {"bytes", all.bytes},
          {"seconds", seconds},
          {"gbps", seconds > 0 ? static_cast<double>(all.bytes) * 8 / seconds / 1e9 : 0},
          {"messages_per_second", seconds > 0 ? static_cast<double>(all.messages) / seconds : 0},
          {"latency_us", all.latency.Summary(scale)},
          {"latency_kind", all.latency_kind},
          {"cpu_seconds", all.cpu_seconds},
          {"retransmits", all.retransmits},
          {"retransmitted_bytes", all.retransmitted_bytes},
          {"data_bytes", all.data_bytes},
          {"impaired_bytes", all.impaired_bytes},
          {"base_rtt_us", all.base_rtt_us},
          {"drops", all.drops},
          {"verified", report.verified},
          {"verified_bytes", all.checked_bytes},
          {"ranks", ranks.size()},
          {"window", window},
          {"congestion_control", spec.congestion_control}};
  if (pair) {
    json["bidirectional"] = spec.bidirectional;
    if (spec.rate > 0) {
      json["rate_gbps"] = spec.rate / 1e9;
      json["messages_not_started"] = all.messages_not_started;
    }
  } else {
    const auto world = static_cast<double>(ranks.size());
    const Bandwidth bandwidth = BandwidthOf(spec.kind, size, world);
    const double operations = static_cast<double>(all.iterations);
    const double algbw = seconds > 0 ? bandwidth.bytes * operations / seconds / 1e9 : 0;
    json["iterations"] = all.iterations;
    json["algbw"] = algbw;
    json["busbw"] = algbw * bandwidth.factor;
    if (all.operation.count() > 0) json["operation_us"] = all.operation.Summary(0.001);
  }
  json["counters"] = nlohmann::json::array();
  for (const RankResult& rank : ranks) json["counters"].push_back(rank.counters);
  report.histogram = all.latency.Table(scale);
  return report;
}

std::string TableHeading(const TestSpec& spec, uint32_t ranks) {
  char line[256];
  if (spec.kind == "pair") {
    std::snprintf(line, sizeof(line), "%-10s %9s %10s %9s  %9s %9s %9s %9s  %7s %7s %8s\n", "op", "size", "messages",
                  "Gb/s", "p50 us", "p99 us", "p99.9 us", "max us", "resent", "drops", "verified");
    return line;
  }
  std::snprintf(
      line, sizeof(line),
      "%s, %u ranks; algbw and busbw in GB/s as in nccl-tests\n%9s %10s %9s %8s %8s  %9s %9s %9s  %10s %7s %7s %8s\n",
      spec.kind.c_str(), ranks, "size", "iterations", "Gb/s", "algbw", "busbw", "p50 us", "p99 us", "max us",
      "op p50 us", "resent", "drops", "verified");
  return line;
}

std::string TableRow(const TestSpec& spec, const SizeReport& report) {
  const nlohmann::json& json = report.json;
  const nlohmann::json& latency = json["latency_us"];
  const char* verified = report.verified ? "yes" : "NO";
  char line[256];
  if (spec.kind == "pair") {
    std::snprintf(line, sizeof(line), "%-10s %9s %10llu %9.3f  %9.2f %9.2f %9.2f %9.2f  %7llu %7llu %8s\n",
                  spec.op.c_str(), SizeText(report.size).c_str(),
                  static_cast<unsigned long long>(json["messages"].get<uint64_t>()), json["gbps"].get<double>(),
                  latency["p50"].get<double>(), latency["p99"].get<double>(), latency["p999"].get<double>(),
                  latency["max"].get<double>(), static_cast<unsigned long long>(json["retransmits"].get<uint64_t>()),
                  static_cast<unsigned long long>(json["drops"].get<uint64_t>()), verified);
    const uint64_t not_started = json.value("messages_not_started", uint64_t{0});
    if (not_started == 0) return line;
    return line + std::to_string(not_started) +
           " more messages were due at this --rate, and not started in twice --seconds\n";
  }
  const double operation = json.contains("operation_us") ? json["operation_us"]["p50"].get<double>() : 0;
  std::snprintf(line, sizeof(line), "%9s %10llu %9.3f %8.3f %8.3f  %9.2f %9.2f %9.2f  %10.2f %7llu %7llu %8s\n",
                SizeText(report.size).c_str(), static_cast<unsigned long long>(json["iterations"].get<uint64_t>()),
                json["gbps"].get<double>(), json["algbw"].get<double>(), json["busbw"].get<double>(),
                latency["p50"].get<double>(), latency["p99"].get<double>(), latency["max"].get<double>(), operation,
                static_cast<unsigned long long>(json["retransmits"].get<uint64_t>()),
                static_cast<unsigned long long>(json["drops"].get<uint64_t>()), verified);
  return line;
}

nlohmann::json ReportJson(const std::vector<SizeReport>& reports, const std::string& version) {
  if (reports.size() == 1) {
    nlohmann::json one = reports[0].json;
    one["paceline"] = version;
    return one;
  }
  nlohmann::json runs = nlohmann::json::array();
  for (const SizeReport& report : reports) runs.push_back(report.json);
  return {{"paceline", version}, {"runs", runs}};
}

}  // namespace paceline::tools
