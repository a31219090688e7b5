#include "tools/perf/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace paceline::tools {
namespace {

using ::testing::HasSubstr;

// The rendezvous objects of a team inside this process.
std::vector<std::unique_ptr<Rendezvous>> MakeTeam(uint32_t world) {
  std::vector<int> hub(world, -1);
  std::vector<std::unique_ptr<Rendezvous>> team(world);
  for (uint32_t rank = 1; rank < world; ++rank) {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    hub[rank] = pair[0];
    team[rank] = std::make_unique<Rendezvous>(rank, world, std::vector<int>{pair[1]});
  }
  team[0] = std::make_unique<Rendezvous>(0, world, hub);
  return team;
}

TEST(Rendezvous, EverybodyGetsEverything) {
  auto team = MakeTeam(5);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 5; ++rank) {
    threads.emplace_back([&team, rank] {
      for (int round = 0; round < 50; ++round) {
        // Long enough to overflow the buffers of a socket now and then.
        const std::string own(round % 10 == 0 ? 500'000 + rank : rank, static_cast<char>('a' + rank));
        const auto all = team[rank]->AllGather(own);
        ASSERT_TRUE(all.ok()) << all.status();
        ASSERT_EQ(all->size(), 5u);
        for (uint32_t other = 0; other < 5; ++other) {
          EXPECT_EQ((*all)[other],
                    std::string(round % 10 == 0 ? 500'000 + other : other, static_cast<char>('a' + other)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Rendezvous, WaitsCallIdle) {
  auto team = MakeTeam(2);
  int idles = 0;
  std::thread late([&] {
    usleep(20'000);
    EXPECT_TRUE(team[1]->Barrier().ok());
  });
  team[0]->set_idle([&] {
    ++idles;
    usleep(100);
  });
  EXPECT_TRUE(team[0]->Barrier().ok());
  EXPECT_GT(idles, 0);
  late.join();
}

TEST(Rendezvous, ALostRankIsAnErrorForAll) {
  auto team = MakeTeam(3);
  team[2].reset();
  std::thread other([&] {
    const auto status = team[1]->Barrier();
    EXPECT_FALSE(status.ok());
  });
  const absl::Status status = team[0]->Barrier();
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2"));
  team[0].reset();
  other.join();
}

TEST(Rendezvous, AStrangersFrameIsNoWrongUse) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  Rendezvous hub(0, 2, {-1, pair[0]});
  ASSERT_EQ(write(pair[1], "HTTP/1.1 400 Bad Request\r\n", 26), 26);
  const absl::Status status = hub.Barrier();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 is not a paceline perf"));
  close(pair[1]);
}

}  // namespace
}  // namespace paceline::tools
