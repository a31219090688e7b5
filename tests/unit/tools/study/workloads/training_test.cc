#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/tools/study/workloads/workload_support.h"
#include "tools/study/critical_path.h"

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

// 4 layers, hidden 64, 100,000 parameters a layer, 32 tokens, 2 bytes: activations of 4096 bytes.
constexpr char kModel[] = R"(
  kind = "training_step"
  layers = 4
  hidden = 64
  parameters = 400000
  tokens = 32
  tflops = 0.001
  chunks = 2
  ranks_per_host = 1
)";
constexpr double kActivations = 32 * 64 * 2;
constexpr double kParameterBytes = 400000 * 2;

Workload Step(const std::string& keys, uint32_t hosts = 16) { return Build(kModel + keys, hosts); }

// Microseconds that computing takes: 6 operations per parameter and token, of `sequences` sequences on `ranks` ranks.
double Compute(double sequences, double ranks) { return 6 * 400000.0 * 32 * sequences / ranks / 0.001 / 1e6; }

TEST(TrainingTest, DataParallelReducesAllGradientsOnce) {
  const Workload workload = Step("dp = 4\nbatch = 8");
  EXPECT_EQ(TotalBytes(workload), 2 * 3 * kParameterBytes);
  EXPECT_NEAR(sim::PicosToMicros(ComputingAlone(workload)), Compute(8, 4), 0.01);
}

TEST(TrainingTest, FullyShardedGathersTwiceAndScattersOncePerMicroBatch) {
  const Workload workload = Step("dp = 4\nbatch = 8\nfsdp = true");
  EXPECT_EQ(TotalBytes(workload), 2 * 3 * 3 * kParameterBytes);
  EXPECT_NEAR(sim::PicosToMicros(ComputingAlone(workload)), Compute(8, 4), 0.01);
}

TEST(TrainingTest, TensorParallelReducesActivationsFourTimesALayer) {
  const Workload workload = Step("tp = 4\ndp = 1\nbatch = 3");
  EXPECT_EQ(TotalBytes(workload), 4 * 4 * 3 * 2 * 3 * kActivations);
  EXPECT_NEAR(sim::PicosToMicros(ComputingAlone(workload)), Compute(3, 4), 0.01);
}

TEST(TrainingTest, PipelineSendsActivationsAndGradients) {
  const Workload workload = Step("pp = 4\ndp = 1\nbatch = 5");
  EXPECT_EQ(TotalBytes(workload), 2 * 3 * 5 * kActivations);
  // The pipeline is full for one layer of four, filling and draining cost three micro-batches more.
  EXPECT_NEAR(sim::PicosToMicros(ComputingAlone(workload)), Compute(5 + 3, 4), 0.01);
}

TEST(TrainingTest, AllThreeTogether) {
  const Workload workload = Step("tp = 2\npp = 2\ndp = 4\nbatch = 8");
  const double micro_batches = 8;  // of all replicas
  const double tensors = 4 * 4 * micro_batches * 2 * 1 * kActivations;
  const double stages = 2 * 1 * micro_batches * kActivations;
  const double gradients = 2 * 3 * kParameterBytes;
  EXPECT_EQ(TotalBytes(workload), tensors + stages + gradients);
  EXPECT_NEAR(sim::PicosToMicros(ComputingAlone(workload)), Compute(2 + 1, 4), 0.01);
}

TEST(TrainingTest, TensorPartsOnOneHostTakeTimeButNoFabric) {
  std::string model = kModel;
  model.replace(model.find("ranks_per_host = 1"), 18, "ranks_per_host = 4");
  const Workload workload = Build(model + "tp = 4\ndp = 2\nbatch = 2\nnvlink_gbps = 1", 2);
  EXPECT_EQ(TotalBytes(workload), 2 * kParameterBytes);
  const auto nothing = [](const Flow&) { return FlowCost(); };
  const auto none = [](const auto&, const auto&) { return std::optional<sim::Picos>(0); };
  const double copies = 4 * 4 * 2 * 3 * kActivations / 4 * 8 / 1000;  // microseconds at 1 Gb/s
  EXPECT_NEAR(sim::PicosToMicros(FindCriticalPath(workload, {nothing, none})->end), Compute(2, 8) + copies, 0.01);
}

TEST(TrainingTest, AStageSendsAfterItHasComputed) {
  const Workload workload = Step("pp = 2\ndp = 1\nbatch = 2");
  for (const Flow& flow : workload.flows) {
    ASSERT_NE(flow.trigger, kNoTrigger);
    EXPECT_TRUE(workload.triggers[flow.trigger].computes);
    EXPECT_EQ(workload.triggers[flow.trigger].host, flow.source);
  }
}

TEST(TrainingTest, RefusesWhatDoesNotDivide) {
  const auto message = [](const std::string& keys) {
    return std::string(TryBuild(kModel + keys, 16).status().message());
  };
  EXPECT_THAT(message("pp = 3\ndp = 1"), HasSubstr("workload.layers"));
  EXPECT_THAT(message("dp = 4\nbatch = 6"), HasSubstr("workload.batch"));
  EXPECT_THAT(message("dp = 32\nbatch = 32"), HasSubstr("fabric.hosts"));
  EXPECT_THAT(message("tp = 1\npp = 1\ndp = 1"), HasSubstr("from 2"));
  // 2^32 ranks.
  EXPECT_THAT(message("tp = 1024\npp = 64\ndp = 65536"),
              HasSubstr("workload.tp x pp x dp = 4294967296 must be at most 4194304"));
}

}  // namespace
}  // namespace paceline::tools
