// Atomics on vectors of any type: what they do at the peer, that they do it once, and what is refused. On every kind of
// lane.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

class AtomicTest : public CoreSetupTest {
 protected:
  template <typename T, size_t kCount>
  static std::array<T, kCount> Values(const GuardedBuffer& buffer) {
    std::array<T, kCount> values;
    std::memcpy(values.data(), buffer.data(), sizeof(values));
    return values;
  }
  template <typename T, size_t kCount>
  static void SetValues(GuardedBuffer& buffer, const std::array<T, kCount>& values) {
    std::memcpy(buffer.data(), values.data(), sizeof(values));
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, AtomicTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

TEST_P(AtomicTest, WithAndWithoutTheValuesBefore) {
  GuardedBuffer& cells = NewBuffer(24);
  SetValues(cells, std::array<int64_t, 3>{1, -2, 3});
  const RemoteMemory remote = Export(1, cells, kRemoteAtomic);
  const std::array<int64_t, 3> operands = {10, 20, 30};
  VectorAtomicRequest request = {.op = AtomicOp::kSum, .type = AtomicType::kInt64, .elements = 3};
  request.operands = operands.data();
  request.remote = remote;
  const uint64_t base = PostAtomic(0, request);
  AwaitOk(0, base);
  EXPECT_EQ(Done(0, base)->operation, Operation::kAtomic);
  EXPECT_EQ(Done(0, base)->bytes, 24u);
  EXPECT_EQ((Values<int64_t, 3>(cells)), (std::array<int64_t, 3>{11, 18, 33}));
  GuardedBuffer& before = NewBuffer(24);
  request.results = before.data();
  AwaitOk(0, PostAtomic(0, request));
  EXPECT_EQ((Values<int64_t, 3>(before)), (std::array<int64_t, 3>{11, 18, 33}));
  EXPECT_EQ((Values<int64_t, 3>(cells)), (std::array<int64_t, 3>{21, 38, 63}));
}

TEST_P(AtomicTest, CompareAndReadCarryWhatTheyNeed) {
  GuardedBuffer& cells = NewBuffer(8);
  SetValues(cells, std::array<float, 2>{1, 2});
  GuardedBuffer& before = NewBuffer(8);
  const std::array<float, 2> operands = {7, 8}, compares = {1, 1};
  VectorAtomicRequest request = {.op = AtomicOp::kSwapIfEqual, .type = AtomicType::kFloat, .elements = 2};
  request.operands = operands.data();
  request.compares = compares.data();
  request.results = before.data();
  request.remote = Export(1, cells, kRemoteAtomic);
  AwaitOk(0, PostAtomic(0, request));
  EXPECT_EQ((Values<float, 2>(before)), (std::array<float, 2>{1, 2}));
  EXPECT_EQ((Values<float, 2>(cells)), (std::array<float, 2>{7, 2}));
  request.op = AtomicOp::kRead;
  request.operands = request.compares = nullptr;
  AwaitOk(0, PostAtomic(0, request));
  EXPECT_EQ((Values<float, 2>(before)), (std::array<float, 2>{7, 2}));
}

TEST_P(AtomicTest, TheLongestVectorsGoBothWays) {
  constexpr uint32_t kElements = limits::kMaxAtomicBytes / 2;
  GuardedBuffer& cells = NewFilled(2 * kElements, 1);
  GuardedBuffer& operands = NewFilled(2 * kElements, 2);
  GuardedBuffer& compares = NewFilled(2 * kElements, 1);
  GuardedBuffer& before = NewBuffer(2 * kElements);
  VectorAtomicRequest request = {.op = AtomicOp::kSwapIfEqual, .type = AtomicType::kUint16, .elements = kElements};
  request.operands = operands.data();
  request.compares = compares.data();
  request.results = before.data();
  request.remote = Export(1, cells, kRemoteAtomic);
  AwaitOk(0, PostAtomic(0, request));
  EXPECT_TRUE(before.Holds(1));
  EXPECT_TRUE(cells.Holds(2));
  ++request.elements;
  PostResult result = PostResult::kOk;
  PostAtomic(0, request, &result);
  EXPECT_EQ(result, PostResult::kInvalidArgument);
}

// The first of three is lost again and again, and once the others have arrived nothing comes back: they are sent again,
// and arrive again while the first is still open, and are not carried out again.
TEST_P(AtomicTest, WhatIsSentAgainIsDoneOnce) {
  GuardedBuffer& cells = NewBuffer(8);
  SetValues(cells, std::array<uint64_t, 1>{0});
  VectorAtomicRequest request = {.op = AtomicOp::kSum, .type = AtomicType::kUint64, .elements = 1};
  request.remote = Export(1, cells, kRemoteAtomic);
  bool first_seen = false;
  uint32_t first = 0, arrived = 0;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    const bool is_answer = packet.from >= GetParam().ports;
    if (is_answer && arrived >= 2) fate.drop = true;
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    if (is_answer || !common.has_value() || common->type != wire::PacketType::kData) return;
    if (packet.bytes[38] != static_cast<uint8_t>(wire::MessageKind::kAtomic)) return;
    uint32_t message = 0;
    std::memcpy(&message, packet.bytes.data() + 20, sizeof(message));
    if (!first_seen) first = message;
    first_seen = true;
    fate.drop = message == first;
    arrived += fate.drop ? 0 : 1;
  });
  std::vector<uint64_t> posted;
  for (const uint64_t operand : {1, 10, 100}) {
    request.operands = &operand;
    request.results = NewBuffer(8).data();
    posted.push_back(PostAtomic(0, request));
  }
  world().RunFor(Duration::Seconds(2));
  EXPECT_GT(arrived, 2u);
  EXPECT_EQ((Values<uint64_t, 1>(cells)[0]), 110u);
  network().SetHook(nullptr);
  for (const uint64_t one : posted) AwaitOk(0, one);
  EXPECT_EQ((Values<uint64_t, 1>(cells)[0]), 111u);
}

TEST_P(AtomicTest, PermissionBoundsAndAlignmentAreKept) {
  GuardedBuffer& writable = NewBuffer(64);
  GuardedBuffer& atomic = NewBuffer(64);
  const uint64_t operand = 1;
  VectorAtomicRequest request = {.op = AtomicOp::kSum, .type = AtomicType::kUint32, .elements = 2};
  request.operands = &operand;
  request.remote = Export(1, writable, kRemoteRead | kRemoteWrite);
  EXPECT_EQ(Await(0, PostAtomic(0, request)).status, OperationStatus::kRemoteAccess);
  request.remote = Export(1, atomic, kRemoteAtomic);
  PostResult result = PostResult::kOk;
  request.remote_offset = 60;
  PostAtomic(0, request, &result);
  EXPECT_EQ(result, PostResult::kInvalidMemory);
  request.remote.bytes = ~uint64_t{0};
  EXPECT_EQ(Await(0, PostAtomic(0, request)).status, OperationStatus::kRemoteAccess);
  request.remote_offset = 2;
  EXPECT_EQ(Await(0, PostAtomic(0, request)).status, OperationStatus::kRemoteAccess);
  EXPECT_TRUE(writable.Untouched());
  EXPECT_TRUE(atomic.Untouched());
  request.remote_offset = 56;
  AwaitOk(0, PostAtomic(0, request));
}

TEST_P(AtomicTest, WhatMakesNoSenseIsNotPosted) {
  GuardedBuffer& cells = NewBuffer(64);
  const uint64_t operand = 1;
  VectorAtomicRequest request = {.op = AtomicOp::kSum, .type = AtomicType::kUint64, .elements = 1};
  request.remote = Export(1, cells, kRemoteAtomic);
  const auto post = [&] {
    PostResult result = PostResult::kOk;
    PostAtomic(0, request, &result);
    return result;
  };
  EXPECT_EQ(post(), PostResult::kInvalidArgument);  // no operands
  request.operands = &operand;
  request.op = AtomicOp::kSwapIfEqual;
  EXPECT_EQ(post(), PostResult::kInvalidArgument);  // no compares
  request.op = AtomicOp::kBitOr;
  request.type = AtomicType::kDouble;
  EXPECT_EQ(post(), PostResult::kInvalidArgument);
  request.op = AtomicOp::kSum;
  request.elements = 0;
  EXPECT_EQ(post(), PostResult::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::support
