#include "tools/study/report/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/study/report/sample_data.h"

namespace paceline::tools {
namespace {

using testing::HasSubstr;

nlohmann::json MakeRun(const std::string& algorithm, double ratio, double drops) {
  return {{"algorithm", algorithm},       {"seed", 1},       {"flows", 8},     {"finished", 8},  {"packets", 1000},
          {"completion_us", 100 * ratio}, {"ideal_us", 100}, {"ratio", ratio}, {"drops", drops}, {"trims", 0}};
}

// The results of a study with these runs.
nlohmann::json Results(const std::vector<nlohmann::json>& runs) { return {{"runs", runs}}; }

std::string ValueOf(const std::vector<Fact>& facts, const std::string& name) {
  for (const auto& fact : facts) {
    if (fact.name == name) return fact.value;
  }
  return "(absent)";
}

TEST(DescribeTitle, NamesTheWorkload) {
  EXPECT_EQ(DescribeTitle({{"workload", {{"kind", "incast"}, {"fan_in", 32}, {"bytes", 1000000}}}}),
            "Incast 32 to 1, 1 MB each");
  EXPECT_EQ(DescribeTitle({{"workload", {{"kind", "alltoall"}, {"ranks", 64}, {"bytes", 65536}}}}),
            "All-to-all of 64 ranks, 64 KiB each");
  EXPECT_EQ(DescribeTitle({{"workload", {{"kind", "allreduce_ring"}}}, {"fabric", {{"hosts", 16}}}}),
            "Allreduce ring of 16 hosts");
  EXPECT_EQ(DescribeTitle(nlohmann::json::object()), "Congestion study");
}

TEST(DescribeWorkload, SaysWhatTheHostsDo) {
  const nlohmann::json scenario = {
      {"fabric", {{"hosts", 128}}},
      {"workload", {{"kind", "incast"}, {"fan_in", 32}, {"bytes", 1000000}, {"posted_ahead", false}}}};
  EXPECT_EQ(DescribeWorkload(scenario),
            "32 hosts out of 128 each send 1 MB to one and the same host. All flows start at the same moment. Nothing "
            "is posted ahead: a receiver learns of a flow from its first packet.");
}

TEST(DescribeWorkload, KnowsEveryKindAndTheOnesToCome) {
  for (const char* kind : {"incast", "alltoall", "permutation", "victim", "connection_matrix", "moe", "no_such"}) {
    EXPECT_FALSE(DescribeWorkload({{"workload", {{"kind", kind}}}}).empty()) << kind;
  }
  EXPECT_THAT(DescribeWorkload({{"workload", {{"kind", "no_such"}, {"experts", 8}}}}), HasSubstr("experts 8"));
  const nlohmann::json ring = {
      {"workload", {{"kind", "allreduce_ring"}, {"ranks", 16}, {"bytes", 1000000}, {"posted_ahead", true}}}};
  EXPECT_EQ(
      DescribeWorkload(ring),
      "16 ranks sum up a buffer of 1 MB (all-reduce, ring). Receives are posted ahead: those of steps that wait for "
      "others from the start of the run on.");
  const nlohmann::json pinned = {
      {"workload", {{"kind", "allreduce_two_level"}, {"ranks", 16}, {"ranks_per_host", 8}, {"rails", "pinned"}}}};
  EXPECT_THAT(DescribeWorkload(pinned), HasSubstr("16 ranks, 8 to a host, each bound to the NIC of its place, sum up"));
  const nlohmann::json step = {{"workload", {{"kind", "training_step"}, {"layers", 80}, {"tp", 8}, {"fsdp", true}}}};
  EXPECT_THAT(DescribeWorkload(step), HasSubstr("80 layers, hidden size unknown"));
  EXPECT_THAT(DescribeWorkload(step), HasSubstr("tp 8, pp 1, dp 1, fully sharded"));
  EXPECT_EQ(DescribeWorkload(nlohmann::json::object()), "");
}

TEST(DescribeFabric, ListsWhatIsKnown) {
  SampleOptions options;
  options.faults = true;
  const auto facts = DescribeFabric(SampleSection(options).results);
  EXPECT_EQ(ValueOf(facts, "Fabric"), "three-tier fat tree, 4 hosts per ToR, pods of 16, 1:1 core");
  EXPECT_EQ(ValueOf(facts, "Hosts"), "128");
  EXPECT_EQ(ValueOf(facts, "Links"), "100 Gb/s, 1 \u00B5s");
  EXPECT_EQ(ValueOf(facts, "Port queue"), "178.9 KB per port");
  EXPECT_EQ(ValueOf(facts, "ECN marking"), "37.4 KB to 145.6 KB");
  EXPECT_EQ(ValueOf(facts, "When full"), "packet dropped");
  EXPECT_EQ(ValueOf(facts, "Seeds"), "1, 2, 3");
  EXPECT_EQ(ValueOf(facts, "Faults"), "link down at agg:5/up:0 from 600 \u00B5s to 1,100 \u00B5s");
  EXPECT_TRUE(DescribeFabric(nlohmann::json::object()).empty());
}

TEST(DescribeFabric, NamesTheMaximumProbabilityOfAMarkWhereItIsNotOne) {
  nlohmann::json results = SampleSection({}).results;
  results["scenario"]["fabric"]["ecn_max_probability"] = 1;
  EXPECT_EQ(ValueOf(DescribeFabric(results), "ECN marking"), "37.4 KB to 145.6 KB");
  results["scenario"]["fabric"]["ecn_max_probability"] = 0.01;
  EXPECT_EQ(ValueOf(DescribeFabric(results), "ECN marking"), "37.4 KB to 145.6 KB, with at most 1 % between");
}

TEST(DescribeFabric, TakesOversubscriptionPerTier) {
  const nlohmann::json results = {
      {"scenario", {{"fabric", {{"topology", "leaf_spine"}, {"oversubscription", {1, 4}}, {"trimming", true}}}}}};
  EXPECT_EQ(ValueOf(DescribeFabric(results), "Fabric"), "leaf spine, 1:1 and 4:1");
  EXPECT_EQ(ValueOf(DescribeFabric(results), "When full"), "payload trimmed, header goes on");
}

TEST(DescribeFabric, KnowsWhichQueuesHaveNoLimit) {
  nlohmann::json results = {{"scenario", {{"fabric", {{"queue_bytes", 178880}, {"pfc", true}}}}}};
  EXPECT_EQ(ValueOf(DescribeFabric(results), "Port queue"), "no limit per port");
  results["scenario"]["fabric"] = {{"queue_bytes", 178880}, {"buffer", "shared"}, {"shared_buffer_bytes", 2000000}};
  EXPECT_EQ(ValueOf(DescribeFabric(results), "Port queue"), "2 MB per switch, shared by its ports");
}

TEST(DescribeFabric, SaysWhoChoosesThePath) {
  nlohmann::json results = {{"scenario", {{"fabric", {{"hosts", 8}}}, {"paths", {{"policy", "least_delay"}}}}}};
  EXPECT_EQ(ValueOf(DescribeFabric(results), "Paths"), "least delay");
  results["scenario"]["fabric"]["adaptive_routing"] = true;
  EXPECT_EQ(ValueOf(DescribeFabric(results), "Paths"), "least delay; switches take their shortest queue upwards");
}

TEST(DescribeOutcome, NamesFirstAndLastAndWhoLostPackets) {
  EXPECT_EQ(
      DescribeOutcome(Results({MakeRun("tita", 1.004, 0), MakeRun("swift", 1.03, 10), MakeRun("dcqcn", 1.2, 55)})),
      "tita finished first, at 1.004 times the ideal and without losing a packet. dcqcn came last, at 1.200 "
      "times the ideal and with 55 packets dropped (5.5 % of those needed). All others lost packets.");
}

TEST(DescribeOutcome, SeesADeadHeatAndCleanOnesBehindTheFirst) {
  EXPECT_EQ(DescribeOutcome(Results({MakeRun("a", 1.0041, 0), MakeRun("b", 1.0042, 0)})),
            "a and b finished first together, at 1.004 times the ideal. No algorithm lost a packet.");
  EXPECT_THAT(DescribeOutcome(Results({MakeRun("a", 1.01, 5), MakeRun("b", 1.02, 0), MakeRun("c", 1.03, 2)})),
              HasSubstr("Only b lost none."));
  EXPECT_THAT(DescribeOutcome(Results({MakeRun("a", 1.01, 5), MakeRun("b", 1.02, 1)})),
              HasSubstr("Every algorithm lost packets."));
}

// What faults took is not said to have arrived.
TEST(DescribeOutcome, LossesToFaultsAreNoneToQueues) {
  nlohmann::json run = MakeRun("tita", 1, 0);
  run["fault_losses"] = 207;
  EXPECT_EQ(DescribeOutcome(Results({run})),
            "tita finished after 100 \u00B5s, 1.000 times the ideal, without losing a packet to full queues.");
  EXPECT_THAT(DescribeOutcome(Results({run, MakeRun("a", 1.01, 5)})),
              HasSubstr("All others lost packets to full queues."));
  EXPECT_THAT(DescribeOutcome(Results({run, MakeRun("a", 1, 0)})),
              HasSubstr("No algorithm lost a packet to full queues."));
}

TEST(DescribeOutcome, SaysWhoDidNotFinish) {
  nlohmann::json late = MakeRun("dcqcn", 3, 0);
  late["finished"] = 7;
  EXPECT_EQ(DescribeOutcome(Results({MakeRun("tita", 1, 0), late})),
            "tita finished after 100 \u00B5s, 1.000 times the ideal, without losing a packet. dcqcn did not finish "
            "before the deadline.");
  late["finished"] = 8;
  late["missed_deadline"] = true;
  EXPECT_THAT(DescribeOutcome(Results({late})), HasSubstr("dcqcn did not finish before the deadline."));
  EXPECT_EQ(DescribeOutcome(nlohmann::json::object()), "");
}

}  // namespace
}  // namespace paceline::tools
