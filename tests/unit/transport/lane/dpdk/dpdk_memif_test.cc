#include "transport/lane/dpdk/dpdk_memif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace paceline {
namespace {

using ::testing::HasSubstr;

class DpdkMemif : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "memif_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    setenv("XDG_RUNTIME_DIR", name.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(DpdkMemif, TheFirstServesTheSecondConnectsAThirdIsRefused) {
  auto first = OpenMemifPair();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(first->device, HasSubstr("role=server"));
  EXPECT_THAT(first->device, HasSubstr("address=169.254.1.1/16"));
  auto second = OpenMemifPair();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->device, HasSubstr("role=client"));
  EXPECT_THAT(second->device, HasSubstr("address=169.254.1.2/16"));
  const auto third = OpenMemifPair();
  EXPECT_THAT(std::string(third.status().message()), HasSubstr("both ends"));
  // An end that is given up is free again.
  first->lock = FileDescriptor();
  auto again = OpenMemifPair();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->device, HasSubstr("role=server"));
}

TEST_F(DpdkMemif, ASocketThatAKilledProcessLeftBehindIsTakenAway) {
  const std::filesystem::path socket = folder_ / "paceline-memif.sock";
  std::ofstream(socket) << "left";
  const auto end = OpenMemifPair();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST_F(DpdkMemif, ItsBuffersHoldFramesOfAnyPacketThatIsAskedFor) {
  const auto usual = OpenMemifPair(), large = OpenMemifPair(9000);
  ASSERT_TRUE(usual.ok() && large.ok());
  EXPECT_EQ(MemifBufferBytes(usual->device), 2048u);
  EXPECT_EQ(MemifBufferBytes(large->device), 9024u);
}

TEST_F(DpdkMemif, APathTooLongForASocketIsRefused) {
  const std::filesystem::path deep = folder_ / std::string(120, 'd');
  std::filesystem::create_directory(deep);
  setenv("XDG_RUNTIME_DIR", deep.c_str(), 1);
  EXPECT_THAT(std::string(OpenMemifPair().status().message()), HasSubstr("XDG_RUNTIME_DIR"));
}

}  // namespace
}  // namespace paceline
