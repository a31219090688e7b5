#include "transport/engine/progress.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <thread>

#include "tests/unit/transport/engine/memory_lane.h"
#include "transport/engine/clock.h"
#include "transport/engine/progress_thread.h"

namespace paceline {
namespace {

struct Side {
  MemoryLane* lane = nullptr;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Progress> progress;
};

Side MakeSide(uint8_t number, unsigned ranks = 1) {
  Side side;
  auto lane = std::make_unique<MemoryLane>(number);
  side.lane = lane.get();
  std::vector<std::unique_ptr<Lane>> lanes;
  lanes.push_back(std::move(lane));
  EngineOptions options;
  options.endpoint.congestion_control = "none";
  side.engine = *Engine::Create(options, std::move(lanes));
  WaitPolicyOptions wait;
  wait.local_ranks = ranks;
  wait.allowed_cores = 2;
  side.progress = *Progress::Create(side.engine.get(), wait);
  return side;
}

bool Readable(int fd) {
  pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 1;
}

// Polls until nothing moves and arms the descriptor.
void Settle(Progress& progress) {
  do {
    while (progress.Poll()) {
    }
  } while (!progress.Arm());
}

TEST(Progress, DescriptorBecomesReadableWhenSomethingArrives) {
  Side a = MakeSide(0), b = MakeSide(1);
  MemoryLane::Join(*a.lane, *b.lane);
  Settle(*a.progress);
  EXPECT_FALSE(Readable(a.progress->descriptor()));
  const uint8_t junk[4] = {};
  TxSegment segment;
  segment.header = junk;
  segment.header_bytes = sizeof(junk);
  b.lane->Send({&segment, 1});
  EXPECT_TRUE(Readable(a.progress->descriptor()));
  EXPECT_TRUE(a.progress->Poll());
  EXPECT_EQ(a.engine->endpoint().counters().rx_packets + a.engine->endpoint().counters().rx_malformed, 1u + 1u);
  Settle(*a.progress);
  EXPECT_FALSE(Readable(a.progress->descriptor()));
}

TEST(Progress, ArmRefusesWhileThereIsSomethingToDo) {
  Side a = MakeSide(0);
  Settle(*a.progress);
  a.progress->Kick();
  EXPECT_FALSE(a.progress->Arm());
  a.progress->Poll();
  EXPECT_TRUE(a.progress->Arm());
}

TEST(Progress, LanesAreAskedBeforeASleepAndMayRefuse) {
  Side a = MakeSide(0, 8);
  Settle(*a.progress);
  a.lane->prepared = 0;
  a.lane->may_wait = false;
  EXPECT_FALSE(a.progress->Arm());
  for (int pass = 0; pass < 20; ++pass) {
    a.progress->Poll();
    EXPECT_FALSE(a.progress->Idle(Time::Never())) << "a sleep, which would have no end";
  }
  EXPECT_GT(a.lane->prepared, 10);
  a.lane->may_wait = true;
  EXPECT_TRUE(a.progress->Arm());
}

TEST(Progress, WakeIsNeverLost) {
  Side a = MakeSide(0, 8);
  a.progress->Poll();
  // Before the sleep: the sleep does not begin.
  a.progress->Wake();
  EXPECT_FALSE(a.progress->Idle(Time::Never()));
  EXPECT_TRUE(Readable(a.progress->descriptor()));
  a.progress->Poll();
  EXPECT_FALSE(Readable(a.progress->descriptor()));
  // At any moment, from another thread, over and over: each is seen by a Poll, or one of the sleeps here has no end.
  std::atomic<int> passes{0};
  std::atomic<bool> done{false};
  std::thread waker([&] {
    for (int i = 0; i < 2000; ++i) {
      const int before = passes.load();
      a.progress->Wake();
      while (passes.load() == before) std::this_thread::yield();
    }
    done = true;
    a.progress->Wake();
  });
  while (!done) {
    a.progress->Poll();
    ++passes;
    if (!done) a.progress->Idle(Time::Never());
  }
  waker.join();
}

TEST(Progress, SleepEndsAtItsDeadline) {
  Side a = MakeSide(0, 8);
  // On a busy machine all of the time until a deadline may pass without us: then another.
  for (bool slept = false; !slept;) {
    const Time deadline = MonotonicNow() + Duration::Millis(2);
    while (MonotonicNow() < deadline) {
      a.progress->Poll();
      slept |= a.progress->Idle(deadline);
    }
  }
}

// Until the deadline or what comes before.
void SleepFor(Progress& progress, Duration span) {
  for (bool slept = false; !slept;) {  // on a busy machine the deadline may come before the sleep
    const Time deadline = MonotonicNow() + span;
    progress.Poll();
    slept = progress.Idle(deadline);
  }
}

void SleepInVain(Progress& progress) {
  do SleepFor(progress, Duration::Millis(2));
  while (!progress.slept_in_vain());
}

TEST(Progress, ASleepInVainIsToldFromOneThatSomethingEnded) {
  Side a = MakeSide(0, 8);
  SleepInVain(*a.progress);
  EXPECT_TRUE(a.progress->slept_in_vain());
  std::atomic<bool> up{false};
  std::thread waker([&] {
    while (!up) {  // a wake-up before the sleep prevents it
      usleep(2'000);
      a.progress->Wake();
    }
  });
  SleepFor(*a.progress, Duration::Seconds(600));
  up = true;
  EXPECT_FALSE(a.progress->slept_in_vain()) << "a wake-up is something that came";
  waker.join();
  a.progress->Poll();
  a.progress->Wake();
  a.progress->Idle(Time::Never());
  EXPECT_FALSE(a.progress->slept_in_vain()) << "there was no sleep";
}

TEST(Progress, OneSleepMayFollowAnotherUnlessSomethingIsToBeDone) {
  Side a = MakeSide(0, 8);
  EXPECT_FALSE(a.progress->MayGoOnSleeping()) << "nobody has looked";
  SleepInVain(*a.progress);
  EXPECT_TRUE(a.progress->MayGoOnSleeping());
  a.progress->Kick();
  EXPECT_FALSE(a.progress->MayGoOnSleeping()) << "something was posted";
  SleepInVain(*a.progress);
  a.progress->Wake();
  EXPECT_FALSE(a.progress->MayGoOnSleeping()) << "somebody wants a pass";
  SleepInVain(*a.progress);
  a.progress->Poll();
  EXPECT_FALSE(a.progress->MayGoOnSleeping()) << "what the pass found is not known here";
}

// From here on the calling process lives on a kernel that lacks this system call.
bool TakeAway(int call) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {.len = std::size(program), .filter = program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Progress, SleepsOnAKernelWithoutFineEpollTimeouts) {
  constexpr int kSlept = 0, kCameBackAtOnce = 1, kNotAllowed = 2;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!TakeAway(SYS_epoll_pwait2)) _exit(kNotAllowed);
    Side a = MakeSide(0, 8);
    int sleeps = 0;
    const Time deadline = MonotonicNow() + Duration::Millis(20);
    while (MonotonicNow() < deadline) {
      a.progress->Poll();
      sleeps += a.progress->Idle(deadline);
    }
    _exit(sleeps <= 5 ? kSlept : kCameBackAtOnce);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "this process may not filter its system calls";
  EXPECT_EQ(WEXITSTATUS(status), kSlept);
}

TEST(ProgressThread, WorksForTheCallerAndLetsHimIn) {
  Side a = MakeSide(0), b = MakeSide(1);
  MemoryLane::Join(*a.lane, *b.lane);
  std::atomic<int> passes{0};
  {
    ProgressThread thread(a.progress.get(), [&] {
      ++passes;
      return Time::Never();
    });
    uint32_t listeners = 0;
    for (int i = 0; i < 1000; ++i) {
      listeners += thread.Locked(true, [&] { return a.engine->endpoint().Listen() != 0 ? 1u : 0u; });
    }
    EXPECT_EQ(listeners, 1000u);
    while (passes.load() == 0) std::this_thread::yield();
  }
}

TEST(ProgressThread, StopsAlsoWhenAPassTakesInTheWakeThatCameWithIt) {
  Side a = MakeSide(0);
  auto thread = std::make_unique<ProgressThread>(a.progress.get(), [] { return Time::Never(); });
  const auto a_while = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  a_while();  // it has nothing to do, and sleeps
  std::thread stopper;
  thread->Locked(false, [&] {
    a.progress->Wake();  // a pass begins, and waits for the lock
    a_while();
    stopper = std::thread([&] { thread.reset(); });
    a_while();
  });
  stopper.join();
}

TEST(LocalRanks, ComeFromTheEnvironment) {
  for (const char* name : {"PACELINE_LOCAL_RANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE",
                           "SLURM_TASKS_PER_NODE"}) {
    unsetenv(name);
  }
  EXPECT_EQ(LocalRanksFromEnvironment(), 1u);
  setenv("SLURM_TASKS_PER_NODE", "8(x2)", 1);
  EXPECT_EQ(LocalRanksFromEnvironment(), 8u);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
  EXPECT_EQ(LocalRanksFromEnvironment(), 4u);
  setenv("PACELINE_LOCAL_RANKS", "nonsense", 1);
  EXPECT_EQ(LocalRanksFromEnvironment(), 4u);
  setenv("PACELINE_LOCAL_RANKS", "2", 1);
  EXPECT_EQ(LocalRanksFromEnvironment(), 2u);
  EXPECT_GE(AllowedCores(), 1u);
}

TEST(JobRanks, ComeFromTheEnvironment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) unsetenv(name);
  EXPECT_EQ(JobRanksFromEnvironment(), 1u);
  setenv("SLURM_STEP_NUM_TASKS", "16", 1);
  EXPECT_EQ(JobRanksFromEnvironment(), 16u);
  setenv("OMPI_COMM_WORLD_SIZE", "0", 1);
  EXPECT_EQ(JobRanksFromEnvironment(), 16u);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  EXPECT_EQ(JobRanksFromEnvironment(), 4u);
}

}  // namespace
}  // namespace paceline
