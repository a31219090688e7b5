// Messages of the whole transport over two dpdk lanes of one process.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/unit/transport/lane/dpdk/dpdk_fixture.h"
#include "tests/unit/transport/lane/dpdk/engine_pair.h"
#include "transport/lane/impair/impair_lane.h"

namespace paceline {
namespace {

class DpdkEngineTest : public DpdkTest {
 protected:
  void Start(const Impairment& impairment = {}, unsigned ring_entries = 1024) {
    const RingPair ports = RingPair::Make(ring_entries);
    std::unique_ptr<Lane> a = MakeLane(ports.a + ",address=192.0.2.1/24"),
                          b = MakeLane(ports.b + ",address=192.0.2.2/24");
    ASSERT_TRUE(a != nullptr && b != nullptr);
    if (!impairment.none()) b = ImpairLane::Create(std::move(b), impairment).value();  // what arrives
    pair_ = std::make_unique<EnginePair>(std::move(a), std::move(b), "tita");
    ASSERT_TRUE(pair_->Connect());
  }
  void ExpectMessage(size_t bytes) {
    std::vector<uint8_t> from(bytes), to(bytes);
    std::iota(from.begin(), from.end(), uint8_t{1});
    const Time now = EnginePair::Now();
    ASSERT_EQ(pair_->endpoint(1).PostReceive(pair_->connection(1), {.buffer = {to.data(), bytes}}, now),
              PostResult::kOk);
    ASSERT_EQ(pair_->endpoint(0).PostSend(pair_->connection(0), {.buffer = {from.data(), bytes}}, now),
              PostResult::kOk);
    bool done[2] = {};
    while (!(done[0] && done[1])) {
      ASSERT_LT(EnginePair::Now() - now, Duration::Seconds(60));
      pair_->Poll();
      for (int side = 0; side < 2; ++side) {
        Completion completion;
        if (pair_->endpoint(side).PollCompletions({&completion, 1}) == 0) continue;
        ASSERT_EQ(completion.status, OperationStatus::kOk);
        done[side] = true;
      }
    }
    EXPECT_EQ(from, to);
  }
  std::unique_ptr<EnginePair> pair_;
};

TEST_F(DpdkEngineTest, MessagesOfAllSizesArrive) {
  Start();
  for (const size_t bytes : {1u, 64u, 1400u, 1'000'000u}) ExpectMessage(bytes);
  EXPECT_EQ(pair_->lane(0).counters().tx_drops, 0u);
}

TEST_F(DpdkEngineTest, AShortQueueAndABadNetworkLoseNoMessage) {
  Impairment bad;
  bad.loss = 0.03;
  bad.duplicate = 0.03;
  bad.seed = 5;
  Start(bad, 64);
  ExpectMessage(1'000'000);
  EXPECT_GT(pair_->endpoint(0).counters().retransmits, 0u);
}

}  // namespace
}  // namespace paceline
