#include "tests/unit/tools/study/report/sample_data.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace paceline::tools {
namespace {

// How an imaginary controller behaves: the later ones fill queues more and finish later.
struct Character {
  double late;       // completion over ideal, less one
  double queue;      // mean queue as a share of the limit
  double swing;      // of the queue
  double loss;       // packets lost for each needed
  double period_us;  // of the queue's swing
};

Character CharacterOf(size_t index) {
  const Character known[] = {{0.004, 0.18, 0.05, 0, 60},
                             {0.035, 0.42, 0.2, 0.002, 220},
                             {0.162, 0.35, 0.5, 0.031, 420},
                             {0.021, 0.96, 0.06, 0.187, 90},
                             {0.072, 0.6, 0.25, 0.01, 150}};
  Character character = known[index % 5];
  character.late += 0.05 * static_cast<double>(index / 5);
  return character;
}

nlohmann::json Percentiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  if (values.empty()) values.push_back(0);
  const auto at = [&values](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  double sum = 0;
  for (const double value : values) sum += value;
  return {{"mean", sum / static_cast<double>(values.size())},
          {"p50", at(0.5)},
          {"p90", at(0.9)},
          {"p99", at(0.99)},
          {"p999", at(0.999)},
          {"max", values.back()}};
}

// A random number in [0, 1) that is the same with every standard library.
double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) / 9007199254740992.0; }

nlohmann::json Scenario(const SampleOptions& options) {
  nlohmann::json scenario = {
      {"fabric",
       {{"topology", "fat_tree"},
        {"hosts", 128},
        {"tiers", 3},
        {"pod_size", 16},
        {"tor_radix", 4},
        {"oversubscription", 1},
        {"nics_per_host", 1},
        {"planes", 1},
        {"link_gbps", 100},
        {"link_delay_ns", 1000},
        {"switch_delay_ns", 0},
        {"nic_delay_ns", 0},
        {"queue_bytes", 178880},
        {"ecn_min_bytes", 37440},
        {"ecn_max_bytes", 145600},
        {"trimming", false},
        {"pfc", false},
        {"mtu_bytes", 4096},
        {"header_bytes", 64}}},
      {"workload", {{"kind", options.kind}, {"bytes", 1000000}, {"window", 0}, {"posted_ahead", true}}},
      {"cc", {{"algorithms", options.algorithms}}},
      {"paths", {{"policy", "random"}, {"entropies", 256}}},
      {"run", {{"seeds", nlohmann::json::array()}, {"deadline_us", 1000000}}}};
  for (int seed = 1; seed <= options.seeds; ++seed) scenario["run"]["seeds"].push_back(seed);
  if (options.kind == "incast") scenario["workload"]["fan_in"] = options.flows;
  if (options.faults) {
    scenario["fault"] =
        nlohmann::json::array({{{"kind", "link_down"}, {"target", "agg:5/up:0"}, {"at_us", 600}, {"until_us", 1100}}});
  }
  return scenario;
}

constexpr double kLimit = 178880;
constexpr double kPackets = 245;  // of a megabyte

void FillSeries(const Character& character, double completion_us, int samples, std::mt19937_64& random,
                RunSeries& run) {
  double wander = 0;
  for (int i = 0; i < samples; ++i) {
    const double t = completion_us * i / samples;
    wander = 0.97 * wander + 0.1 * (Uniform(random) - 0.5);
    const double wave = std::sin(2 * 3.14159265 * t / character.period_us);
    const double ramp = std::min(1.0, t / 40.0);
    const double share = ramp * (character.queue + character.swing * (0.6 * wave + wander));
    const double queue = std::round(std::clamp(share, 0.0, 1.0) * kLimit / 4160) * 4160;
    const double rate = queue > 0 || i < 10 ? 99.9 : 88 + 10 * Uniform(random);
    run.queue_bytes.times_us.push_back(t);
    run.queue_bytes.values.push_back(std::min(queue, kLimit));
    run.last_hop_queue_bytes.times_us.push_back(t);
    run.last_hop_queue_bytes.values.push_back(std::min(queue, kLimit) * 0.7);
    run.port_rate_gbps.times_us.push_back(t);
    run.port_rate_gbps.values.push_back(t < 7 ? 0 : rate);
    run.total_rate_gbps.times_us.push_back(t);
    run.total_rate_gbps.values.push_back(t < 7 ? 0 : rate * 0.985);
  }
}

}  // namespace

ReportSection SampleSection(const SampleOptions& options) {
  ReportSection section;
  section.command = "paceline study " + options.kind + " --out report";
  nlohmann::json runs = nlohmann::json::array();
  const double ideal_us = 81.5 * options.flows + 13.7;
  for (size_t a = 0; a < options.algorithms.size(); ++a) {
    const Character character = CharacterOf(a);
    for (int seed = 1; seed <= options.seeds; ++seed) {
      std::mt19937_64 random(a * 1000 + static_cast<uint64_t>(seed));
      RunSeries run;
      run.algorithm = options.algorithms[a];
      run.seed = static_cast<uint64_t>(seed);
      run.busiest_port = options.kind == "incast" ? "tor 3, port 2 to host 14" : "agg 5, port 1 to core 2";
      run.last_hop_port = "tor 3, port 2 to host 14";
      const double completion = ideal_us * (1 + character.late * (0.9 + 0.2 * Uniform(random)));
      for (int f = 0; f < options.flows; ++f) {
        const double bytes = options.mixed_sizes ? std::pow(10.0, 3 + 3.5 * Uniform(random)) : 1e6;
        const double spread = std::pow(Uniform(random), 2.0) * (0.05 + 4 * character.late);
        const double fct = std::max(20.0, completion * (1 - std::min(0.95, spread)));
        run.flow_bytes.push_back(std::round(bytes));
        run.fct_us.push_back(fct);
        run.slowdown.push_back(1 + fct / 97.0 * (0.3 + 0.7 * Uniform(random)));
      }
      FillSeries(character, completion, options.samples, random, run);
      const double packets = kPackets * options.flows;
      const double lost = std::round(packets * character.loss * (0.8 + 0.4 * Uniform(random)));
      const double longest =
          options.samples == 0 ? 0 : *std::max_element(run.queue_bytes.values.begin(), run.queue_bytes.values.end());
      runs.push_back({{"algorithm", run.algorithm},
                      {"seed", run.seed},
                      {"flows", options.flows},
                      {"finished", options.flows},
                      {"packets", packets},
                      {"completion_us", completion},
                      {"ideal_us", ideal_us},
                      {"ratio", completion / ideal_us},
                      {"fct_us", Percentiles(run.fct_us)},
                      {"slowdown", Percentiles(run.slowdown)},
                      {"drops", lost},
                      {"trims", 0},
                      {"ecn_marks", std::round(packets * character.queue * 0.6)},
                      {"pfc_pauses", 0},
                      {"retransmits", std::round(lost * 1.05)},
                      {"control_drops", 0},
                      {"fault_losses", 0},
                      {"queue_max_bytes", longest},
                      {"queue_last_hop_max_bytes", longest * 0.7},
                      {"queue_p99_bytes", longest * 0.9},
                      {"goodput_gbps", 8e-3 * 1e6 * options.flows / completion},
                      {"packet_hops", 4 * packets},
                      {"events", 10 * packets},
                      {"wall_s", 0.25}});
      section.series.runs.push_back(std::move(run));
    }
  }
  section.results = {{"paceline", "0.1.0"}, {"scenario", Scenario(options)}, {"runs", runs}};
  return section;
}

ReportPage SamplePage() {
  ReportPage page;
  page.title = "tita and three reactive controllers on a 128-host fat tree";
  page.lead = "Three workloads that collectives are made of, each on the same fabric.";
  SampleOptions options;
  page.sections.push_back(SampleSection(options));
  page.sections.back().shows =
      "Many senders and one receiver: the last hop is the bottleneck, and who sends too early loses.";
  options.kind = "alltoall";
  options.flows = 60;
  options.mixed_sizes = true;
  page.sections.push_back(SampleSection(options));
  options.kind = "permutation";
  options.faults = true;
  options.seeds = 1;
  options.mixed_sizes = false;
  options.flows = 20;
  page.sections.push_back(SampleSection(options));
  return page;
}

}  // namespace paceline::tools
