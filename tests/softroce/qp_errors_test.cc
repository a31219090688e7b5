// Queue pairs of a real device that fail under the verbs lane. A write into memory that its owner has taken back ends
// the queue pairs on both sides over RC: what stood behind it is lost, and the path gets another one. Over UC the write
// alone is dropped. Runs where there is an RDMA device: in a guest.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/lane_traffic.h"
#include "transport/lane/verbs/verbs_lane.h"

namespace paceline {
namespace {

constexpr uint32_t kBytes = 3000;
constexpr int kLookMicros = 200;
constexpr int kMostLooks = 100'000;  // 20 s
constexpr int kWriteEvery = 100;     // looks

class QpErrorsTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (const absl::Status status = CheckVerbsLane(); !status.ok()) GTEST_SKIP() << status.message();
    for (const VerbsPortInfo& port : ListVerbsLanePorts()) {
      if (port.reason.empty() && device_.empty()) device_ = port.name;
    }
    a_ = Make();
    b_ = Make();
    ASSERT_TRUE(a_ != nullptr && b_ != nullptr);
    to_b_ = a_->OpenPeer(b_->address());
    ASSERT_NE(to_b_, 0u);
    key_ = b_->RegisterMemory({.base = memory_.data(), .bytes = memory_.size()});
    ASSERT_NE(key_, 0u);
    for (size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<uint8_t>(i * 7 + 1);
  }
  std::unique_ptr<Lane> Make() {
    VerbsLaneOptions options;
    options.device = device_;
    options.reliable = GetParam();
    auto lane = CreateVerbsLane(options);
    EXPECT_TRUE(lane.ok()) << lane.status();
    return lane.ok() ? *std::move(lane) : nullptr;
  }
  // From A into the memory that `key` is of, at B, all on one path.
  TxSegment WriteOf(uint32_t immediate, uint64_t key) {
    TxSegment segment;
    segment.kind = SegmentKind::kWrite;
    segment.peer = to_b_;
    segment.immediate = immediate;
    segment.payload = payload_.data();
    segment.payload_bytes = kBytes;
    segment.remote_address = reinterpret_cast<uint64_t>(memory_.data());
    segment.remote_key = key;
    return segment;
  }
  // Both lanes look at what has come, once.
  void Look() {
    usleep(kLookMicros);
    std::array<RxSegment, 64> out;
    a_->Receive(out, MonotonicNow());
    const size_t count = b_->Receive(out, MonotonicNow());
    for (size_t i = 0; i < count; ++i) {
      if (out[i].kind == SegmentKind::kWrite) arrived_.push_back(out[i].immediate);
      if (out[i].kind == SegmentKind::kPacket) ++packets_;
    }
  }
  bool Arrived(uint32_t immediate) const {
    return std::find(arrived_.begin(), arrived_.end(), immediate) != arrived_.end();
  }
  // Writes again and again, as the transport would, until one has arrived, which is bound to happen.
  void WriteUntilArrived(uint32_t immediate) {
    for (int look = 0; look < kMostLooks && !Arrived(immediate); ++look) {
      const TxSegment write = WriteOf(immediate, key_);
      if (look % kWriteEvery == 0) a_->Send({&write, 1});
      Look();
    }
    EXPECT_TRUE(Arrived(immediate)) << "write " << immediate;
  }

  std::string device_;
  std::unique_ptr<Lane> a_, b_;
  uint32_t to_b_ = 0;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kBytes), payload_ = std::vector<uint8_t>(kBytes);
  uint64_t key_ = 0;
  std::vector<uint32_t> arrived_;  // immediates
  int packets_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Services, QpErrorsTest, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Rc" : "Uc"; });

TEST_P(QpErrorsTest, APathGoesOnAfterAWriteThatIsRefused) {
  WriteUntilArrived(1);
  std::vector<uint8_t> gone(kBytes);
  const uint64_t dead = b_->RegisterMemory({.base = gone.data(), .bytes = gone.size()});
  b_->DeregisterMemory(dead);
  for (uint32_t round = 1; round <= 3; ++round) {
    const uint32_t first = round * 100;
    std::vector<TxSegment> batch = {WriteOf(first, dead)};
    for (uint32_t i = 1; i <= 4; ++i) batch.push_back(WriteOf(first + i, key_));
    a_->Send(batch);
    std::fill(memory_.begin(), memory_.end(), uint8_t{0});
    WriteUntilArrived(first + 50);
    EXPECT_EQ(memory_, payload_);
    EXPECT_FALSE(Arrived(first));
    // Over RC these tell that the queue pair has failed; a device may end it over UC as well.
    for (uint32_t i = 1; GetParam() && i <= 4; ++i) EXPECT_FALSE(Arrived(first + i)) << "write " << first + i;
  }
  EXPECT_EQ(gone, std::vector<uint8_t>(kBytes)) << "taken back";
  EXPECT_TRUE(a_->status().up);
  EXPECT_TRUE(b_->status().up);
  SegmentList packet;
  packet.Add(to_b_, 0, 100);
  a_->Send(packet.all());
  for (int look = 0; look < kMostLooks && packets_ == 0; ++look) Look();
  EXPECT_EQ(packets_, 1);
}

}  // namespace
}  // namespace paceline
