// Memory of GPUs, which the core never touches: cards that know it read and write it, and what must go as packets is
// copied by the driver. Here an access by the processor ends the process.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/core_fixture.h"
#include "tests/support/fake_device_memory.h"
#include "transport/base/random.h"

namespace paceline::support {
namespace {

constexpr uint8_t kRemote = kRemoteRead | kRemoteWrite;
constexpr Duration kAtOnce = Duration::Millis(10);  // no time-out is so short

// Registered memory of a GPU, or of the host.
struct Memory {
  FakeDeviceMemory* device = nullptr;
  GuardedBuffer* host = nullptr;
  RegionId region = kUnregistered;
  uint8_t* address = nullptr;
  uint8_t* bytes = nullptr;
  size_t size = 0;

  LocalBuffer buffer() const { return {address, size, region}; }
  void Fill(uint64_t pattern) const { FillPattern(bytes, size, pattern); }
  bool Holds(uint64_t pattern) const { return FindDifference(bytes, size, pattern) == size; }
};

class DeviceMemoryFixture : public CoreFixture {
 protected:
  void StartWith(const CoreSetup& setup) { StartWith(OptionsFor(setup), setup.ports); }
  void StartWith(const WorldOptions& options, uint32_t ports) {
    ports_ = ports;
    Start(options);
    for (uint32_t i = 0; i < 2; ++i) {
      host(i).on_completion = nullptr;
      host(i).copy_from_device = [this](int device, void* to, const void* from, size_t bytes) {
        const uint8_t* reached = MayCopy(device) ? Reach(from, bytes) : nullptr;
        if (reached != nullptr) std::memcpy(to, reached, bytes);
        return reached != nullptr;
      };
      host(i).copy_to_device = [this](int device, void* to, const void* from, size_t bytes) {
        uint8_t* reached = MayCopy(device) ? Reach(to, bytes) : nullptr;
        if (reached != nullptr) std::memcpy(reached, from, bytes);
        return reached != nullptr;
      };
    }
  }
  void TearDown() override {
    CoreFixture::TearDown();
    world_.reset();  // its cards have mapped the memory
    memories_.clear();
  }

  // `offset`: of the region in the memory and its dma-buf.
  Memory NewDevice(uint32_t at, size_t bytes, uint8_t access = kLocalOnly, size_t offset = 4096 + 100) {
    memories_.push_back(std::make_unique<FakeDeviceMemory>(bytes + offset));
    FakeDeviceMemory& memory = *memories_.back();
    Memory made{.device = &memory,
                .region = endpoint(at).RegisterDeviceMemory(memory.memory(offset), access),
                .address = memory.address() + offset,
                .bytes = memory.bytes() + offset,
                .size = bytes};
    EXPECT_NE(made.region, kUnregistered);
    return made;
  }
  Memory NewHost(uint32_t at, size_t bytes, uint8_t access = kLocalOnly) {
    GuardedBuffer& buffer = NewBuffer(bytes);
    return {.host = &buffer,
            .region = endpoint(at).RegisterMemory(buffer.data(), bytes, access),
            .address = buffer.data(),
            .bytes = buffer.data(),
            .size = bytes};
  }

  uint64_t Note(uint32_t at, PostResult result) {
    EXPECT_EQ(result, PostResult::kOk) << PostResultName(result);
    host(at).Touch();
    return number_;
  }
  uint64_t Send(uint32_t from, const LocalBuffer& buffer, uint64_t tag = 0) {
    ++number_;
    return Note(from,
                endpoint(from).PostSend(connection(from), {.buffer = buffer, .tag = tag, .user_data = number_}, now()));
  }
  uint64_t Receive(uint32_t at, const LocalBuffer& buffer, uint64_t tag = 0) {
    ++number_;
    return Note(at,
                endpoint(at).PostReceive(connection(at), {.buffer = buffer, .tag = tag, .user_data = number_}, now()));
  }
  uint64_t Write(uint32_t from, const LocalBuffer& buffer, const RemoteMemory& remote) {
    ++number_;
    return Note(from, endpoint(from).PostWrite(connection(from),
                                               {.buffer = buffer, .remote = remote, .user_data = number_}, now()));
  }
  uint64_t Read(uint32_t from, const LocalBuffer& buffer, const RemoteMemory& remote) {
    ++number_;
    return Note(from, endpoint(from).PostRead(connection(from),
                                              {.buffer = buffer, .remote = remote, .user_data = number_}, now()));
  }
  RemoteMemory Exported(uint32_t at, const Memory& memory) { return endpoint(at).ExportMemory(memory.region); }
  // One message between such memories, checked byte by byte.
  void Transfer(uint32_t from, const Memory& out, const Memory& in) {
    out.Fill(++pattern_);
    const uint64_t receive = Receive(1 - from, in.buffer());
    const uint64_t send = Send(from, out.buffer());
    AwaitOk(from, send);
    AwaitOk(1 - from, receive);
    EXPECT_TRUE(in.Holds(pattern_)) << out.size;
  }

  uint64_t Copies(uint32_t at) { return endpoint(at).counters().device_copies; }
  uint64_t WritesPlaced(uint32_t at) {
    uint64_t sum = 0;
    for (uint32_t port = 0; port < ports_; ++port) sum += world().hca(at, port).writes_placed();
    return sum;
  }
  // Everything posted ends as it does when a connection is lost to a copy that failed, at both ends.
  void ExpectBroken(uint32_t at, std::vector<uint64_t> here, std::vector<uint64_t> there) {
    for (const uint64_t operation : here) {
      EXPECT_EQ(Await(at, operation, kAtOnce).status, OperationStatus::kConnectionClosed);
    }
    for (const uint64_t operation : there) {
      EXPECT_EQ(Await(1 - at, operation, kAtOnce).status, OperationStatus::kConnectionClosed);
    }
    ASSERT_TRUE(
        world().RunUntil([&] { return Event(at, ConnectionEventKind::kClosed, connection(at)) != nullptr; }, kAtOnce));
    const ConnectionEvent* event = Event(at, ConnectionEventKind::kClosed, connection(at));
    EXPECT_EQ(event->reason, CloseReason::kLocal);
    EXPECT_EQ(event->detail, "a copy from or to memory of a GPU failed");
    EXPECT_GE(endpoint(at).counters().device_copies_failed, 1u);
  }

  uint32_t copies_until_failure_ = ~0u;

 private:
  bool MayCopy(int device) {
    EXPECT_EQ(device, FakeDeviceMemory::kDevice);
    if (copies_until_failure_ == 0) return false;
    --copies_until_failure_;
    return true;
  }
  uint8_t* Reach(const void* address, size_t bytes) {
    for (const auto& memory : memories_) {
      if (uint8_t* reached = memory->Reach(address, bytes)) return reached;
    }
    ADD_FAILURE() << "a copy of memory that is no GPU's";
    return nullptr;
  }

  uint32_t ports_ = 1;
  uint64_t number_ = 0;
  uint64_t pattern_ = 0;
  std::vector<std::unique_ptr<FakeDeviceMemory>> memories_;
};

class DeviceMemoryTest : public DeviceMemoryFixture, public testing::WithParamInterface<uint32_t> {
 protected:
  void SetUp() override { StartWith({.lanes = LaneKind::kHca, .ports = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Ports, DeviceMemoryTest, testing::Values(1u, 2u));

TEST_P(DeviceMemoryTest, SendsAreReadAndWrittenByTheCards) {
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{4096}, size_t{5'001}, size_t{1'000'000}}) {
    Transfer(0, NewDevice(0, bytes), NewDevice(1, bytes));
    Transfer(0, NewHost(0, bytes), NewDevice(1, bytes));
    Transfer(0, NewDevice(0, bytes), NewHost(1, bytes));
  }
  EXPECT_GE(WritesPlaced(1), 600u);
  EXPECT_EQ(Copies(0), 0u);  // also not where one port has told its key and the other has not yet
  // Of short messages from host memory, which come unasked; and what comes through a port before it has told its key.
  EXPECT_TRUE(GetParam() == 1 ? Copies(1) == 5 : Copies(1) > 5) << Copies(1);
}

TEST_P(DeviceMemoryTest, WritesAreReadAndWrittenByTheCards) {
  for (const size_t bytes : {size_t{1}, size_t{5'001}, size_t{1'000'000}}) {
    const Memory out = NewDevice(0, bytes), in = NewDevice(1, bytes, kRemote);
    out.Fill(bytes);
    AwaitOk(0, Write(0, out.buffer(), Exported(1, in)));
    EXPECT_TRUE(in.Holds(bytes));
  }
  EXPECT_EQ(Copies(0) + Copies(1), 0u);
  EXPECT_GE(WritesPlaced(1), 240u);
}

TEST_P(DeviceMemoryTest, ReadsAreAnsweredByCopies) {
  const Memory from = NewDevice(1, 500'000, kRemote), to = NewDevice(0, 500'000);
  from.Fill(5);
  AwaitOk(0, Read(0, to.buffer(), Exported(1, from)));
  EXPECT_TRUE(to.Holds(5));
  EXPECT_GE(Copies(0), 122u);
  EXPECT_GE(Copies(1), 122u);
  EXPECT_GE(endpoint(1).counters().device_copied_bytes, 500'000u);
}

TEST_P(DeviceMemoryTest, AShortSendWaitsForItsReceiveToo) {
  const Memory out = NewDevice(0, 100), in = NewDevice(1, 100);
  out.Fill(1);
  const uint64_t send = Send(0, out.buffer());
  const uint64_t empty = Send(0, {out.address, 0, out.region}, 1);
  AwaitOk(0, empty);
  world().RunFor(Duration::Seconds(1));
  EXPECT_EQ(Done(0, send), nullptr);
  const uint64_t receive = Receive(1, in.buffer());
  AwaitOk(0, send);
  AwaitOk(1, receive);
  EXPECT_TRUE(in.Holds(1));
  EXPECT_EQ(Copies(0) + Copies(1), 0u);
}

TEST_P(DeviceMemoryTest, LossesChangeNothing) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    auto random = std::make_shared<Random>(seed);
    network().SetHook([random](NetworkPacket&, Fate& fate) { fate.drop = random->Chance(0.05); });
    Transfer(0, NewDevice(0, 600'000), NewDevice(1, 600'000));
    const Memory out = NewDevice(1, 300'000), in = NewDevice(0, 300'000, kRemote), back = NewDevice(1, 300'000);
    out.Fill(seed);
    AwaitOk(1, Write(1, out.buffer(), Exported(0, in)));
    EXPECT_TRUE(in.Holds(seed));
    AwaitOk(1, Read(1, back.buffer(), Exported(0, in)));
    EXPECT_TRUE(back.Holds(seed));
    if (HasFailure()) return;
  }
}

// The peer's memory has no key, or ours has none: the card cannot do it.
TEST_P(DeviceMemoryTest, WithoutKeysItGoesInPackets) {
  for (const uint32_t refusing : {0u, 1u}) {
    SCOPED_TRACE(refusing);
    TearDown();
    SetUp();
    for (uint32_t port = 0; port < GetParam(); ++port) world().hca(refusing, port).RefuseDevices();
    const Memory out = NewDevice(0, 300'000), in = NewDevice(1, 300'000, kRemote);
    EXPECT_EQ(endpoint(refusing).PlacingPorts(refusing == 0 ? out.region : in.region), 0u);
    Transfer(0, out, in);
    out.Fill(77);
    AwaitOk(0, Write(0, out.buffer(), Exported(1, in)));
    EXPECT_TRUE(in.Holds(77));
    EXPECT_GE(Copies(0), 148u);
    EXPECT_GE(Copies(1), 148u);
    EXPECT_EQ(WritesPlaced(1), 0u);
    if (HasFailure()) return;
  }
  GuardedBuffer& plain = NewBuffer(300'000);
  const Memory out = NewDevice(0, 300'000);
  out.Fill(9);
  const uint64_t receive = Receive(1, plain.local());
  AwaitOk(0, Send(0, out.buffer()));
  AwaitOk(1, receive);
  EXPECT_TRUE(plain.Holds(9));
}

// It was stored, and is copied as the receive comes.
TEST_P(DeviceMemoryTest, WhatCameBeforeItsReceiveIsCopied) {
  const Memory in = NewDevice(1, 9'000);
  GuardedBuffer& out = NewFilled(9'000, 4);
  AwaitOk(0, Send(0, out.local()));
  EXPECT_EQ(Copies(1), 0u);
  AwaitOk(1, Receive(1, in.buffer()));
  EXPECT_TRUE(in.Holds(4));
  EXPECT_EQ(Copies(1), 3u);
}

TEST_P(DeviceMemoryTest, RegionsSayWhichCardsKnowThem) {
  const uint32_t all = (1u << GetParam()) - 1;
  const Memory memory = NewDevice(0, 100);
  EXPECT_EQ(endpoint(0).PlacingPorts(memory.region), all);
  world().hca(0, GetParam() - 1).RefuseDevices();
  EXPECT_EQ(endpoint(0).PlacingPorts(NewDevice(0, 100).region), all >> 1);
  EXPECT_EQ(endpoint(0).PlacingPorts(12345), 0u);
  EXPECT_EQ(endpoint(0).ReadingPorts(memory.region), all);
  EXPECT_EQ(endpoint(0).ReadingPorts(12345), 0u);
  EXPECT_EQ(endpoint(0).RegisterDeviceMemory(memory.device->memory(), kRemoteAtomic), kUnregistered);
  EXPECT_EQ(endpoint(0).RegisterMemory(memory.address, 100, kLocalOnly, MemoryKind::kDevice), kUnregistered);
  LaneMemory of_the_host = memory.device->memory();
  of_the_host.device = kNoDevice;
  EXPECT_EQ(endpoint(0).RegisterDeviceMemory(of_the_host, kLocalOnly), kUnregistered);
}

// One card knows the memory and has all of it to do, until its port is down, or swallows everything: then the other
// port sends copies.
TEST_F(DeviceMemoryFixture, APortWithoutTheKeyTakesOverWhereThatWithItFails) {
  for (const bool told : {true, false}) {
    SCOPED_TRACE(told);
    StartWith({.lanes = LaneKind::kHca, .ports = 2});
    world().hca(0, 1).RefuseDevices();
    const Memory out = NewDevice(0, 1'000'000), in = NewDevice(1, 1'000'000, kRemote);
    out.Fill(3);
    const uint64_t first = Write(0, out.buffer(), Exported(1, in));
    AwaitOk(0, first);
    EXPECT_EQ(Copies(0), 0u);
    std::memset(in.bytes, 0, in.size);
    const uint64_t placed = WritesPlaced(1);
    const uint64_t write = Write(0, out.buffer(), Exported(1, in));
    ASSERT_TRUE(world().RunUntil([&] { return WritesPlaced(1) >= placed + 50; }));
    const uint32_t port = world().lane(0, 0).port();
    if (told) {
      network().SetPortUp(port, false);
    } else {
      network().SetHook([port](NetworkPacket& packet, Fate& fate) { fate.drop = packet.from == port; });
    }
    AwaitOk(0, write);
    EXPECT_TRUE(in.Holds(3));
    EXPECT_GE(Copies(0), 50u);
    TearDown();
    if (HasFailure()) return;
  }
}

// A peer is gone while it wrote into a receive: the region has new keys on the cards, by the same dma-buf.
TEST_P(DeviceMemoryTest, ARegionThatAPeerWroteIntoGetsNewKeys) {
  for (const bool kept : {true, false}) {
    SCOPED_TRACE(kept);
    TearDown();
    SetUp();
    const Memory out = NewDevice(0, 2'000'000), in = NewDevice(1, 2'000'000);
    Receive(1, in.buffer());
    Send(0, out.buffer());
    ASSERT_TRUE(world().RunUntil([&] { return WritesPlaced(1) > 10; }));
    if (!kept) in.device->CloseDmaBuf();
    endpoint(1).Abort(connection(1), now());
    EXPECT_EQ(endpoint(1).PlacingPorts(in.region), kept ? (1u << GetParam()) - 1 : 0u);
    world().RunFor(Duration::Seconds(2));
    const uint64_t placed = WritesPlaced(1);
    const uint64_t copies = Copies(1);
    Connect();
    Transfer(0, out, in);
    EXPECT_EQ(WritesPlaced(1) > placed, kept);
    EXPECT_EQ(Copies(1) > copies + 400, !kept);
    if (HasFailure()) return;
  }
}

// ---- copies that fail

TEST_P(DeviceMemoryTest, ACopyOfASourceThatFailsEndsTheConnection) {
  for (const uint32_t copies : {0u, 1u, 30u}) {
    SCOPED_TRACE(copies);
    TearDown();
    SetUp();
    GuardedBuffer& plain = NewBuffer(300'000);
    const Memory out = NewDevice(0, 300'000);
    const Memory other = NewHost(0, 1000);
    copies_until_failure_ = copies;
    const uint64_t receive = Receive(1, plain.local());
    const uint64_t send = Send(0, out.buffer());
    const uint64_t waiting = Receive(0, other.buffer(), 5);
    ExpectBroken(0, {send, waiting}, {receive});
    EXPECT_EQ(Copies(0), copies);
    copies_until_failure_ = ~0u;
    world().RunFor(Duration::Seconds(2));
    Connect();
    Transfer(0, out, NewDevice(1, 300'000));
    if (HasFailure()) return;
  }
}

TEST_P(DeviceMemoryTest, ACopyToATargetThatFailsEndsTheConnection) {
  for (const uint32_t copies : {0u, 1u, 30u}) {
    SCOPED_TRACE(copies);
    TearDown();
    SetUp();
    for (uint32_t port = 0; port < GetParam(); ++port) world().hca(1, port).RefuseDevices();
    GuardedBuffer& plain = NewFilled(300'000, 1);
    const Memory in = NewDevice(1, 300'000, kRemote), second = NewDevice(1, 300'000);
    copies_until_failure_ = copies;
    const uint64_t receive = Receive(1, second.buffer());
    const uint64_t write = Write(0, plain.local(), Exported(1, in));
    const uint64_t send = Send(0, plain.local());
    ExpectBroken(1, {receive}, {write, send});
    if (HasFailure()) return;
  }
}

TEST_P(DeviceMemoryTest, ACopyOfAnAnswerThatFailsEndsTheConnection) {
  const Memory from = NewDevice(1, 300'000, kRemote), to = NewDevice(0, 300'000);
  for (const uint32_t at : {0u, 1u}) {
    SCOPED_TRACE(at);
    if (at == 1) {
      copies_until_failure_ = ~0u;
      world().RunFor(Duration::Seconds(2));
      Connect();
      host(0).copy_to_device = nullptr;
    } else {
      copies_until_failure_ = 7;
    }
    const uint64_t read = Read(0, to.buffer(), Exported(1, from));
    EXPECT_EQ(Await(0, read, kAtOnce).status, OperationStatus::kConnectionClosed);
    EXPECT_GE(endpoint(at == 0 ? 1 : 0).counters().device_copies_failed, 1u);
  }
}

// Its sender has its completion: it was stored whole. The receive is not told of bytes that are not there.
TEST_P(DeviceMemoryTest, ACopyOfAStoredSendThatFailsEndsTheConnection) {
  for (const uint32_t copies : {0u, 2u}) {
    SCOPED_TRACE(copies);
    TearDown();
    SetUp();
    const Memory in = NewDevice(1, 9'000);
    AwaitOk(0, Send(0, NewFilled(9'000, 4).local()));
    copies_until_failure_ = copies;
    const uint64_t receive = Receive(1, in.buffer());
    ExpectBroken(1, {receive}, {});
    if (HasFailure()) return;
  }
}

// Some of it has come before its receive, the rest comes behind the copy that failed.
TEST_P(DeviceMemoryTest, ACopyOfHalfASendThatFailsEndsTheConnection) {
  const Memory in = NewDevice(1, 16'000);
  network().SetHook([count = 0](NetworkPacket& packet, Fate& fate) mutable {
    if (packet.payload_bytes > 0 && ++count > 2) fate.extra_delay = Duration::Millis(1);
  });
  const uint64_t send = Send(0, NewFilled(16'000, 4).local());
  ASSERT_TRUE(world().RunUntil([&] { return endpoint(1).counters().rx_data_packets >= 2; }));
  copies_until_failure_ = 1;
  const uint64_t receive = Receive(1, in.buffer());
  ExpectBroken(1, {receive}, {send});
}

// ---- other lanes and peers

// Both ends copy, on whatever lanes.
TEST(DeviceMemorySetups, PacketsAreCopied) {
  struct Fixture : DeviceMemoryFixture {
    void TestBody() override {}
    void Run(const CoreSetup& setup, bool ordered) {
      WorldOptions options = OptionsFor(setup);
      options.endpoint.ordered_placement = ordered;
      StartWith(options, setup.ports);
      for (const size_t bytes : {size_t{100}, size_t{5'001}, size_t{300'000}}) {
        Transfer(0, NewDevice(0, bytes), NewDevice(1, bytes));
        const Memory out = NewDevice(1, bytes), in = NewDevice(0, bytes, kRemote), back = NewDevice(1, bytes);
        out.Fill(bytes);
        AwaitOk(1, Write(1, out.buffer(), Exported(0, in)));
        EXPECT_TRUE(in.Holds(bytes));
        AwaitOk(1, Read(1, back.buffer(), Exported(0, in)));
        EXPECT_TRUE(back.Holds(bytes));
      }
      EXPECT_GE(Copies(0), 225u);
      EXPECT_GE(Copies(1), 225u);
      TearDown();
    }
  };
  for (const bool ordered : {false, true}) {
    for (const uint32_t ports : {1u, 2u}) {
      SCOPED_TRACE(ports);
      Fixture().Run({.lanes = LaneKind::kPackets, .ports = ports}, ordered);
      Fixture().Run({.lanes = LaneKind::kPackets, .control = TestControl::kCredit, .ports = ports}, ordered);
      Fixture().Run({.lanes = LaneKind::kHca, .ports = ports, .encrypted = true}, ordered);
    }
  }
}

// ---- cards that read what packets take along

class CardReadsTest : public DeviceMemoryFixture, public testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr size_t kSegment = 4096;
  // The cards of host 0 read payloads of `least` bytes and more. GetParam(): packets in a burst.
  void Begin(size_t least, WorldOptions options = WorldOptions()) {
    options.packet_capabilities.reads_later = true;
    options.packet_capabilities.burst_segments = GetParam();
    options.packet_capabilities.max_packet_bytes = kSegment + limits::kMaxDataHeaderBytes;
    StartWith(options, options.ports);
    world().lane(0).ReadDevices(least);
  }
  // Whole pages, so many.
  Memory NewPages(uint32_t at, size_t pages, uint8_t access = kLocalOnly) {
    return NewDevice(at, pages * kSegment, access, kSegment);
  }
  uint64_t Late(uint32_t at = 0) { return world().lane(at).late_packets(); }
};
INSTANTIATE_TEST_SUITE_P(Bursts, CardReadsTest, testing::Values(1u, 16u));

TEST_P(CardReadsTest, SendsAndWritesAreReadByTheCard) {
  Begin(1);
  const Memory out = NewPages(0, 51), in = NewHost(1, out.size, kRemote);
  EXPECT_EQ(world().lane(0).lent(), 1u);
  EXPECT_EQ(world().lane(1).lent(), 1u) << "that of the host";
  EXPECT_EQ(endpoint(0).PlacingPorts(out.region), 0u);
  EXPECT_EQ(endpoint(0).ReadingPorts(out.region), 1u);
  bool checked = false;
  HookData([&](const wire::DataHeader& header, NetworkPacket&, Fate&) {
    checked |= header.length == out.size && (header.flags & wire::kNoPayloadCrc) == 0;
  });
  Transfer(0, out, in);
  EXPECT_EQ(Late(), 51u);
  out.Fill(7);
  AwaitOk(0, Write(0, out.buffer(), Exported(1, in)));
  EXPECT_TRUE(in.Holds(7));
  EXPECT_EQ(Late(), 102u);
  EXPECT_EQ(Copies(0), 0u);
  EXPECT_FALSE(checked) << "by whom?";
  Transfer(0, out, NewDevice(1, out.size));
  EXPECT_EQ(Copies(0), 0u);
  EXPECT_EQ(Copies(1), 51u);
  endpoint(0).DeregisterMemory(out.region, now());
  EXPECT_EQ(world().lane(0).lent(), 0u);
}

// At the beginning one packet reaches into a part of a page, at the end one; and the last is too short.
TEST_P(CardReadsTest, WhatTheCardDoesNotReadIsCopied) {
  Begin(101);
  Transfer(0, NewDevice(0, 50 * kSegment + 100), NewHost(1, 50 * kSegment + 100));
  EXPECT_EQ(Late(), 48u);
  EXPECT_EQ(Copies(0), 3u);
}

// It may be acknowledged by its first copy before it leaves.
TEST_P(CardReadsTest, WhatIsSentAgainIsCopied) {
  Begin(1);
  int data = 0;
  HookData([&data](const wire::DataHeader&, NetworkPacket&, Fate& fate) { fate.drop = data++ % 7 == 3; });
  Transfer(0, NewPages(0, 50), NewHost(1, 50 * kSegment));
  EXPECT_GT(endpoint(0).counters().retransmits, 5u);
  EXPECT_EQ(Copies(0), endpoint(0).counters().retransmits);
  EXPECT_EQ(Late(), 50u);
}

TEST_P(CardReadsTest, OfTwoPortsOneMayCopy) {
  WorldOptions options;
  options.ports = 2;
  Begin(1, options);
  const Memory out = NewPages(0, 100);
  EXPECT_EQ(endpoint(0).ReadingPorts(out.region), 1u);
  Transfer(0, out, NewHost(1, out.size));
  EXPECT_GT(world().lane(0, 0).late_packets(), 0u);
  EXPECT_EQ(world().lane(0, 1).late_packets(), 0u);
  EXPECT_EQ(Copies(0), 100 - world().lane(0, 0).late_packets());
  EXPECT_GT(Copies(0), 0u);
  int data = 0;
  HookData([&data](const wire::DataHeader&, NetworkPacket&, Fate& fate) { fate.drop = data++ % 7 == 3; });
  Transfer(0, out, NewHost(1, out.size));
}

TEST_P(CardReadsTest, AnswersToReadsAreCopied) {
  Begin(1);
  world().lane(1).ReadDevices(1);
  const Memory from = NewPages(1, 20, kRemote), to = NewHost(0, 20 * kSegment);
  from.Fill(5);
  AwaitOk(0, Read(0, to.buffer(), Exported(1, from)));
  EXPECT_TRUE(to.Holds(5));
  EXPECT_EQ(Copies(1), 20u);
  EXPECT_EQ(Late(1), 0u);
}

TEST_P(CardReadsTest, UnderAKeyAllIsCopied) {
  for (const bool encrypted : {false, true}) {
    WorldOptions options = OptionsFor({.encrypted = true});
    options.endpoint.encrypt = encrypted;
    Begin(1, options);
    Transfer(0, NewPages(0, 20), NewHost(1, 20 * kSegment));
    EXPECT_EQ(Late(), 0u);
    EXPECT_GE(Copies(0), 20u);
    TearDown();
  }
}

TEST_P(CardReadsTest, ACardThatTakesNoMemoryOfGpusReadsNone) {
  Begin(SIZE_MAX);
  Transfer(0, NewPages(0, 20), NewHost(1, 20 * kSegment));
  EXPECT_EQ(world().lane(0).lent(), 0u);
  EXPECT_EQ(endpoint(0).ReadingPorts(NewDevice(0, 100).region), 0u);
  EXPECT_EQ(Copies(0), 20u);
}

}  // namespace
}  // namespace paceline::support
