#include "tools/perf/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace paceline::tools {
namespace {

constexpr uint64_t kSize = 64;
constexpr double kGapNanos = 1e6;  // between messages
constexpr Duration kInterval = Duration::Millis(10);

std::unique_ptr<Session> MakeSession(Rendezvous* rendezvous) {
  api::ContextOptions options;
  options.lane = "udp";
  auto session = Session::Create(options, rendezvous);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

// One message a millisecond for `length`, from rank 1 to rank 0, two threads of this process. The sender does nothing
// for `stall` after the first few. `reports`: gets when the sender reported, in seconds after the start.
StreamResult RunOpenLoop(Duration length, Duration stall, std::vector<double>* reports = nullptr) {
  int pair[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  StreamResult result;
  const auto run = [&](uint32_t rank) {
    Rendezvous rendezvous(rank, 2, rank == 0 ? std::vector<int>{-1, pair[0]} : std::vector<int>{pair[1]});
    const auto session = MakeSession(&rendezvous);
    if (session == nullptr) return;
    PairMemory memory{.window = 8, .size = kSize, .stride = kSize, .tx = Block(8 * kSize), .rx = Block(8 * kSize)};
    const auto tx = session->Register(memory.tx), rx = session->Register(memory.rx);
    ASSERT_TRUE(tx.ok() && rx.ok());
    memory.tx_region = *tx;
    memory.rx_region = *rx;
    StreamPlan plan{.peer = 1 - rank, .active = rank == 1, .passive = rank == 0, .length = length};
    plan.bits_per_second = kSize * 8e9 / kGapNanos;
    if (rank == 1) {
      plan.interval = kInterval;
      plan.report = [&, stalled = false](double seconds, uint64_t, uint64_t) mutable {
        if (reports != nullptr) reports->push_back(seconds);
        if (!stalled) std::this_thread::sleep_for(std::chrono::nanoseconds(stall.nanos()));
        stalled = true;
      };
    }
    const auto done = RunStream(*session, memory, plan);
    ASSERT_TRUE(done.ok()) << done.status();
    if (rank == 1) result = *done;
  };
  std::thread receiver(run, 0);
  run(1);
  receiver.join();
  return result;
}

TEST(Stream, AStallCountsForAllMessagesThatItHeldUp) {
  // It lasts beyond the end: what was due in it is sent after that.
  const StreamResult result = RunOpenLoop(Duration::Millis(500), Duration::Millis(500));
  EXPECT_EQ(result.started, 500u);
  EXPECT_EQ(result.not_started, 0u);
  EXPECT_EQ(result.latency.count(), 500u);
  EXPECT_GT(result.latency.Quantile(0.5), 200e6) << "of those due in the midst of the stall";
  EXPECT_GT(result.seconds, 0.5);
}

TEST(Stream, AStallIsOneLineOfProgress) {
  std::vector<double> reports;
  RunOpenLoop(Duration::Millis(200), Duration::Millis(100), &reports);
  ASSERT_GE(reports.size(), 2u);
  for (size_t i = 1; i < reports.size(); ++i) {
    EXPECT_GE(reports[i] - reports[i - 1], kInterval.seconds() - 1e-9)
        << "line " << i << " would show the rate of a moment";
  }
}

TEST(Stream, WhatIsHeldUpForTooLongIsCountedAndNotSent) {
  const StreamResult result = RunOpenLoop(Duration::Millis(50), Duration::Millis(150));
  EXPECT_GT(result.started, 0u);
  EXPECT_LT(result.started, 50u);
  EXPECT_EQ(result.started + result.not_started, 50u);
}

}  // namespace
}  // namespace paceline::tools
