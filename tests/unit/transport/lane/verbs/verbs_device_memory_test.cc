// Memory of GPUs on the verbs lane: registered by its dma-buf, read and written by the cards alone. An access by the
// processor ends the process.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/fake_device_memory.h"
#include "tests/unit/transport/lane/verbs/verbs_fixture.h"
#include "transport/lane/verbs/verbs_devices.h"

namespace paceline::support {
namespace {

using ::testing::HasSubstr;

constexpr size_t kOffset = 4096 + 8;  // of what is registered in the memory and its dma-buf

class VerbsDeviceMemoryTest : public VerbsFixture {
 protected:
  // A write from `memory`, which has this key.
  TxSegment WriteFrom(const FakeDeviceMemory& memory, uint64_t payload_key, uint32_t immediate, uint32_t bytes) {
    TxSegment segment = WriteOf(immediate, bytes);
    segment.payload = memory.address() + kOffset;
    segment.payload_key = payload_key;
    return segment;
  }

  FakeDeviceMemory out_{16384}, in_{16384};
};

TEST_F(VerbsDeviceMemoryTest, ItIsRegisteredByItsDmaBuf) {
  const uint64_t key = a_->RegisterMemory(out_.memory(kOffset));
  EXPECT_NE(key, 0u);
  const FakeVerbs::Registration& made = cards_.registrations().back();
  EXPECT_TRUE(made.by_dma_buf);
  EXPECT_EQ(made.address, reinterpret_cast<uint64_t>(out_.address() + kOffset));
  EXPECT_EQ(made.bytes, 16384 - kOffset);
  a_->DeregisterMemory(key);
}

// Also what is short enough to travel in the work request, were it in host memory.
TEST_F(VerbsDeviceMemoryTest, TheCardReadsPayloadsByTheKeyThatTheyName) {
  std::memset(out_.bytes() + kOffset, 5, 4096);
  const uint64_t key = a_->RegisterMemory(out_.memory(kOffset));
  Send(WriteFrom(out_, key, 1, 4096));
  Send(WriteFrom(out_, key, 2, 10));
  EXPECT_EQ(Immediates(Run()), List({1, 2}));
  EXPECT_EQ(cards_.dma_buf_reads(), 2u);
  EXPECT_TRUE(std::all_of(memory_.begin(), memory_.begin() + 4096, [](uint8_t byte) { return byte == 5; }));
  a_->DeregisterMemory(key);
}

TEST_F(VerbsDeviceMemoryTest, PeersWriteIntoIt) {
  const uint64_t key = b_->RegisterMemory(in_.memory(kOffset));
  for (const uint32_t bytes : {1000u, 10u}) {
    TxSegment segment = WriteOf(bytes, bytes);
    segment.remote_key = key;
    segment.remote_address = reinterpret_cast<uint64_t>(in_.address() + kOffset + 1);
    Send(segment);
    EXPECT_EQ(Immediates(Run()), List({bytes}));
  }
  EXPECT_EQ(in_.bytes()[kOffset], 0);
  EXPECT_EQ(in_.bytes()[kOffset + 1], 10);
  EXPECT_EQ(in_.bytes()[kOffset + 1000], static_cast<uint8_t>(1000));
  EXPECT_EQ(in_.bytes()[kOffset + 1001], 0);
  b_->DeregisterMemory(key);
}

// The memory may be registered no more, or under another key: the transport finds a loss, and asks with the new one.
TEST_F(VerbsDeviceMemoryTest, APayloadWhoseKeyIsGoneIsDropped) {
  const uint64_t old = a_->RegisterMemory(out_.memory(kOffset));
  a_->DeregisterMemory(old);
  const uint64_t key = a_->RegisterMemory(out_.memory(kOffset));
  EXPECT_NE(key, old);
  const uint64_t drops = a_->counters().tx_drops;
  Send(WriteFrom(out_, old, 1, 100));
  EXPECT_EQ(a_->counters().tx_drops, drops + 1);
  Send(WriteFrom(out_, key, 2, 100));
  EXPECT_EQ(Immediates(Run()), List({2}));
  a_->DeregisterMemory(key);
}

TEST_F(VerbsDeviceMemoryTest, ACardThatTakesNoDmaBufsSaysSo) {
  EXPECT_EQ(ListVerbsPorts(cards_)[0].dma_buf_problem, "");
  cards_.RefuseDmaBufs();
  EXPECT_THAT(ListVerbsPorts(cards_)[0].dma_buf_problem, HasSubstr("ibv_reg_dmabuf_mr: "));
  EXPECT_EQ(a_->RegisterMemory(out_.memory(kOffset)), 0u);
  EXPECT_THAT(a_->memory_problem(), HasSubstr("fake0:1: ibv_reg_dmabuf_mr: "));
}

// As with nvidia_peermem: the kernel knows the addresses.
TEST_F(VerbsDeviceMemoryTest, WithoutADmaBufItIsRegisteredByItsAddress) {
  LaneMemory memory = out_.memory();
  memory.dma_buf = -1;
  const uint64_t key = a_->RegisterMemory(memory);
  EXPECT_NE(key, 0u);
  EXPECT_FALSE(cards_.registrations().back().by_dma_buf);
  EXPECT_EQ(cards_.registrations().back().address, reinterpret_cast<uint64_t>(out_.address()));
  a_->DeregisterMemory(key);
}

}  // namespace
}  // namespace paceline::support
