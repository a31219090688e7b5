#include <gmock/gmock.h>

#include <map>

#include "tests/unit/tools/study/workloads/workload_support.h"

namespace paceline::tools {
namespace {

TEST(StorageTest, EveryOtherHostWritesItsCheckpointAndReadsBatchAfterBatch) {
  const Workload workload = Build("kind = 'storage'\nstorage_hosts = 3\nbytes = 1000\nreads = 4\nread_bytes = 77", 15);
  const std::set<uint32_t> servers = {0, 5, 10};
  std::map<uint32_t, uint64_t> written, read;
  for (const Flow& flow : workload.flows) {
    EXPECT_NE(servers.contains(flow.source), servers.contains(flow.destination));
    if (servers.contains(flow.destination)) {
      written[flow.source] += flow.bytes;
      EXPECT_EQ(flow.trigger, kNoTrigger);
    } else {
      read[flow.destination] += flow.bytes;
    }
  }
  EXPECT_EQ(written.size(), 12u);
  EXPECT_EQ(read.size(), 12u);
  for (const auto& [host, bytes] : written) EXPECT_EQ(bytes, 1000u);
  for (const auto& [host, bytes] : read) EXPECT_EQ(bytes, 4u * 77);
  const auto causes = CausesOf(workload);
  size_t waiting = 0;
  for (const Flow& flow : workload.flows) {
    if (flow.trigger == kNoTrigger) continue;
    ++waiting;
    ASSERT_EQ(causes[flow.trigger].size(), 1u);
    EXPECT_EQ(workload.flows[*causes[flow.trigger].begin()].destination, flow.destination);
  }
  EXPECT_EQ(waiting, 12u * 3);
}

TEST(StorageTest, EitherHalfMayBeLeftOut) {
  EXPECT_EQ(Build("kind = 'storage'\nreads = 0", 16).flows.size(), 12u * 4);
  EXPECT_EQ(Build("kind = 'storage'\nbytes = 0\nreads = 5", 16).flows.size(), 12u * 5);
  const auto message = [](const std::string& toml) { return std::string(TryBuild(toml, 16).status().message()); };
  EXPECT_THAT(message("kind = 'storage'\nbytes = 0\nreads = 0"), ::testing::HasSubstr("nothing is left"));
  EXPECT_THAT(message("kind = 'storage'\nstorage_hosts = 16"), ::testing::HasSubstr("workload.storage_hosts"));
}

}  // namespace
}  // namespace paceline::tools
