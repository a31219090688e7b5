// Memory of GPUs through a context, over cards and a CUDA driver in memory: registered by its dma-buf, read and written
// by the cards, copied by the driver where it must go as packets. An access by the processor ends the process.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/cpp/src/context_engine.h"
#include "api/cpp/src/handle.h"
#include "gpudirect/dma_buf.h"
#include "paceline/context.h"
#include "tests/support/fake_verbs.h"
#include "tests/unit/gpudirect/fake_gpu.h"
#include "transport/lane/verbs/verbs_lane.h"

namespace paceline::api {
namespace {

using gpudirect::DevicePointer;
using gpudirect::Gpu;
using support::FakeVerbs;
using ::testing::HasSubstr;

constexpr size_t kBytes = 300'000;
constexpr size_t kOffset = 64;  // of regions in their allocation and its dma-buf

size_t OpenDescriptors() {
  DIR* directory = opendir("/proc/self/fd");
  size_t count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

std::vector<uint8_t> Pattern(uint8_t first) {
  std::vector<uint8_t> bytes(kBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(first + i * 7 + i / 4096);
  return bytes;
}

class ApiDeviceMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t side = 0; side < 2; ++side) {
      std::vector<std::unique_ptr<Lane>> lanes;
      auto lane = CreateVerbsLane({.device = "fake" + std::to_string(side)}, &cards_);
      ASSERT_TRUE(lane.ok()) << lane.status();
      lanes.push_back(*std::move(lane));
      ContextOptions options;
      options.linger_ms = 1;
      auto made = ContextEngine::Create(options, 0, nullptr, std::move(lanes));
      ASSERT_TRUE(made.ok()) << made.status().message();
      sides_[side] = *std::move(made);
      allocations_[side] = Gpu().Alloc(kOffset + kBytes);
    }
    listener_ = sides_[1]->Listen({}, 0);
    Connect();
  }
  void TearDown() override {
    for (auto& side : sides_) side.reset();
    for (const DevicePointer pointer : allocations_) Gpu().Free(pointer);
    EXPECT_EQ(cards_.objects(), 0u);
    EXPECT_EQ(cards_.violations(), std::vector<std::string>());
  }

  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 200000; ++i) {
      if (done()) return true;
      for (auto& side : sides_) side->Pass();
    }
    return false;
  }
  void Connect() {
    auto connection = sides_[0]->Connect(EncodeHandle(sides_[1]->AddressFor(sides_[1]->NonceOf(listener_))), {}, {});
    ASSERT_TRUE(connection.ok());
    connections_[0] = *connection;
    ASSERT_TRUE(Until([&] { return (connections_[1] = sides_[1]->Accept(listener_)) != kNoConnection; }));
    for (uint32_t side = 0; side < 2; ++side) {
      ASSERT_TRUE(Until([&] { return sides_[side]->StateOf(connections_[side]) == ConnectionState::kEstablished; }));
    }
  }

  void* Address(uint32_t side) { return reinterpret_cast<void*>(allocations_[side] + kOffset); }
  Result<RegionId> TryToRegister(uint32_t side, uint8_t access = kLocalOnly, int ordinal = 0) {
    const auto gpu = gpudirect::PrimaryContext::Create(Gpu().driver(), 0);
    const auto dma_buf = gpudirect::DmaBuf::Export(**gpu, allocations_[side] + kOffset, kBytes);
    EXPECT_TRUE(dma_buf.ok()) << dma_buf.status();
    EXPECT_EQ(dma_buf->offset(), kOffset);
    // Its descriptor is closed when this returns, as NCCL does.
    return sides_[side]->RegisterDeviceMemory(
        Address(side), kBytes, access,
        {.ordinal = ordinal, .dma_buf = dma_buf->descriptor(), .dma_buf_offset = dma_buf->offset()}, {});
  }
  RegionId Register(uint32_t side, uint8_t access = kLocalOnly) {
    auto region = TryToRegister(side, access);
    EXPECT_TRUE(region.ok()) << region.status().message();
    return region.ok() ? *region : 0;
  }
  void Fill(uint32_t side, const std::vector<uint8_t>& bytes) { Gpu().Write(allocations_[side] + kOffset, bytes); }
  std::vector<uint8_t> Contents(uint32_t side) { return Gpu().Read(allocations_[side] + kOffset, kBytes); }

  LocalBuffer BufferOf(uint32_t side, RegionId region) { return {Address(side), kBytes, region}; }
  void Send(uint32_t from, const LocalBuffer& buffer) {
    EXPECT_EQ(sides_[from]->Post<SendRequest>(&Endpoint::PostSend, connections_[from], {.buffer = buffer}, nullptr),
              PostResult::kOk);
  }
  void Receive(uint32_t at, const LocalBuffer& buffer) {
    EXPECT_EQ(sides_[at]->Post<ReceiveRequest>(&Endpoint::PostReceive, connections_[at], {.buffer = buffer}, nullptr),
              PostResult::kOk);
  }
  OperationStatus NextStatus(uint32_t at) {
    Completion completion{.status = OperationStatus::kCancelled};
    EXPECT_TRUE(Until([&] { return sides_[at]->PollCompletions(&completion, 1) == 1; }));
    return completion.status;
  }
  uint64_t Copies(uint32_t at) { return sides_[at]->endpoint().counters().device_copies; }

  FakeVerbs cards_{2};
  std::array<std::unique_ptr<ContextEngine>, 2> sides_;
  std::array<DevicePointer, 2> allocations_{};
  std::array<ConnectionId, 2> connections_{};
  uint32_t listener_ = 0;
};

TEST_F(ApiDeviceMemoryTest, MessagesGoFromGpuToGpuByTheCards) {
  const RegionId out = Register(0), in = Register(1);
  Fill(0, Pattern(1));
  Receive(1, BufferOf(1, in));
  Send(0, BufferOf(0, out));
  EXPECT_EQ(NextStatus(0), OperationStatus::kOk);
  EXPECT_EQ(NextStatus(1), OperationStatus::kOk);
  EXPECT_EQ(Contents(1), Pattern(1));
  EXPECT_GE(cards_.dma_buf_reads(), 70u);
  EXPECT_EQ(Copies(0) + Copies(1), 0u);
}

TEST_F(ApiDeviceMemoryTest, AnswersToReadsAreCopiedByTheDriver) {
  const RegionId from = Register(0, kRemoteRead), to = Register(1);
  Fill(0, Pattern(2));
  const ReadRequest read = {.buffer = BufferOf(1, to), .remote = sides_[0]->endpoint().ExportMemory(from)};
  EXPECT_EQ(sides_[1]->Post<ReadRequest>(&Endpoint::PostRead, connections_[1], read, nullptr), PostResult::kOk);
  EXPECT_EQ(NextStatus(1), OperationStatus::kOk);
  EXPECT_EQ(Contents(1), Pattern(2));
  EXPECT_GE(Copies(0), 70u);
  EXPECT_GE(Copies(1), 70u);
}

TEST_F(ApiDeviceMemoryTest, AnErrorOfTheDriverEndsTheConnection) {
  const RegionId out = Register(0);
  std::vector<uint8_t> in(kBytes);
  Receive(1, {in.data(), in.size(), 0});
  Gpu().fail("cuMemcpyDtoHAsync_v2", 5, 700);
  Send(0, BufferOf(0, out));
  EXPECT_EQ(NextStatus(0), OperationStatus::kConnectionClosed);
  EXPECT_EQ(NextStatus(1), OperationStatus::kConnectionClosed);
  EXPECT_THAT(sides_[0]->CloseReasonOf(connections_[0]), HasSubstr("a copy from or to memory of a GPU failed"));
  EXPECT_EQ(Copies(0), 4u);
}

// Its caller has closed the descriptor long ago.
TEST_F(ApiDeviceMemoryTest, TheDmaBufIsKeptForAsLongAsTheRegion) {
  const size_t before = OpenDescriptors();
  const RegionId out = Register(0), in = Register(1);
  EXPECT_EQ(OpenDescriptors(), before + 2);
  Receive(1, BufferOf(1, in));
  Send(0, BufferOf(0, out));
  ASSERT_TRUE(Until([&] { return cards_.writes_placed() > 2; }));
  const size_t made = cards_.registrations().size();
  sides_[1]->Close(connections_[1], true);  // while its peer writes there: the card is to know it by another key
  ASSERT_EQ(cards_.registrations().size(), made + 1);
  EXPECT_TRUE(cards_.registrations().back().by_dma_buf);
  EXPECT_EQ(NextStatus(1), OperationStatus::kConnectionClosed);
  EXPECT_EQ(NextStatus(0), OperationStatus::kConnectionClosed);
  Connect();
  Fill(0, Pattern(3));
  Receive(1, BufferOf(1, in));
  Send(0, BufferOf(0, out));
  EXPECT_EQ(NextStatus(1), OperationStatus::kOk);
  EXPECT_EQ(Contents(1), Pattern(3));
  EXPECT_EQ(Copies(0) + Copies(1), 0u);
  EXPECT_EQ(NextStatus(0), OperationStatus::kOk);
  sides_[0]->DeregisterMemory(out);
  sides_[1]->DeregisterMemory(in);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(ApiDeviceMemoryTest, ErrorsSayWhatIsWrong) {
  const auto code = [this](void* base, uint8_t access, const DeviceMemory& memory) {
    return sides_[0]->RegisterDeviceMemory(base, kBytes, access, memory, {}).status().code();
  };
  const size_t before = OpenDescriptors();
  const size_t objects = cards_.objects();
  EXPECT_EQ(code(nullptr, 0, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Address(0), kRemoteAtomic, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Address(0), 0, {.ordinal = -1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Address(0), 0, {.dma_buf = 1'000'000}), StatusCode::kInvalidArgument);
  EXPECT_EQ(TryToRegister(0, kLocalOnly, 9).status().code(), StatusCode::kUnavailable);
  cards_.RefuseDmaBufs();
  const Status refused = TryToRegister(0).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(refused.message(), HasSubstr("fake0:1: ibv_reg_dmabuf_mr"));
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(cards_.objects(), objects);
}

TEST(ApiDeviceMemory, LanesThatPlaceNothingTakeNone) {
  ContextOptions options;
  options.lane = "udp";
  auto context = Context::Create(options);
  ASSERT_TRUE(context.ok()) << context.status().message();
  int memory = 0;
  const auto region = context->RegisterDeviceMemory(&memory, sizeof(memory), kLocalOnly, {});
  EXPECT_EQ(region.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(region.status().message(), HasSubstr("it places no data by itself"));
}

}  // namespace
}  // namespace paceline::api
