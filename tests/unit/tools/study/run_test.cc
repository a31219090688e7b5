#include "tools/study/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/unit/tools/study/workloads/workload_support.h"
#include "tools/study/builtin.h"
#include "tools/study/execute.h"
#include "tools/study/results.h"

namespace paceline::tools {
namespace {

Study Load(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  auto study = ParseStudy(toml, "test.toml", "", overrides);
  EXPECT_TRUE(study.ok()) << study.status();
  return *std::move(study);
}

constexpr char kSmall[] = R"(
  [fabric]
  topology = "leaf_spine"
  hosts = 16
  tor_radix = 4
  [workload]
  kind = "incast"
  fan_in = 4
  bytes = 100000
)";

nlohmann::json RunStudy(const Study& study, unsigned jobs = 1) {
  ExecuteOptions options;
  options.jobs = jobs;
  auto runs = ExecuteStudy(study, options);
  EXPECT_TRUE(runs.ok()) << runs.status();
  nlohmann::json json = StudyToJson(study, *runs);
  for (nlohmann::json& run : json["runs"]) run["wall_s"] = 0;
  return json;
}

TEST(StudyRunTest, EveryAlgorithmFinishesEveryKindOfWorkload) {
  for (const char* kind : {"incast", "alltoall", "permutation", "victim"}) {
    for (const char* posted : {"false", "true"}) {
      const Study study = Load(kSmall, {std::string("workload.kind=") + kind,
                                        "cc.algorithms=tita,swift,dcqcn,fixed_window", "workload.bytes=40000",
                                        "workload.victim_bytes=40000", std::string("workload.posted_ahead=") + posted});
      const nlohmann::json json = RunStudy(study, 2);
      ASSERT_EQ(json["runs"].size(), 4u);
      for (const nlohmann::json& run : json["runs"]) {
        EXPECT_EQ(run["finished"], run["flows"]) << kind << " " << run["algorithm"];
        EXPECT_EQ(run["failed_operations"], 0);
        EXPECT_GE(run["ratio"], 0.5);
        EXPECT_LT(run["ratio"], 30);
        EXPECT_EQ(run.contains("victim_fct_us"), std::string(kind) == "victim");
      }
    }
  }
}

// Many packets lost, cut and late: the oldest of a full window, found lost, arrived after all while others stood before
// it in the list of those to be sent again. No flow ended any more then.
TEST(StudyRunTest, AFullWindowWhosePacketsComeLateAfterAllMovesOn) {
  const nlohmann::json json = RunStudy(Load(R"(
    cc.algorithms = "none"
    [run]
    seeds = [805]
    deadline_us = 300000
    [fabric]
    topology = "leaf_spine"
    hosts = 8
    tor_radix = 2
    oversubscription = 2
    nics_per_host = 4
    planes = 2
    link_gbps = 100
    link_delay_ns = 100
    switch_delay_ns = 500
    nic_delay_ns = 300
    mtu_bytes = 256
    header_bytes = 500
    trimming = true
    [workload]
    kind = "storage"
    bytes = 1000000
    storage_hosts = 1
    reads = 0
  )"));
  EXPECT_EQ(json["runs"][0]["finished"], json["runs"][0]["flows"]);
}

TEST(StudyRunTest, HasEveryFieldOfTheContract) {
  const nlohmann::json json = RunStudy(Load(kSmall));
  EXPECT_TRUE(json.contains("paceline"));
  EXPECT_EQ(json["scenario"]["workload"]["fan_in"], 4);
  const nlohmann::json& run = json["runs"][0];
  for (const char* key : {"algorithm",
                          "seed",
                          "flows",
                          "finished",
                          "packets",
                          "completion_us",
                          "ideal_us",
                          "ratio",
                          "fct_us",
                          "slowdown",
                          "drops",
                          "trims",
                          "ecn_marks",
                          "pfc_pauses",
                          "retransmits",
                          "control_drops",
                          "fault_losses",
                          "queue_max_bytes",
                          "queue_last_hop_max_bytes",
                          "queue_p99_bytes",
                          "goodput_gbps",
                          "packet_hops",
                          "events",
                          "wall_s"}) {
    EXPECT_TRUE(run.contains(key)) << key;
  }
  for (const char* key : {"mean", "p50", "p90", "p99", "p999", "max"}) {
    EXPECT_TRUE(run["fct_us"].contains(key)) << key;
    EXPECT_TRUE(run["slowdown"].contains(key)) << key;
  }
  EXPECT_EQ(run["packets"], 4 * 25);
}

TEST(StudyRunTest, SameSeedSameResultsWhateverTheJobs) {
  const Study study = Load(kSmall, {"cc.algorithms=tita,dcqcn", "run.seeds=[1,2]", "workload.kind=alltoall"});
  const std::string first = RunStudy(study, 1).dump();
  EXPECT_EQ(RunStudy(study, 1).dump(), first);
  EXPECT_EQ(RunStudy(study, 3).dump(), first);
}

TEST(StudyRunTest, LossIsRepaired) {
  const Study lossy = Load(std::string(kSmall) + "[[fault]]\nkind='loss'\nprobability=0.01\ntarget='all'\n",
                           {"workload.kind=permutation", "workload.bytes=400000"});
  const nlohmann::json run = RunStudy(lossy)["runs"][0];
  EXPECT_EQ(run["finished"], run["flows"]);
  EXPECT_GT(run["fault_losses"], 10);
  EXPECT_GT(run["retransmits"], 5);
}

// The words of the switches reach the sender: a fixed window of the same size overflows the queue all the time, this
// one in its first round trip.
TEST(StudyRunTest, HpccHearsOfQueues) {
  constexpr int kSeeds = 5;
  const Study study = Load(kSmall, {"cc.algorithms=hpcc,fixed_window", "workload.fan_in=8", "workload.bytes=1000000",
                                    "workload.posted_ahead=true", absl::StrCat("run.seeds=", kSeeds)});
  double ratio = 0;
  int drops = 0, drops_of_fixed = 0;
  const nlohmann::json json = RunStudy(study);
  for (const nlohmann::json& run : json["runs"]) {
    EXPECT_EQ(run["finished"], run["flows"]);
    const bool is_hpcc = run["algorithm"] == "hpcc";
    (is_hpcc ? drops : drops_of_fixed) += run["drops"].get<int>();
    if (is_hpcc) ratio += run["ratio"].get<double>() / kSeeds;
  }
  EXPECT_LT(ratio, 1.22);
  EXPECT_LT(3 * drops, drops_of_fixed);
}

// The fabric that every table of the documents is about, full in all its links: a change of the core that costs a tenth
// of its time here is seen by no test of a smaller one.
TEST(StudyRunTest, AnAllToAllOfManyHostsLosesNothing) {
  const nlohmann::json run = RunStudy(Load(R"(
    [fabric]
    topology = "fat_tree"
    hosts = 128
    [workload]
    kind = "alltoall"
    bytes = 32768
    posted_ahead = true
  )"))["runs"][0];
  EXPECT_EQ(run["algorithm"], "tita");
  EXPECT_EQ(run["finished"], run["flows"]);
  EXPECT_EQ(run["drops"], 0);
  EXPECT_LT(run["ratio"], 1.15);
}

constexpr char kRails[] = R"(
  [fabric]
  topology = "rail_optimized"
  hosts = 8
  nics_per_host = 4
  planes = 2
  [workload]
  kind = "alltoall"
  bytes = 400000
  posted_ahead = true
)";

// One message in flight a sender, receives posted: each takes a round trip of 14 us at most and 5.3 us, 31 of them.
TEST(StudyRunTest, AnAllToAllOfOneMessageAtATimeWaitsForNoCredit) {
  const Study study = Load(R"(
    [fabric]
    topology = "fat_tree"
    hosts = 128
    [workload]
    kind = "alltoall"
    ranks = 32
    bytes = 65536
    window = 1
    posted_ahead = true
    [cc]
    algorithms = ["tita", "nscc"]
  )");
  const nlohmann::json runs = RunStudy(study, 2)["runs"];
  EXPECT_EQ(runs[0]["drops"], 0);
  EXPECT_GE(runs[0]["ratio_window"], 1);
  EXPECT_LT(runs[0]["ratio_window"], 1.2);
  EXPECT_LT(runs[0]["completion_us"].get<double>(), runs[1]["completion_us"].get<double>() * 1.2);
}

TEST(StudyRunTest, AllNicsOfAHostAreUsed) {
  for (const char* posted : {"true", "false"}) {
    const nlohmann::json run = RunStudy(Load(kRails, {std::string("workload.posted_ahead=") + posted}))["runs"][0];
    EXPECT_EQ(run["finished"], run["flows"]);
    EXPECT_EQ(run["drops"], 0);
    // Over 1.3 where a flow that one port holds up waits with the others.
    EXPECT_LT(run["ratio"], std::string(posted) == "true" ? 1.12 : 1.25);
  }
}

TEST(StudyRunTest, TheOtherNicsGoOnWhenOneDies) {
  const nlohmann::json run =
      RunStudy(Load(std::string(kRails) + "[[fault]]\nkind='nic_down'\nat_us=30\ntarget='host:3/nic:0'\n"))["runs"][0];
  EXPECT_EQ(run["finished"], run["flows"]);
  EXPECT_EQ(run["failed_operations"], 0);
  EXPECT_GT(run["fault_losses"], 0);
  EXPECT_EQ(run["recoveries"][0]["at_us"], 30);
  EXPECT_LT(run["completion_us"], run["ideal_damaged_us"].get<double>() * 1.15);
}

// Without it every packet whose hash names the dead port is lost until its path is given up, flow by flow.
TEST(StudyRunTest, SwitchesRouteAroundALinkThatIsDown) {
  const std::string down = "[[fault]]\nkind='link_down'\nat_us=10\ntarget='tor:0/up:0'\n";
  const auto run_with = [&](const std::string& reroute_us) {
    return RunStudy(Load(kSmall + down, {"workload.kind=alltoall", "workload.bytes=40000", "paths.policy=random",
                                         "fabric.reroute_us=" + reroute_us}))["runs"][0];
  };
  const nlohmann::json soon = run_with("10"), never = run_with("0");
  EXPECT_EQ(soon["finished"], soon["flows"]);
  EXPECT_EQ(soon["ideal_damaged_us"], never["ideal_damaged_us"]);
  EXPECT_GT(soon["fault_losses"], 0);
  EXPECT_LT(3 * soon["fault_losses"].get<int>(), never["fault_losses"]);
}

// Links die for good during an all-to-all: an uplink of the first switch, or any four between switches of the lower two
// tiers. The bounds allow few retransmission time-outs (1 ms): tail probes find the losses, and retransmissions take
// paths that deliver.
TEST(StudyRunTest, AllToAllFinishesBesideDeadLinks) {
  const char* text = R"(
    [fabric]
    topology = "fat_tree"
    hosts = 128
    [workload]
    kind = "alltoall"
    ranks = 64
    bytes = 65536
    [cc]
    algorithms = ["tita", "nscc", "swift", "none"]
    [run]
    seeds = [1, 2]
    [[fault]]
    kind = "link_down"
    at_us = 60
    target = )";
  const auto expect_ratios = [&](const std::string& target, const char* reroute_us, double most) {
    SCOPED_TRACE(target + ", " + reroute_us);
    const nlohmann::json json =
        RunStudy(Load(text + ("\"" + target + "\"\n"), {std::string("fabric.reroute_us=") + reroute_us}));
    for (const nlohmann::json& run : json["runs"]) {
      EXPECT_EQ(run["finished"], run["flows"]) << run["algorithm"];
      EXPECT_LE(run["completion_us"].get<double>() / run["ideal_us"].get<double>(), most) << run["algorithm"];
    }
  };
  expect_ratios("tor:0/up:0", "0", 3);
  expect_ratios("tor:0/up:0", "100", 1.5);
  expect_ratios("random:4:tor-agg", "0", 5);
}

constexpr char kRings[] = R"(
  [fabric]
  topology = "rail_optimized"
  hosts = 8
  nics_per_host = 4
  [workload]
  kind = "allreduce_two_level"
  ranks_per_host = 4
  bytes = 4000000
)";

// Each ring has a quarter of the buffer, and 7/4 of that leave each of its hosts, in packets of 4096 bytes at most.
TEST(StudyRunTest, RingsPinnedToRailsSendTheirOwnBytesByTheirOwnNics) {
  for (const char* posted : {"true", "false"}) {
    const nlohmann::json run = RunStudy(Load(kRings, {std::string("workload.posted_ahead=") + posted,
                                                      "workload.rails=pinned", "cc.algorithms=none"}))["runs"][0];
    EXPECT_EQ(run["finished"], run["flows"]);
    EXPECT_EQ(run["failed_operations"], 0);
    ASSERT_EQ(run["nic_sent_bytes"].size(), 4u);
    for (const nlohmann::json& bytes : run["nic_sent_bytes"]) {
      EXPECT_GT(bytes, 14'000'000);
      EXPECT_NEAR(bytes.get<double>(), run["nic_sent_bytes"][0].get<double>(), 10'000);  // acknowledgements
    }
  }
}

// One ring only: its NIC carries all of it, acknowledgements too.
TEST(StudyRunTest, TheOtherNicsOfAPinnedRingAreIdle) {
  for (const char* posted : {"true", "false"}) {
    const nlohmann::json run =
        RunStudy(Load(kRings, {std::string("workload.posted_ahead=") + posted, "workload.rails=pinned",
                               "workload.ranks_per_host=1"}))["runs"][0];
    EXPECT_EQ(run["finished"], run["flows"]);
    EXPECT_GT(run["nic_sent_bytes"][0], 56'000'000);
    for (int nic : {1, 2, 3}) EXPECT_EQ(run["nic_sent_bytes"][nic], 0) << nic;
    EXPECT_GE(run["ratio"], 1.0);
  }
}

TEST(StudyRunTest, APinnedRingOutlivesItsNic) {
  const nlohmann::json run =
      RunStudy(Load(std::string(kRings) + "[[fault]]\nkind='nic_down'\nat_us=60\ntarget='host:3/nic:1'\n",
                    {"workload.rails=pinned"}))["runs"][0];
  EXPECT_EQ(run["finished"], run["flows"]);
  EXPECT_EQ(run["failed_operations"], 0);
  EXPECT_GT(run["fault_losses"], 0);
}

// With a receive for the first packet of each, in both kinds of connection.
TEST(StudyRunTest, PinnedFlowsBesideSprayedOnes) {
  const nlohmann::json run =
      RunStudy(Load(kRings, {"workload.rails=pinned", "workload.background_load=0.2"}))["runs"][0];
  EXPECT_EQ(run["finished"], run["flows"]);
  EXPECT_EQ(run["failed_operations"], 0);
  EXPECT_GT(run["background"]["finished"], 5);
}

TEST(StudyRunTest, LosslessIncastWithoutCongestionControl) {
  const std::vector<std::string> incast = {"cc.algorithms=none", "workload.fan_in=12", "workload.bytes=1000000"};
  const nlohmann::json lossy = RunStudy(Load(kSmall, incast))["runs"][0];
  EXPECT_GT(lossy["drops"], 100);
  EXPECT_FALSE(lossy.contains("pfc_paused_us"));
  std::vector<std::string> with_pauses = incast;
  with_pauses.push_back("fabric.pfc=true");
  const nlohmann::json lossless = RunStudy(Load(kSmall, with_pauses))["runs"][0];
  EXPECT_EQ(lossless["finished"], lossless["flows"]);
  EXPECT_EQ(lossless["drops"], 0);
  EXPECT_GT(lossless["pfc_pauses"], 10);
  EXPECT_GT(lossless["pfc_paused_us"], 100);
  // Headroom that does not hold what comes after a pause is exceeded.
  with_pauses.push_back("fabric.pfc_headroom_bytes=4160");
  EXPECT_GT(RunStudy(Load(kSmall, with_pauses))["runs"][0]["drops"], 0);
}

// Pauses spread from the crowded leaf over the spines into others: all of them end.
TEST(StudyRunTest, LosslessIncastInSharedMemory) {
  const std::vector<std::string> shared = {"cc.algorithms=none,dcqcn,tita",
                                           "workload.kind=victim",
                                           "workload.fan_in=8",
                                           "workload.bytes=1000000",
                                           "workload.victim_bytes=1000000",
                                           "fabric.pfc=true",
                                           "fabric.buffer=shared",
                                           "fabric.shared_buffer_bytes=500000"};
  const nlohmann::json json = RunStudy(Load(kSmall, shared));
  for (const nlohmann::json& run : json["runs"]) {
    EXPECT_EQ(run["finished"], run["flows"]) << run["algorithm"];
    EXPECT_EQ(run["drops"], 0) << run["algorithm"];
  }
  EXPECT_GT(json["runs"][0]["pfc_pauses"], 10);
}

// Queues that take milliseconds and lose nothing: nobody has measured a round trip when the first packets wait in them.
TEST(StudyRunTest, NothingIsRetransmittedWhereNothingIsLost) {
  const std::string algorithms = R"(
    [cc]
    algorithms = ["none", "dcqcn", "fixed_window", "swift", "timely", "hpcc", "nscc", "rccc", "eqds", "ndp", "tita"]
  )";
  const std::string deep_queue = R"(
    [fabric]
    topology = "single_switch"
    hosts = 32
    link_gbps = 10
    queue_bytes = 64000000
    [workload]
    kind = "incast"
    fan_in = 31
    bytes = 16384
  )";
  const std::string pauses = R"(
    [fabric]
    topology = "leaf_spine"
    hosts = 144
    tor_radix = 16
    link_gbps = 10
    pfc = true
    buffer = "shared"
    shared_buffer_bytes = 8000000
    [workload]
    kind = "connection_matrix"
    file = ")" + testing::TempDir() +
                             "incast.cm\"\n";
  std::ofstream matrix(testing::TempDir() + "incast.cm");
  matrix << "Nodes 144\nConnections 1000\n";
  for (int flow = 0; flow < 1000; ++flow) matrix << flow % 143 + 1 << "->0 id " << flow + 1 << " start 0 size 8192\n";
  matrix.close();
  for (const std::string& fabric : {deep_queue, pauses}) {
    SCOPED_TRACE(fabric);
    const nlohmann::json json = RunStudy(Load(fabric + algorithms));
    for (const nlohmann::json& run : json["runs"]) {
      EXPECT_EQ(run["finished"], run["flows"]) << run["algorithm"];
      EXPECT_EQ(run["drops"], 0) << run["algorithm"];
      EXPECT_EQ(run["retransmits"], 0) << run["algorithm"];
    }
  }
}

// As in its paper: eight senders over PFC at 40 Gb/s, and its own marking. They start at line rate, are cut
// down while the switch empties and climb again by 40 Mb/s in 55 us each; from then on the link carries 39 Gb/s.
TEST(StudyRunTest, DcqcnFillsTheReceiversLinkOverPfcOnceItHasSettled) {
  const Study study = Load(R"(
    [fabric]
    topology = "single_switch"
    hosts = 9
    link_gbps = 40
    queue_bytes = 2000000
    pfc = true
    ecn_min_bytes = 5000
    ecn_max_bytes = 200000
    ecn_max_probability = 0.01
    [workload]
    fan_in = 8
    bytes = 20000000
    [cc]
    algorithms = ["dcqcn"]
  )");
  const Scenario& scenario = study.sections[0].scenario;
  const auto run = ExecuteRun(scenario, scenario.algorithms[0], 1, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->fabric.drops, 0u);
  constexpr int64_t kFrom = 10'000'000, kUntil = 25'000'000;  // nanoseconds
  uint64_t payload = 0;
  int64_t span = 0;
  for (size_t point = 0; point < run->delivered_bytes.size(); ++point) {
    const int64_t end = run->first_interval_ns + run->interval_ns * static_cast<int64_t>(point + 1);
    if (end - run->interval_ns < kFrom || end > kUntil) continue;
    payload += run->delivered_bytes[point];
    span += run->interval_ns;
  }
  ASSERT_GT(span, 10'000'000);
  EXPECT_GE(static_cast<double>(payload) * 8 / static_cast<double>(span) * 4160 / 4096, 39);
}

// What the link between the sides carries is known whether it was written out or not.
TEST(StudyRunTest, HintsKnowADumbbellsLink) {
  const auto runs = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"fabric.topology=dumbbell", "workload.kind=permutation", "cc.hints=true",
                                          "cc.algorithms=tita"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return RunStudy(Load(kSmall, overrides))["runs"].dump();
  };
  EXPECT_EQ(runs({}), runs({"fabric.oversubscription=8"}));
  EXPECT_NE(runs({}), runs({"cc.hints=false"}));
}

TEST(StudyRunTest, RunsOnATopologyFromAFile) {
  const std::string path = testing::TempDir() + "/paceline_run_topology.toml";
  std::ofstream(path) << "hosts = 4\nswitches = [\"l\", \"r\"]\nlink = [{between = [\"h0\", \"l\"]}, {between = "
                         "[\"h1\", \"l\"]}, {between = [\"h2\", \"r\"]}, {between = [\"h3\", \"r\"]}, "
                         "{between = [\"l\", \"r\"], count = 2}]\n";
  const nlohmann::json run = RunStudy(Load("[fabric]\ntopology = \"file\"\ntopology_file = \"" + path +
                                           "\"\n[workload]\nkind = \"alltoall\"\nbytes = 400000\n"
                                           "posted_ahead = true\n"))["runs"][0];
  EXPECT_EQ(run["finished"], run["flows"]);
  EXPECT_LT(run["ratio"], 1.3);
}

TEST(StudyRunTest, MissedDeadlineIsSaid) {
  const Study study = Load(kSmall, {"run.deadline_us=5"});
  ExecuteOptions options;
  auto runs = ExecuteStudy(study, options);
  ASSERT_TRUE(runs.ok());
  EXPECT_FALSE(AllFinished((*runs)[0]));
  const nlohmann::json run = RunToJson((*runs)[0][0]);
  EXPECT_TRUE(run["missed_deadline"]);
  EXPECT_TRUE(run["completion_us"].is_null());
  EXPECT_THAT(TableOf(study.sections[0], (*runs)[0]), testing::HasSubstr("missed the deadline"));
  EXPECT_THAT(TableOf(study.sections[0], (*runs)[0]), testing::Not(testing::HasSubstr("0.00")));  // no flow is over
}

// The last flow is over long before stage 0 has computed.
TEST(StudyRunTest, ComputingThatIsNotOverMissesTheDeadline) {
  const Study study =
      Load(kSmall, {"workload.kind=pipeline", "workload.ranks=2", "workload.micro_batches=1", "workload.bytes=10000",
                    "workload.forward_us=100", "workload.backward_us=2000", "run.deadline_us=3000"});
  const auto runs = ExecuteStudy(study, {});
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_FALSE(AllFinished((*runs)[0]));
  const nlohmann::json run = RunToJson((*runs)[0][0]);
  EXPECT_EQ(run["finished"], run["flows"]);
  EXPECT_TRUE(run["missed_deadline"]);
  EXPECT_FALSE(run["completion_us"].is_null());
  EXPECT_TRUE(run["step_us"].is_null());
  EXPECT_THAT(TableOf(study.sections[0], (*runs)[0]), testing::HasSubstr("1 of 1 runs missed the deadline"));
}

// Whatever way its packets take: a short last one may come before the others.
TEST(StudyRunTest, AFlowAloneIsNotFasterThanItsIdeal) {
  for (const char* topology : {"fabric.topology=leaf_spine", "fabric.topology=fat_tree"}) {
    for (const char* bytes : {"1", "100", "4096", "4097", "5000", "6000", "8192", "9000", "1000000"}) {
      const Study study = Load(kSmall, {topology, "fabric.hosts=64", "fabric.pod_size=16", "workload.fan_in=1",
                                        "workload.posted_ahead=true", std::string("workload.bytes=") + bytes});
      const nlohmann::json run = RunStudy(study)["runs"][0];
      EXPECT_GE(run["slowdown"]["max"], 1) << topology << " " << bytes;
      EXPECT_LT(run["slowdown"]["max"], 1.02) << topology << " " << bytes;
    }
  }
}

TEST(StudyRunTest, TriggersStartFlowsWhenTheirCausesAreDone) {
  const Study study = Load(kSmall, {"workload.kind=alltoall", "workload.window=2", "workload.ranks=8"});
  auto runs = ExecuteStudy(study, {});
  ASSERT_TRUE(runs.ok());
  const RunOutcome& run = (*runs)[0][0];
  for (size_t i = 0; i < run.flows.size(); ++i) {
    ASSERT_GE(run.flows[i].finish_ns, 0);
    if (run.workload.flows[i].trigger == kNoTrigger) {
      EXPECT_EQ(run.flows[i].start_ns, 0);
      continue;
    }
    EXPECT_GT(run.flows[i].start_ns, 0);
    // Never more than two of a source at a time.
    int others = 0;
    for (size_t j = 0; j < run.flows.size(); ++j) {
      others += run.workload.flows[j].source == run.workload.flows[i].source && j != i &&
                run.flows[j].start_ns <= run.flows[i].start_ns && run.flows[j].finish_ns > run.flows[i].start_ns;
    }
    EXPECT_LE(others, 1);
  }
}

// What the trigger waits for, and the flows behind it, when it goes off.
void ExpectNothingBeforeItsCause(const RunOutcome& run) {
  const std::vector<Trigger>& triggers = run.workload.triggers;
  std::vector<int64_t> last_cause(triggers.size(), -1);
  const std::vector<std::set<uint32_t>> causes = CausesOf(run.workload);
  for (size_t i = 0; i < run.flows.size(); ++i) {
    const FlowOutcome& flow = run.flows[i];
    ASSERT_GE(flow.finish_ns, 0);
    ASSERT_GE(flow.received_ns, flow.start_ns);
    const uint32_t trigger = run.workload.flows[i].trigger;
    if (trigger == kNoTrigger) continue;
    for (uint32_t cause : causes[trigger]) {
      EXPECT_GE(flow.start_ns, run.flows[cause].received_ns + triggers[trigger].delay / 1000);
    }
  }
}

TEST(StudyRunTest, NoStepStartsBeforeItsInputIsThere) {
  for (const char* kind : {"allreduce_ring", "allreduce_tree", "allreduce_two_level", "reduce_scatter", "allgather",
                           "broadcast", "pipeline", "moe", "storage"}) {
    for (const char* posted : {"false", "true"}) {
      const Study study =
          Load(kSmall, {std::string("workload.kind=") + kind, "workload.bytes=160000", "workload.compute_us=7",
                        "cc.algorithms=tita,swift", std::string("workload.posted_ahead=") + posted});
      auto runs = ExecuteStudy(study, {.jobs = 2});
      ASSERT_TRUE(runs.ok()) << runs.status();
      for (const RunOutcome& run : (*runs)[0]) {
        ExpectNothingBeforeItsCause(run);
        const nlohmann::json json = RunToJson(run);
        EXPECT_EQ(json["finished"], json["flows"]) << kind;
        EXPECT_GE(json["ratio"], 0.999) << kind << " " << run.algorithm;
        EXPECT_LT(json["ratio"], 10) << kind << " " << run.algorithm;
      }
    }
  }
}

TEST(StudyRunTest, RingAllReduceRunsAtTheBound) {
  const Study study = Load(kSmall, {"workload.kind=allreduce", "workload.bytes=8000000", "workload.posted_ahead=true"});
  const nlohmann::json run = RunStudy(study)["runs"][0];
  EXPECT_GE(run["ratio"], 1);
  EXPECT_LT(run["ratio"], 1.1);
  EXPECT_EQ(run["drops"], 0);
}

TEST(StudyRunTest, ComputingWithoutFlowsAtTheEndCounts) {
  const Study study = Load(kSmall, {"workload.kind=pipeline", "workload.ranks=4", "workload.bytes=10000"});
  auto runs = ExecuteStudy(study, {});
  ASSERT_TRUE(runs.ok()) << runs.status();
  const nlohmann::json run = RunToJson((*runs)[0][0]);
  EXPECT_EQ(run["compute_us"], (8 + 3) * 300.0);
  EXPECT_GE(run["step_us"], run["ideal_step_us"]);
  EXPECT_GE(run["step_us"].get<double>(), run["completion_us"].get<double>() + 190);  // stage 0's last backward pass
  EXPECT_NEAR(run["communication_share"], 1 - 3300 / run["step_us"].get<double>(), 1e-9);
}

TEST(StudyRunTest, TrainingStepHasItsFields) {
  const Study study = Load(kSmall, {"workload.kind=training_step", "workload.dp=4", "workload.tp=2", "workload.pp=2",
                                    "workload.ranks_per_host=2", "workload.layers=4", "workload.hidden=128",
                                    "workload.tokens=128", "workload.batch=8", "workload.tflops=1"});
  auto runs = ExecuteStudy(study, {});
  ASSERT_TRUE(runs.ok()) << runs.status();
  ExpectNothingBeforeItsCause((*runs)[0][0]);
  const nlohmann::json run = RunToJson((*runs)[0][0]);
  EXPECT_GT(run["communication_share"], 0);
  EXPECT_LT(run["communication_share"], 1);
  EXPECT_GE(run["step_us"], run["ideal_step_us"]);
  EXPECT_GE(run["ideal_step_us"], run["compute_us"]);
}

TEST(StudyRunTest, TheRunEndsWithTheMainFlowsAndCountsTheBackgroundApart) {
  const Study study = Load(kSmall, {"workload.background_load=0.3", "workload.background_us=100000"});
  const nlohmann::json alone = RunStudy(Load(kSmall))["runs"][0], run = RunStudy(study)["runs"][0];
  EXPECT_EQ(run["flows"], alone["flows"]);
  EXPECT_EQ(run["ideal_us"], alone["ideal_us"]);
  EXPECT_EQ(run["packets"], alone["packets"]);
  EXPECT_FALSE(run["missed_deadline"]);
  EXPECT_GT(run["background"]["flows"], run["background"]["started"]);
  EXPECT_GE(run["background"]["started"], run["background"]["finished"]);
  EXPECT_LT(run["completion_us"], 10'000);
  EXPECT_FALSE(alone.contains("background"));
}

TEST(StudyRunTest, FlowsCsvHasALinePerFlow) {
  const Study study = Load(kSmall);
  auto runs = ExecuteStudy(study, {});
  ASSERT_TRUE(runs.ok());
  std::ostringstream csv;
  WriteFlowsCsv(study, *runs, csv);
  const std::string text = csv.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

TEST(StudyRunTest, BuiltinStudiesLoad) {
  for (const BuiltinStudy& builtin : BuiltinStudies()) {
    const auto study = ParseStudy(builtin.toml, std::string(builtin.name), "", {});
    EXPECT_TRUE(study.ok()) << study.status();
  }
  EXPECT_GE(BuiltinStudies().size(), 5u);
}

}  // namespace
}  // namespace paceline::tools
