// Key files: what is read, and what is refused.
#include "api/cpp/src/cluster_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace paceline::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGood = "000102030405060708090a0b0c0d0e0fF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF";

class ClusterKeyTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "cluster_key_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/key";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }
  std::string Error() { return std::string(ReadClusterKey(path_).status().message()); }

  std::string folder_, path_;
};

TEST_F(ClusterKeyTest, ReadsDigits) {
  for (const std::string& text : {kGood, kGood + "\n", "\n  " + kGood + " \r\n"}) {
    Write(text);
    const auto key = ReadClusterKey(path_);
    ASSERT_TRUE(key.ok()) << key.status().message();
    EXPECT_EQ((*key)[1], 1);
    EXPECT_EQ((*key)[15], 15);
    EXPECT_EQ((*key)[16], 0xf0);
    EXPECT_EQ((*key)[31], 0xff);
  }
}

TEST_F(ClusterKeyTest, SaysWhatIsWrongAndNotWhatItHolds) {
  for (const std::string& text :
       {std::string(), kGood.substr(1), kGood + "0", kGood.substr(2) + "zz", kGood + kGood, std::string(100000, 'a')}) {
    Write(text);
    EXPECT_THAT(Error(), AllOf(HasSubstr(path_), HasSubstr("64 hexadecimal digits"), Not(HasSubstr("0102"))));
  }
}

TEST_F(ClusterKeyTest, RefusesWhatOthersMayTouch) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0601}) {
    Write(kGood, mode);
    EXPECT_THAT(Error(), HasSubstr("chmod 600")) << mode;
  }
  Write(kGood, 0400);
  EXPECT_TRUE(ReadClusterKey(path_).ok());
}

TEST_F(ClusterKeyTest, RefusesWhatIsNoFile) {
  EXPECT_THAT(Error(), HasSubstr("cannot be opened"));
  mkdir(path_.c_str(), 0700);
  EXPECT_THAT(Error(), HasSubstr("not a regular file"));
  rmdir(path_.c_str());
  mkfifo(path_.c_str(), 0600);
  EXPECT_THAT(Error(), HasSubstr("not a regular file"));  // and does not wait for a writer
}

TEST_F(ClusterKeyTest, RefusesWhatBelongsToSomebodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Write(kGood);
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  EXPECT_THAT(Error(), HasSubstr("another user"));
}

}  // namespace
}  // namespace paceline::api
