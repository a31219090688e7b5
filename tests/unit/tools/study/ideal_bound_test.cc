// No run beats its ideal: random scenarios, in which no flow may finish before its own ideal, and no run before that of
// its workload. Queues are deep, so that nothing is lost and the fastest runs come close.
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/study/run.h"
#include "tools/study/study_file.h"
#include "transport/base/random.h"

namespace paceline::tools {
namespace {

constexpr uint64_t kScenarios = 60;
// A link rounds the time of each packet to a picosecond; the ideal rounds the sum once.
constexpr double kRounding = 1e-6;
// Hosts' clocks count whole nanoseconds, so a flow may start up to one nanosecond early.
constexpr double kClockUs = 1e-3;

class ScenarioText {
 public:
  explicit ScenarioText(uint64_t seed) : random_(seed) {
    Fabric();
    Workload();
    Fault();
    absl::StrAppend(&text_, "[cc]\nalgorithms = [\"none\", \"tita\", \"",
                    Pick({"swift", "dcqcn", "fixed_window", "eqds", "nscc"}), "\"]\n[run]\nseeds = [", 1 + Below(1000),
                    "]\n");
  }

  const std::string& text() const { return text_; }
  const std::string& graph() const { return graph_; }  // of a topology from the file graph.toml; else empty

 private:
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  std::string Pick(std::vector<std::string> from) { return from[Below(from.size())]; }
  void Put(const std::string& key, const std::string& value) { absl::StrAppend(&text_, key, " = ", value, "\n"); }
  void PutText(const std::string& key, const std::string& value) { Put(key, absl::StrCat("\"", value, "\"")); }

  void Fabric() {
    text_ += "[fabric]\n";
    topology_ = Pick({"single_switch", "dumbbell", "leaf_spine", "fat_tree", "rail_optimized", "dragonfly", "file"});
    PutText("topology", topology_);
    nics_ = 1;
    if (topology_ == "file") {
      Graph();
    } else if (topology_ == "dragonfly") {
      hosts_ = 24;  // three groups of four routers
      for (const char* key : {"pod_size = 8\n", "tor_radix = 2\n", "global_links = 1\n", "hosts = 24\n"}) text_ += key;
      PutText("routing", Pick({"minimal", "valiant", "both"}));
    } else {
      hosts_ = 16;
      if (topology_ == "fat_tree") text_ += "pod_size = 8\ntor_radix = 2\n";
      Put("hosts", absl::StrCat(hosts_));
      if (topology_ != "single_switch") Put("oversubscription", Pick({"1", "2", "4"}));
      nics_ = topology_ == "rail_optimized" ? 2 : 1;
      if (nics_ > 1) text_ += "nics_per_host = 2\ntiers = 2\n";
    }
    Put("link_gbps", Pick({"10", "33.3", "100", "400"}));
    Put("link_delay_ns", Pick({"0", "100", "1000", "5000"}));
    Put("switch_delay_ns", Pick({"0", "300"}));
    Put("nic_delay_ns", Pick({"0", "500"}));
    Put("mtu_bytes", Pick({"1024", "4096"}));
    Put("header_bytes", Pick({"1", "64", "200"}));
    Put("queue_bytes", "1000000000");
    Put("reroute_us", Pick({"0", "5", "1000"}));
  }

  // Two to four switches in a ring, and hosts on them whose links differ.
  void Graph() {
    hosts_ = 6 + static_cast<uint32_t>(Below(6));
    nics_ = 1 + static_cast<uint32_t>(Below(2));
    const uint64_t switches = 2 + Below(3);
    std::vector<std::string> names;
    for (uint64_t i = 0; i < switches; ++i) names.push_back(absl::StrCat("\"s", i, "\""));
    absl::StrAppend(&graph_, "hosts = ", hosts_, "\nswitches = [", absl::StrJoin(names, ", "), "]\nlink = [\n");
    const auto join = [&](const std::string& a, const std::string& b) {
      absl::StrAppend(&graph_, "  { between = [\"", a, "\", \"", b, "\"], gbps = ", Pick({"10", "40", "100"}),
                      ", delay_ns = ", Pick({"0", "500", "3000"}), ", count = ", 1 + (a[0] == 's' ? Below(2) : 0),
                      " },\n");
    };
    for (uint64_t host = 0; host < hosts_; ++host) {
      for (uint64_t nic = 0; nic < nics_; ++nic) join(absl::StrCat("h", host), absl::StrCat("s", Below(switches)));
    }
    for (uint64_t i = 0; i < switches; ++i) join(absl::StrCat("s", i), absl::StrCat("s", (i + 1) % switches));
    graph_ += "]\n";
    PutText("topology_file", "graph.toml");
  }

  void Workload() {
    text_ += "[workload]\n";
    const std::string kind = Pick({"incast", "incast", "alltoall", "permutation", "victim", "allreduce_ring",
                                   "allreduce_tree", "broadcast", "moe", "storage", "pipeline", "poisson"});
    PutText("kind", kind);
    const bool collective = kind.starts_with("allreduce") || kind == "broadcast";
    const std::string bytes = collective ? Pick({"2000", "65536", "100001"})  // no less than a byte for each chunk
                                         : Pick({"2", "700", "4096", "4097", "8192", "20000"});
    Put("bytes", bytes);
    Put("victim_bytes", bytes);
    Put("read_bytes", bytes);
    Put("fan_in", absl::StrCat(kind == "victim" ? hosts_ / 2 : 1 + Below(hosts_ - 1)));
    Put("flows", "100");
    if (kind == "poisson") PutText("sizes", bytes);
    Put("storage_hosts", "2");
    Put("posted_ahead", Pick({"true", "false"}));
    if (nics_ > 1) PutText("rails", Pick({"sprayed", "pinned"}));
    if (Below(3) == 0) Put("window", Pick({"1", "3"}));
    if (Below(3) == 0) Put("start_us", "7");
    if (Below(3) == 0) Put("start_jitter_us", Pick({"20", "200"}));
  }

  // From the start on, so that what is left is there for the whole run; and no host is cut off.
  void Fault() {
    if (topology_ == "file" || Below(3) != 0) return;
    const std::vector<std::string> kinds = {"link_slow", "link_down"};
    const bool cuts = (topology_ == "leaf_spine" || topology_ == "fat_tree") && Below(2) == 0;
    absl::StrAppend(&text_, "[[fault]]\nkind = \"", kinds[cuts ? 1 : 0], "\"\n");
    if (!cuts) Put("fraction", Pick({"0.1", "0.5"}));
    PutText("target", cuts ? "tor:1/up:0" : Pick({"host:1/nic:0", "host:2"}));
  }

  Random random_;
  std::string topology_;
  uint32_t hosts_ = 0, nics_ = 0;
  std::string text_, graph_;
};

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  ASSERT_TRUE(file.flush()) << path;
}

TEST(IdealBoundTest, NoRunBeatsItsIdeal) {
  const std::string folder = ::testing::TempDir();
  int runs = 0, close = 0, damaged = 0, windows = 0;
  for (uint64_t seed = 1; seed <= kScenarios && !HasFailure(); ++seed) {
    const ScenarioText scenario(seed);
    const std::string file = absl::StrCat(folder, "ideal_bound_", seed, ".toml");
    SCOPED_TRACE(absl::StrCat("seed ", seed, "; replay with: paceline study ", file, "\n", scenario.text(), "\n",
                              folder, "graph.toml:\n", scenario.graph()));
    WriteFile(absl::StrCat(folder, "graph.toml"), scenario.graph());
    const auto study = ParseStudy(scenario.text(), file, folder, {});
    ASSERT_TRUE(study.ok()) << study.status();
    const Scenario& parsed = study->sections[0].scenario;
    for (const AlgorithmChoice& algorithm : parsed.algorithms) {
      const auto run = ExecuteRun(parsed, algorithm, parsed.seeds[0], nullptr);
      ASSERT_TRUE(run.ok()) << run.status();
      double completion_us = 0;
      for (const FlowOutcome& flow : run->flows) {
        if (flow.finish_ns < 0) continue;
        const auto fct_us = static_cast<double>(flow.finish_ns - flow.start_ns) / 1e3;
        EXPECT_GE(flow.slowdown * (1 + kClockUs / fct_us), 1 - kRounding)
            << algorithm.name << ", flow " << &flow - run->flows.data();
        completion_us = std::max(completion_us, static_cast<double>(flow.finish_ns) / 1e3);
      }
      ++runs;
      if (run->end_ns < 0) continue;  // it missed its deadline, which is long after the ideal
      const double end_us = static_cast<double>(run->end_ns) / 1e3;
      EXPECT_GE(completion_us + kClockUs, run->ideal_us * (1 - kRounding)) << algorithm.name;
      if (run->ideal_window_us) {
        EXPECT_GE(completion_us + kClockUs, *run->ideal_window_us * (1 - kRounding)) << algorithm.name;
        EXPECT_GE(*run->ideal_window_us, run->ideal_us) << algorithm.name;
        ++windows;
      }
      EXPECT_GE(end_us + kClockUs, run->ideal_end_us * (1 - kRounding)) << algorithm.name;
      if (run->ideal_damaged_us) {
        EXPECT_GE(completion_us + kClockUs, *run->ideal_damaged_us * (1 - kRounding)) << algorithm.name;
        EXPECT_GE(*run->ideal_damaged_us, run->ideal_us * (1 - kRounding)) << algorithm.name;
        ++damaged;
      }
      close += completion_us < run->ideal_us * 1.01 ? 1 : 0;
    }
    if (HasFailure()) WriteFile(file, scenario.text());
  }
  // Else the bound would say nothing.
  EXPECT_GE(close, runs / 5);
  EXPECT_GE(damaged, runs / 20);
  EXPECT_GE(windows, runs / 20);
}

}  // namespace
}  // namespace paceline::tools
