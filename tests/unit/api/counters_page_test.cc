#include "api/cpp/src/counters_page.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace paceline::api {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Counter> Example() {
  return {{"apples", "pieces", "", 3}, {std::string(100, 'n'), std::string(100, 'u'), "", 4}};
}

TEST(CountersPage, IsReadAsItWasWritten) {
  auto page = CountersPage::Create(Example());
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_THAT((*page)->name(), HasSubstr("paceline-" + std::to_string(getpid()) + "-"));
  (*page)->Set(0, 77);
  (*page)->Stamp();
  const auto read = ReadCounterPage((*page)->name());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->pid, static_cast<uint64_t>(getpid()));
  EXPECT_GE(read->updated_unix_nanos, read->started_unix_nanos);
  ASSERT_EQ(read->counters.size(), 2u);
  EXPECT_EQ(read->counters[0].name, "apples");
  EXPECT_EQ(read->counters[0].unit, "pieces");
  EXPECT_EQ(read->counters[0].value, 77u);
  EXPECT_EQ(read->counters[1].name, std::string(39, 'n'));
  EXPECT_EQ(read->counters[1].value, 4u);
}

// In a child with a /dev/shm of its own. What has a size but no memory behind it would kill it.
TEST(CountersPage, IsNotMadeWhereSharedMemoryIsFull) {
  enum { kGood, kNotMounted, kNotFull, kMade, kLeft };
  const pid_t child = fork();
  if (child == 0) {
    if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4k") != 0) {
      _exit(kNotMounted);
    }
    const int full = open("/dev/shm/full", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (full < 0) _exit(kNotMounted);  // whoever has no number in a namespace of his own
    if (posix_fallocate(full, 0, 4096) != 0) _exit(kNotFull);
    if (CountersPage::Create(Example()).ok()) _exit(kMade);
    _exit(ListCounterPages().empty() ? kGood : kLeft);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNotMounted) GTEST_SKIP() << "no mount namespace for this user here";
  EXPECT_EQ(WEXITSTATUS(status), kGood);
}

TEST(CountersPage, IsListedWhileItsOwnerLivesAndGoneAfterwards) {
  std::string name;
  {
    auto page = CountersPage::Create(Example());
    ASSERT_TRUE(page.ok());
    name = (*page)->name();
    EXPECT_THAT(ListCounterPages(), Contains(name));
  }
  EXPECT_THAT(ListCounterPages(), Not(Contains(name)));
  EXPECT_EQ(ReadCounterPage(name).status().code(), StatusCode::kNotFound);
}

TEST(CountersPage, LeftByAKilledProcessIsRemoved) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto page = CountersPage::Create(Example());
    const std::string name = page.ok() ? (*page)->name() : "";
    if (write(pipes[1], name.data(), name.size()) < 0) _exit(1);
    close(pipes[1]);
    pause();
  }
  close(pipes[1]);
  char text[128] = "";
  ASSERT_GT(read(pipes[0], text, sizeof(text) - 1), 0);
  const std::string name = text;
  EXPECT_TRUE(ReadCounterPage(name).ok());
  EXPECT_THAT(ListCounterPages(), Contains(name));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(ListCounterPages(), Not(Contains(name)));
  EXPECT_FALSE(ReadCounterPage(name).ok());
}

TEST(CountersPage, LeftEmptyByAKilledProcessIsRemovedOnceItIsOld) {
  const std::string path = "/dev/shm/paceline-test-empty-" + std::to_string(getpid());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(fd, 0);
  ListCounterPages();
  EXPECT_EQ(access(path.c_str(), F_OK), 0) << "its owner may be about to lock it";
  const timespec long_ago[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(futimens(fd, long_ago), 0);
  ListCounterPages();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  close(fd);
  unlink(path.c_str());
}

// Anybody may put things where the pages lie.
TEST(CountersPage, WhatIsNoFileHoldsNobodyUp) {
  const std::string name = "paceline-" + std::to_string(getpid()) + "-999999";
  const std::string path = "/dev/shm/" + name;
  ASSERT_EQ(mkfifo(path.c_str(), 0666), 0);
  ListCounterPages();
  EXPECT_FALSE(ReadCounterPage(name).ok());
  EXPECT_EQ(unlink(path.c_str()), 0);
}

TEST(CountersPage, DamageIsRefused) {
  EXPECT_EQ(ReadCounterPage("../../etc/passwd").status().code(), StatusCode::kInvalidArgument);
  const std::string name = "paceline-test-" + std::to_string(getpid());
  const std::string path = "/dev/shm/" + name;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(fd, 0);
  // Held as an owner holds it: any process that makes a page of its own removes those that nobody holds.
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  EXPECT_THAT(ReadCounterPage(name).status().message(), HasSubstr("too short"));
  std::string bytes(200, 'x');
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_THAT(ReadCounterPage(name).status().message(), HasSubstr("damaged"));
  // A true header that promises more records than there are.
  const uint32_t words[4] = {1, 64, 64, 50};
  ASSERT_EQ(pwrite(fd, "PCLCNTRS", 8, 0), 8);
  ASSERT_EQ(pwrite(fd, words, sizeof(words), 8), static_cast<ssize_t>(sizeof(words)));
  EXPECT_THAT(ReadCounterPage(name).status().message(), HasSubstr("damaged"));
  close(fd);
  unlink(path.c_str());
}

// Whose page it is, perhaps a stranger, may shorten it while it is read.
TEST(CountersPage, ThatBecomesShorterEndsNobodyWhoReadsIt) {
  auto page = CountersPage::Create(std::vector<Counter>(500, Example()[0]));
  ASSERT_TRUE(page.ok());
  const std::string path = "/dev/shm/" + (*page)->name();
  const auto whole = static_cast<off_t>(std::filesystem::file_size(path));
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    std::vector<char> bytes(static_cast<size_t>(whole));
    if (pread(fd, bytes.data(), bytes.size(), 0) != whole) _exit(1);
    while (ftruncate(fd, 0) == 0 && pwrite(fd, bytes.data(), bytes.size(), 0) == whole) {
    }
    _exit(1);
  }
  for (int refused = 0; refused < 5000;) refused += ReadCounterPage((*page)->name()).ok() ? 0 : 1;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_EQ(truncate(path.c_str(), whole), 0);  // our own map of it ends with it
}

}  // namespace
}  // namespace paceline::api
