#include "tools/launcher/launcher_rank.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace paceline::tools {
namespace {

class LauncherRankTest : public testing::Test {
 protected:
  LauncherRankTest() { Forget(); }
  ~LauncherRankTest() override { Forget(); }

  static void Forget() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "RANK",
                             "WORLD_SIZE", "LOCAL_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS",
                             "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS"}) {
      unsetenv(name);
    }
  }
  static void OpenMpi(const char* rank, const char* world) {
    setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    setenv("OMPI_COMM_WORLD_SIZE", world, 1);
  }
  static void Slurm(const char* rank, const char* world) {
    setenv("SLURM_PROCID", rank, 1);
    setenv("SLURM_STEP_NUM_TASKS", world, 1);
  }
  static void Torch(const char* rank, const char* world) {
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", world, 1);
  }
};

TEST_F(LauncherRankTest, NobodySaysAnything) {
  EXPECT_FALSE(FindLauncherRank());
  EXPECT_FALSE(FindMpiRank());
}

TEST_F(LauncherRankTest, WhatEachLauncherSays) {
  Slurm("5", "6");
  setenv("SLURM_STEP_TASKS_PER_NODE", "2(x3)", 1);
  ASSERT_TRUE(FindMpiRank());
  EXPECT_EQ(FindMpiRank()->launcher, "srun");
  EXPECT_EQ(FindMpiRank()->rank, 5u);
  EXPECT_EQ(FindMpiRank()->world, 6u);
  EXPECT_EQ(FindMpiRank()->local_ranks, 2u);
  EXPECT_EQ(FindLauncherRank()->rank, 5u);

  setenv("PMI_RANK", "1", 1);
  setenv("PMI_SIZE", "3", 1);
  EXPECT_EQ(FindMpiRank()->launcher, "mpirun");
  EXPECT_EQ(FindMpiRank()->world, 3u);

  OpenMpi("2", "4");
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
  EXPECT_EQ(FindMpiRank()->rank, 2u);
  EXPECT_EQ(FindMpiRank()->local_ranks, 4u);
}

TEST_F(LauncherRankTest, TorchrunStartsNoMpiProgram) {
  Torch("1", "2");
  EXPECT_FALSE(FindMpiRank());
  ASSERT_TRUE(FindLauncherRank());
  EXPECT_EQ(FindLauncherRank()->launcher, "torchrun");
  Slurm("0", "2");
  ASSERT_TRUE(FindMpiRank());
  EXPECT_EQ(FindMpiRank()->launcher, "srun");
}

// mpirun -n 1 inside a step of several tasks, and a batch script, whose job has tasks that it has not started.
TEST_F(LauncherRankTest, OneProcessIsAlone) {
  Slurm("1", "3");
  OpenMpi("0", "1");
  EXPECT_FALSE(FindMpiRank());
  Forget();
  setenv("SLURM_PROCID", "0", 1);
  setenv("SLURM_NTASKS", "4", 1);
  EXPECT_FALSE(FindMpiRank());
}

TEST_F(LauncherRankTest, NonsenseIsNoRank) {
  OpenMpi("4", "4");
  EXPECT_FALSE(FindMpiRank());
  OpenMpi("x", "4");
  EXPECT_FALSE(FindMpiRank());
  OpenMpi("", "");
  EXPECT_FALSE(FindLauncherRank());
}

}  // namespace
}  // namespace paceline::tools
