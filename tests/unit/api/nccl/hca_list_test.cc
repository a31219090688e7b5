#include "api/nccl/src/hca_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::nccl {
namespace {

bool Takes(const char* list, const char* name) {
  const auto parsed = HcaList::Parse(list);
  EXPECT_TRUE(parsed.ok()) << list;
  return parsed.ok() && parsed->Takes(name);
}

TEST(HcaListTest, NamesAreBeginnings) {
  EXPECT_TRUE(Takes("eth", "eth0"));
  EXPECT_TRUE(Takes("ens, eth1", "eth12"));
  EXPECT_FALSE(Takes("eth1", "eth0"));
  EXPECT_FALSE(Takes("eth0", "eth"));
}

TEST(HcaListTest, EqualsTakesNamesAsTheyAre) {
  EXPECT_TRUE(Takes("=eth1,lo", "eth1"));
  EXPECT_TRUE(Takes("=eth1,lo", "lo"));
  EXPECT_FALSE(Takes("=eth1", "eth12"));
}

TEST(HcaListTest, ACardStandsForItsPorts) {
  EXPECT_TRUE(Takes("mlx5_1", "mlx5_1:1"));
  EXPECT_TRUE(Takes("=mlx5_1", "mlx5_1:2"));
  EXPECT_FALSE(Takes("=mlx5_1", "mlx5_10:1"));
  EXPECT_TRUE(Takes("=mlx5_1:2", "mlx5_1:2"));
  EXPECT_FALSE(Takes("=mlx5_1:2", "mlx5_1:1"));
  EXPECT_FALSE(Takes("^=mlx5_1", "mlx5_1:1"));
}

TEST(HcaListTest, CaretLeavesOut) {
  EXPECT_FALSE(Takes("^eth", "eth0"));
  EXPECT_TRUE(Takes("^eth", "ens1"));
  EXPECT_TRUE(Takes("^=eth1", "eth12"));
  EXPECT_FALSE(Takes("^=eth1", "eth1"));
}

TEST(HcaListTest, WhatNamesNothingIsRefused) {
  for (const char* text : {"^", "=", " , ", "eth0,^eth1", "=^eth0", "eth 0"}) {
    const auto parsed = HcaList::Parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.status().message(), ::testing::HasSubstr(std::string("PACELINE_HCA=") + text));
  }
}

}  // namespace
}  // namespace paceline::nccl
