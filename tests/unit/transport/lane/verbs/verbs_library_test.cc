// The libraries that a machine has, as the lane calls them: here stand-ins under their names, over cards in memory.
#include "transport/lane/verbs/verbs_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "transport/lane/verbs/verbs_lane.h"

namespace paceline {
namespace {

class VerbsLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("FAKE_VERBS_CLOCK", "1", 1);
    // Loaded before the lane asks for them, they are those that it finds under their names.
    ibverbs_ = Load(PACELINE_FAKE_IBVERBS);
    mlx5_ = Load(PACELINE_FAKE_MLX5);
    ASSERT_TRUE(ibverbs_ != nullptr && mlx5_ != nullptr);
    a_ = Make("fake0");
    b_ = Make("fake1");
    ASSERT_TRUE(a_ != nullptr && b_ != nullptr);
    to_b_ = a_->OpenPeer(b_->address());
    to_a_ = b_->OpenPeer(a_->address());
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
    EXPECT_STREQ(Ask<const char*>(ibverbs_, "fake_verbs_violation"), "");
  }
  static void* Load(const char* path) {
    void* library = dlopen(path, RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  }
  template <typename Answer>
  static Answer Ask(void* library, const char* name) {
    return reinterpret_cast<Answer (*)()>(dlsym(library, name))();
  }
  static std::unique_ptr<Lane> Make(const std::string& device) {
    VerbsLaneOptions options;
    options.device = device;
    auto lane = CreateVerbsLane(options);
    EXPECT_TRUE(lane.ok()) << lane.status();
    return lane.ok() ? *std::move(lane) : nullptr;
  }
  // One write between the two, to the end.
  void Write(Lane& from, uint32_t peer, Lane& to) {
    std::vector<uint8_t> memory(1000), payload(1000, 9);
    const uint64_t key = to.RegisterMemory({.base = memory.data(), .bytes = memory.size()});
    TxSegment segment;
    segment.kind = SegmentKind::kWrite;
    segment.peer = peer;
    segment.payload = payload.data();
    segment.payload_bytes = static_cast<uint32_t>(payload.size());
    segment.remote_address = reinterpret_cast<uint64_t>(memory.data());
    segment.remote_key = key;
    EXPECT_EQ(from.Send({&segment, 1}), 1u);
    std::array<RxSegment, 8> out;
    for (int look = 0; look < 5; ++look) {
      now_ = now_ + Duration::Millis(1);
      from.Receive(out, now_);
      to.Receive(out, now_);
    }
    EXPECT_EQ(memory, payload);
    to.DeregisterMemory(key);
  }

  void* ibverbs_ = nullptr;
  void* mlx5_ = nullptr;
  std::unique_ptr<Lane> a_, b_;
  uint32_t to_b_ = 0, to_a_ = 0;
  Time now_ = Time::FromNanos(1'000'000'000);
};

TEST_F(VerbsLibraryTest, UdpPortsAreGivenToQueuePairsOfMlx5CardsAlone) {
  Write(*b_, to_a_, *a_);
  EXPECT_EQ(Ask<uint32_t>(mlx5_, "fake_mlx5_chosen_for"), 0u);
  Write(*a_, to_b_, *b_);
  EXPECT_NE(Ask<uint32_t>(mlx5_, "fake_mlx5_chosen_for"), 0u);
  EXPECT_GE(Ask<uint16_t>(mlx5_, "fake_mlx5_chosen"), 0xc000);
}

TEST_F(VerbsLibraryTest, ForkLeavesTheMemoryOfCardsWhereItIs) {
  EXPECT_TRUE(Ask<bool>(ibverbs_, "fake_verbs_fork_is_safe"));
}

// The card's clock counts 20 s while next to nothing passes here: it is taken for set, and what arrived 10 s ago by it
// arrived so long before the lane looked.
TEST_F(VerbsLibraryTest, TimesOfArrivalAreThoseOfTheCard) {
  const auto set_time = reinterpret_cast<void (*)(int64_t)>(dlsym(ibverbs_, "fake_verbs_set_time"));
  ASSERT_TRUE(b_->capabilities().rx_timestamps);
  const std::string text = "packet";
  TxSegment segment;
  segment.peer = to_b_;
  segment.header = reinterpret_cast<const uint8_t*>(text.data());
  segment.header_bytes = static_cast<uint16_t>(text.size());
  EXPECT_EQ(a_->Send({&segment, 1}), 1u);
  std::array<RxSegment, 8> out;
  constexpr int64_t kSecond = 1'000'000'000;
  set_time(10 * kSecond);
  a_->Receive(out, now_);  // the wire moves
  set_time(20 * kSecond);
  timespec clock{};
  clock_gettime(CLOCK_MONOTONIC, &clock);
  const Time now = Time::FromNanos(clock.tv_sec * kSecond + clock.tv_nsec);
  ASSERT_EQ(b_->Receive(out, now), 1u);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(out[0].data), out[0].data_bytes), text);
  EXPECT_TRUE(*out[0].source == a_->address());
  EXPECT_GE(out[0].received_at, now - Duration::Seconds(10));
  EXPECT_LT(out[0].received_at, now);
}

}  // namespace
}  // namespace paceline
