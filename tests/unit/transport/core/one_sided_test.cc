// Write, write with immediate, read, atomics and flush; permissions, bounds, revocation. On every kind of lane.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/support/core_fixture.h"
#include "transport/base/limits.h"
#include "transport/wire/packet.h"

namespace paceline::support {
namespace {

constexpr uint8_t kAll = kRemoteRead | kRemoteWrite | kRemoteAtomic;

class OneSidedTest : public CoreSetupTest {
 protected:
  uint64_t Word(const GuardedBuffer& buffer, size_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, buffer.data() + offset, sizeof(word));
    return word;
  }
  void SetWord(GuardedBuffer& buffer, size_t offset, uint64_t word) {
    std::memcpy(buffer.data() + offset, &word, sizeof(word));
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, OneSidedTest, testing::ValuesIn(AllCoreSetups()), CoreSetupName);

TEST_P(OneSidedTest, WriteOfEverySizeIsInPlaceAtItsCompletion) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{16'385}, size_t{1'000'003}}) {
    GuardedBuffer& target = NewBuffer(bytes + 20);
    const RemoteMemory remote = Export(1, target, kRemoteWrite);
    AwaitOk(0, Write(0, NewFilled(bytes, bytes), remote, 7));
    EXPECT_TRUE(FindDifference(target.data() + 7, bytes, bytes) == bytes) << bytes;
    for (size_t i = 0; i < 7; ++i) EXPECT_EQ(target.data()[i], 0xdd);
    EXPECT_TRUE(target.Untouched(7 + bytes));
  }
}

TEST_P(OneSidedTest, WriteWithImmediateTellsTheTargetWhenAllIsInPlace) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100'000}}) {
    GuardedBuffer& target = NewBuffer(bytes);
    const RemoteMemory remote = Export(1, target, kRemoteWrite);
    host(1).completions.clear();
    bool in_place = false;
    host(1).on_completion = [&](const Completion& completion) {
      host(1).completions.push_back(completion);
      in_place = target.Holds(bytes);
    };
    const uint64_t write = WriteImmediate(0, NewFilled(bytes, bytes), remote, 0, 0x1122334455667788);
    ASSERT_TRUE(world().RunUntil([&] { return !host(1).completions.empty(); }));
    EXPECT_TRUE(in_place) << bytes;
    const Completion& told = host(1).completions[0];
    EXPECT_EQ(told.operation, Operation::kWriteImmediate);
    EXPECT_EQ(told.status, OperationStatus::kOk);
    EXPECT_EQ(told.connection, connection(1));
    EXPECT_EQ(told.bytes, bytes);
    EXPECT_TRUE(told.has_immediate);
    EXPECT_EQ(told.immediate, 0x1122334455667788u);
    EXPECT_EQ(told.user_data, 0u);
    AwaitOk(0, write);
    world().RunFor(Duration::Millis(50));
    EXPECT_EQ(host(1).completions.size(), 1u);
  }
}

TEST_P(OneSidedTest, ReadOfEverySize) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{16'385}, size_t{1'000'003}}) {
    GuardedBuffer& source = NewBuffer(bytes + 16);
    FillPattern(source.data() + 16, bytes, bytes);
    const RemoteMemory remote = Export(1, source, kRemoteRead);
    GuardedBuffer& in = NewBuffer(bytes);
    const uint64_t read = Read(0, in, remote, 16);
    AwaitOk(0, read);
    EXPECT_EQ(Done(0, read)->bytes, bytes);
    EXPECT_TRUE(in.Holds(bytes)) << bytes;
  }
}

// A peer that answers a read twice at once: the first answer that is whole ends the read and gives its memory back, and
// the other one must not write there any more.
TEST_P(OneSidedTest, ASecondAnswerWritesNothingOnceTheReadIsDone) {
  if (GetParam().lanes == LaneKind::kHca) GTEST_SKIP() << "a card places answers by itself";
  if (GetParam().encrypted) GTEST_SKIP() << "nobody can forge an answer";
  GuardedBuffer& source = NewFilled(8000, 1);
  GuardedBuffer& in = NewBuffer(8000);
  const RemoteMemory remote = Export(1, source, kRemoteRead);
  std::vector<NetworkPacket> second_answer;
  network().SetHook([&](NetworkPacket& packet, Fate& fate) {
    bool bad_checksum = false;
    const auto common = wire::ParseCommon(packet.bytes, &bad_checksum);
    if (!common.has_value() || common->type != wire::PacketType::kData) return;
    auto header = wire::ParseData(*common, packet.bytes);
    if (!header.has_value() || header->kind != wire::MessageKind::kReadResponse) return;
    if (header->offset > 0) fate.extra_delay = Duration::Micros(50);  // the second answer's first part comes before it
    constexpr uint16_t kLater = 100;
    header->psn += kLater;
    header->floor_distance += kLater;
    header->message += 1;
    header->flags = wire::kNoPayloadCrc;
    header->payload_crc = 0;
    header->frames = {};
    NetworkPacket forged = packet;
    std::array<uint8_t, limits::kMaxDataHeaderBytes> bytes;
    forged.header_bytes = static_cast<uint32_t>(wire::EncodeData(*header, bytes));
    forged.bytes.assign(bytes.begin(), bytes.begin() + forged.header_bytes);
    forged.bytes.insert(forged.bytes.end(), packet.payload_bytes, 0x66);
    second_answer.push_back(forged);
  });
  const uint64_t read = Read(0, in, remote);
  ASSERT_TRUE(world().RunUntil([&] { return second_answer.size() == 2; }));
  network().Inject(second_answer[0]);
  AwaitOk(0, read);
  FillPattern(in.data(), 8000, 2);  // ours again
  const uint64_t taken = endpoint(0).counters().rx_packets;
  network().Inject(second_answer[1]);
  ASSERT_TRUE(world().RunUntil([&] { return endpoint(0).counters().rx_packets > taken; }));
  EXPECT_TRUE(in.Holds(2));
  network().SetHook(nullptr);
}

TEST_P(OneSidedTest, ManyReadsAndWritesAtOnceInBothDirections) {
  GuardedBuffer& memory0 = NewFilled(400'000, 70);
  GuardedBuffer& memory1 = NewFilled(400'000, 71);
  const RemoteMemory remote[2] = {Export(0, memory0, kAll), Export(1, memory1, kAll)};
  std::vector<std::pair<GuardedBuffer*, uint32_t>> reads;
  for (uint32_t i = 0; i < 20; ++i) {
    for (uint32_t from = 0; from < 2; ++from) {
      GuardedBuffer& in = NewBuffer(10'000);
      reads.push_back({&in, 1 - from});
      Read(from, in, remote[1 - from], i * 10'000);
      Write(from, NewFilled(10'000, 500 + i), remote[1 - from], 200'000 + i * 10'000);
    }
  }
  AwaitAll();
  for (size_t k = 0; k < reads.size(); ++k) {
    EXPECT_EQ(FindDifference(reads[k].first->data(), 10'000, 70 + reads[k].second, k / 2 * 10'000), 10'000u) << k;
  }
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(FindDifference(memory0.data() + 200'000 + i * 10'000, 10'000, 500 + i), 10'000u);
    EXPECT_EQ(FindDifference(memory1.data() + 200'000 + i * 10'000, 10'000, 500 + i), 10'000u);
  }
}

TEST_P(OneSidedTest, FetchAddGivesTheValueBeforeAndAddsOnce) {
  GuardedBuffer& cells = NewBuffer(64);
  SetWord(cells, 8, 1000);
  const RemoteMemory remote = Export(1, cells, kRemoteAtomic);
  std::vector<uint64_t> adds;
  for (uint64_t i = 0; i < 50; ++i) adds.push_back(FetchAdd(0, remote, 8, uint64_t{1} << (i % 30)));
  AwaitAll();
  uint64_t sum = 1000;
  for (uint64_t i = 0; i < 50; ++i) sum += uint64_t{1} << (i % 30);
  EXPECT_EQ(Word(cells, 8), sum);
  for (const uint64_t add : adds) EXPECT_EQ(Done(0, add)->status, OperationStatus::kOk);
}

TEST_P(OneSidedTest, AtomicsOneAfterAnother) {
  GuardedBuffer& cells = NewBuffer(16);
  SetWord(cells, 0, 5);
  const RemoteMemory remote = Export(1, cells, kRemoteAtomic);
  EXPECT_EQ(Await(0, FetchAdd(0, remote, 0, 10)).result, 5u);
  EXPECT_EQ(Await(0, CompareSwap(0, remote, 0, 14, 1)).result, 15u);
  EXPECT_EQ(Word(cells, 0), 15u);
  EXPECT_EQ(Await(0, CompareSwap(0, remote, 0, 15, 1)).result, 15u);
  EXPECT_EQ(Word(cells, 0), 1u);
  EXPECT_EQ(Await(0, FetchAdd(0, remote, 0, ~uint64_t{0})).result, 1u);
  EXPECT_EQ(Word(cells, 0), 0u);
}

TEST_P(OneSidedTest, FlushCompletesAfterEverythingPostedBefore) {
  GuardedBuffer& memory = NewBuffer(500'000);
  const RemoteMemory remote = Export(1, memory, kAll);
  std::vector<uint64_t> before;
  before.push_back(Write(0, NewFilled(500'000, 1), remote));
  before.push_back(Read(0, NewBuffer(1000), remote));
  before.push_back(Send(0, NewFilled(10, 1), 1));
  const uint64_t flush = Flush(0);
  const uint64_t after = Send(0, NewFilled(100'000, 1), 2);  // has no receive: never completes by itself
  AwaitOk(0, flush);
  size_t seen = 0;
  for (const Completion& completion : host(0).completions) {
    if (completion.user_data == flush) break;
    ++seen;
  }
  EXPECT_EQ(seen, before.size());
  EXPECT_EQ(Done(0, flush)->operation, Operation::kFlush);
  EXPECT_EQ(Done(0, after), nullptr);
  AwaitOk(0, Read(0, NewBuffer(10), remote));
  AwaitOk(1, Receive(1, NewBuffer(100'000), 2));
  AwaitOk(1, Receive(1, NewBuffer(10), 1));
  AwaitAll();
  AwaitOk(0, Flush(0));  // with nothing before it
}

TEST_P(OneSidedTest, BoundsArePolicedAtBothEnds) {
  GuardedBuffer& memory = NewBuffer(1000);
  const RemoteMemory honest = Export(1, memory, kAll);
  PostResult result;
  Write(0, NewFilled(1001, 1), honest, 0, &result);
  EXPECT_EQ(result, PostResult::kInvalidMemory);
  Write(0, NewFilled(1, 1), honest, 1000, &result);
  EXPECT_EQ(result, PostResult::kInvalidMemory);
  Read(0, NewBuffer(10), honest, ~uint64_t{0} - 3, &result);
  EXPECT_EQ(result, PostResult::kInvalidMemory);
  // Somebody who lies about the size is stopped by the owner.
  RemoteMemory lie = honest;
  lie.bytes = ~uint64_t{0};
  for (const uint64_t offset : {uint64_t{999}, uint64_t{1000}, uint64_t{1} << 40, ~uint64_t{0} - 2}) {
    EXPECT_EQ(Await(0, Write(0, NewFilled(2, 1), lie, offset)).status, OperationStatus::kRemoteAccess) << offset;
    EXPECT_EQ(Await(0, Read(0, NewBuffer(2), lie, offset)).status, OperationStatus::kRemoteAccess) << offset;
  }
  EXPECT_EQ(Await(0, Write(0, NewFilled(100'000, 1), lie, 0)).status, OperationStatus::kRemoteAccess);
  EXPECT_EQ(Await(0, FetchAdd(0, lie, 1000, 1)).status, OperationStatus::kRemoteAccess);
  EXPECT_TRUE(memory.Untouched());
  EXPECT_GT(endpoint(1).counters().rx_refused, 0u);
  AwaitOk(0, Write(0, NewFilled(1000, 1), honest));
}

TEST_P(OneSidedTest, PermissionsAreKept) {
  GuardedBuffer& readable = NewFilled(64, 1);
  GuardedBuffer& writable = NewBuffer(64);
  GuardedBuffer& atomic = NewBuffer(64);
  GuardedBuffer& local = NewBuffer(64);
  const RemoteMemory read_only = Export(1, readable, kRemoteRead);
  const RemoteMemory write_only = Export(1, writable, kRemoteWrite);
  const RemoteMemory atomic_only = Export(1, atomic, kRemoteAtomic);
  const RemoteMemory local_only = Export(1, local, kLocalOnly);
  auto status = [this](uint64_t operation) { return Await(0, operation).status; };
  EXPECT_EQ(status(Write(0, NewFilled(8, 2), read_only)), OperationStatus::kRemoteAccess);
  EXPECT_EQ(status(FetchAdd(0, read_only, 0, 1)), OperationStatus::kRemoteAccess);
  EXPECT_EQ(status(Read(0, NewBuffer(8), write_only)), OperationStatus::kRemoteAccess);
  EXPECT_EQ(status(CompareSwap(0, write_only, 0, 1, 2)), OperationStatus::kRemoteAccess);
  EXPECT_EQ(status(Write(0, NewFilled(8, 2), atomic_only)), OperationStatus::kRemoteAccess);
  EXPECT_EQ(status(Read(0, NewBuffer(8), atomic_only)), OperationStatus::kRemoteAccess);
  if (local_only.key != 0) {
    EXPECT_EQ(status(Read(0, NewBuffer(8), local_only)), OperationStatus::kRemoteAccess);
    EXPECT_EQ(status(Write(0, NewFilled(8, 2), local_only)), OperationStatus::kRemoteAccess);
  }
  EXPECT_EQ(status(Read(0, NewBuffer(8), read_only)), OperationStatus::kOk);
  EXPECT_EQ(status(FetchAdd(0, atomic_only, 0, 1)), OperationStatus::kOk);
  EXPECT_TRUE(readable.Holds(1));
  EXPECT_TRUE(writable.Untouched());
  EXPECT_TRUE(local.Untouched());
}

TEST_P(OneSidedTest, AKeyOfTheApplicationsChoiceAndOffsetsFromItsOrigin) {
  GuardedBuffer& memory = NewBuffer(64);
  constexpr uint64_t kKey = 3, kOrigin = 0x7000;
  const RegionId region = endpoint(1).RegisterMemoryAs(kKey, kOrigin, memory.data(), memory.size(), kAll);
  ASSERT_NE(region, kUnregistered);
  EXPECT_EQ(endpoint(1).RegisterMemoryAs(kKey, 0, memory.data(), memory.size(), kAll), kUnregistered);
  const RemoteMemory remote{.key = kKey, .bytes = ~0ull};
  AwaitOk(0, Write(0, NewFilled(64, 5), remote, kOrigin));
  EXPECT_TRUE(memory.Holds(5));
  GuardedBuffer& back = NewBuffer(64);
  AwaitOk(0, Read(0, back, remote, kOrigin));
  EXPECT_TRUE(back.Holds(5));
  const RemoteMemory exported = endpoint(1).ExportMemory(region);
  AwaitOk(0, Write(0, NewFilled(16, 6), exported, kOrigin + 48));
  for (const uint64_t offset : {uint64_t{0}, kOrigin - 1, kOrigin + 49}) {
    EXPECT_EQ(Await(0, Write(0, NewFilled(16, 7), remote, offset)).status, OperationStatus::kRemoteAccess) << offset;
  }
}

TEST_P(OneSidedTest, UnknownKeysAreRefused) {
  GuardedBuffer& memory = NewBuffer(64);
  RemoteMemory remote = Export(1, memory, kAll);
  remote.key ^= 1;
  for (uint64_t& key : remote.lane_keys) key = key == 0 ? 0 : key + 1;
  EXPECT_EQ(Await(0, Write(0, NewFilled(8, 2), remote)).status, OperationStatus::kRemoteAccess);
  EXPECT_EQ(Await(0, WriteImmediate(0, NewFilled(8, 2), remote, 0, 1)).status, OperationStatus::kRemoteAccess);
  EXPECT_EQ(Await(0, Read(0, NewBuffer(8), remote)).status, OperationStatus::kRemoteAccess);
  EXPECT_EQ(Await(0, FetchAdd(0, remote, 0, 1)).status, OperationStatus::kRemoteAccess);
  EXPECT_TRUE(memory.Untouched());
  world().RunFor(Duration::Millis(10));
  for (const Completion& completion : host(1).completions) EXPECT_NE(completion.operation, Operation::kWriteImmediate);
  Exchange(0, 1000);
}

TEST_P(OneSidedTest, ARegionOfAnotherConnectionIsRefused) {
  GuardedBuffer& memory = NewBuffer(64);
  const auto other = world().Establish(0, 1);
  const RegionId region = endpoint(1).RegisterMemory(memory.data(), 64, kAll, MemoryKind::kHost, other.second);
  const RemoteMemory remote = endpoint(1).ExportMemory(region);
  EXPECT_EQ(Await(0, Write(0, NewFilled(8, 2), remote)).status, OperationStatus::kRemoteAccess);
  EXPECT_TRUE(memory.Untouched());
  std::tie(a_, b_) = other;
  AwaitOk(0, Write(0, NewFilled(8, 2), remote));
}

TEST_P(OneSidedTest, RevocationWorksAtOnce) {
  GuardedBuffer& memory = NewBuffer(2'000'000);
  RegionId region = 0;
  const RemoteMemory remote = Export(1, memory, kAll, &region);
  const uint64_t write = Write(0, NewFilled(2'000'000, 2), remote);
  world().RunFor(Duration::Micros(60));  // under way
  ASSERT_EQ(Done(0, write), nullptr);
  endpoint(1).DeregisterMemory(region, now());
  host(1).Touch();
  const std::vector<uint8_t> then(memory.data(), memory.data() + memory.size());
  EXPECT_EQ(Await(0, write).status, OperationStatus::kRemoteAccess);
  world().RunFor(Duration::Millis(50));
  EXPECT_EQ(std::memcmp(then.data(), memory.data(), memory.size()), 0) << "written after revocation";
  EXPECT_EQ(endpoint(1).ExportMemory(region).key, 0u);
  Exchange(0, 100'000);
}

// A read of the peer is no operation of the owner's: it ends alone, and the connection goes on.
TEST_P(OneSidedTest, MemoryThatThePeerReadsCanBeRevoked) {
  for (const int64_t micros : {8, 30, 60}) {  // before the answer leaves, and while it does
    SCOPED_TRACE(micros);
    GuardedBuffer& memory = NewFilled(2'000'000, 4);
    RegionId region = 0;
    const RemoteMemory remote = Export(1, memory, kAll, &region);
    GuardedBuffer& in = NewBuffer(2'000'000);
    const uint64_t read = Read(0, in, remote);
    GuardedBuffer& short_in = NewBuffer(100);
    const uint64_t short_read = Read(0, short_in, remote);
    world().RunFor(Duration::Micros(micros));
    ASSERT_EQ(Done(0, read), nullptr);
    endpoint(1).DeregisterMemory(region, now());
    host(1).Touch();
    memory.Poison();
    EXPECT_EQ(Await(0, read).status, OperationStatus::kRemoteAccess);
    const Completion completion = Await(0, short_read);
    EXPECT_TRUE(completion.status == OperationStatus::kRemoteAccess || short_in.HoldsFirst(100, 4));
    in.Poison();
    world().RunFor(Duration::Millis(50));
    EXPECT_TRUE(in.Untouched()) << "written after the read had ended";
    EXPECT_GE(endpoint(1).counters().rx_refused, 1u);
    Exchange(0, 100'000);
    Exchange(1, 100'000);
    if (HasFailure()) return;
  }
}

// What was refused holds nothing once the peer knows, though it sends no more.
TEST_P(OneSidedTest, ARefusalLeavesTheConnectionIdle) {
  const RemoteMemory unknown{.key = 12345, .bytes = 1000};
  EXPECT_EQ(Await(0, Write(0, NewFilled(64, 1), unknown)).status, OperationStatus::kRemoteAccess);
  world().RunFor(Duration::Seconds(3));
  for (const uint32_t i : {0u, 1u}) EXPECT_LE(endpoint(i).MemoryOf(connection(i)), 4096u);
}

// More of them than there are numbers for messages.
TEST_P(OneSidedTest, ManyRefusalsLeaveRoomForWhatIsAllowed) {
  GuardedBuffer& memory = NewBuffer(4096);
  const RemoteMemory readable = Export(1, memory, kRemoteRead);
  const RemoteMemory writable = Export(1, memory, kRemoteWrite);
  GuardedBuffer& from = NewFilled(64, 3);
  for (int round = 0; round < 100; ++round) {
    std::vector<uint64_t> writes;
    for (int i = 0; i < 64; ++i) writes.push_back(Write(0, from, readable));
    for (const uint64_t write : writes) ASSERT_EQ(Await(0, write).status, OperationStatus::kRemoteAccess);
  }
  EXPECT_EQ(Await(0, Write(0, from, writable)).status, OperationStatus::kOk);
  Exchange(0, 10'000);
}

// A number that was handed back does not name what is registered next.
TEST_P(OneSidedTest, NumbersOfRegionsAreNotUsedAgainSoon) {
  GuardedBuffer& one = NewBuffer(1000);
  GuardedBuffer& other = NewBuffer(1000);
  const RegionId first = endpoint(0).RegisterMemory(one.data(), 1000, kLocalOnly);
  endpoint(0).DeregisterMemory(first, now());
  const RegionId second = endpoint(0).RegisterMemory(other.data(), 1000, kLocalOnly);
  EXPECT_NE(first, second);
  EXPECT_EQ(endpoint(0).ExportMemory(first).key, 0u);
  EXPECT_EQ(endpoint(0).PostSend(connection(0), {.buffer = {other.data(), 10, first}, .tag = 99}, now()),
            PostResult::kInvalidMemory);
  endpoint(0).DeregisterMemory(first, now());  // and giving it back again takes nothing away
  EXPECT_NE(endpoint(0).ExportMemory(second).key, 0u);
}

TEST_P(OneSidedTest, LocalRegionsAreChecked) {
  GuardedBuffer& mine = NewBuffer(1000);
  const RegionId region = endpoint(0).RegisterMemory(mine.data(), 1000, kLocalOnly);
  auto post = [&](LocalBuffer buffer) {
    return endpoint(0).PostSend(connection(0), {.buffer = buffer, .tag = 99}, now());
  };
  EXPECT_EQ(post({mine.data(), 1001, region}), PostResult::kInvalidMemory);
  EXPECT_EQ(post({mine.data() + 1, 1000, region}), PostResult::kInvalidMemory);
  EXPECT_EQ(post({mine.data() - 1, 10, region}), PostResult::kInvalidMemory);
  EXPECT_EQ(post({mine.data(), 10, region + 12345}), PostResult::kInvalidMemory);
  EXPECT_EQ(post({nullptr, 10, kUnregistered}), PostResult::kInvalidMemory);
  EXPECT_EQ(post({mine.data(), 1000, region}), PostResult::kOk);
}

// The owner of a region that wants to know hears of each access once, and of none that was refused.
TEST_P(OneSidedTest, ARegionsOwnerIsToldOfWhatPeersDo) {
  GuardedBuffer& memory = NewBuffer(10'000);
  RegionId region = 0;
  const RemoteMemory remote = Export(1, memory, kAll | kRemoteEvents, &region);
  host(1).completions.clear();
  const uint64_t operand = 1;
  VectorAtomicRequest atomic = {.op = AtomicOp::kSum, .type = AtomicType::kUint64, .elements = 1};
  atomic.operands = &operand;
  atomic.remote = remote;
  AwaitOk(0, Write(0, NewFilled(9000, 1), remote));
  AwaitOk(0, WriteImmediate(0, NewFilled(10, 1), remote, 0, 7));
  AwaitOk(0, Read(0, NewBuffer(9000), remote));
  world().RunFor(Duration::Millis(1));  // its acknowledgement
  AwaitOk(0, PostAtomic(0, atomic));
  atomic.results = NewBuffer(8).data();
  AwaitOk(0, PostAtomic(0, atomic));
  AwaitOk(0, FetchAdd(0, remote, 8, 1));
  RemoteMemory lie = remote;
  lie.bytes = ~uint64_t{0};
  EXPECT_EQ(Await(0, Write(0, NewFilled(2, 1), lie, 9999)).status, OperationStatus::kRemoteAccess);
  EXPECT_EQ(Await(0, Read(0, NewBuffer(2), lie, 9999)).status, OperationStatus::kRemoteAccess);
  world().RunFor(Duration::Millis(50));
  struct Told {
    Operation operation;
    uint64_t bytes;
    bool fetched;
  };
  const Told wanted[] = {{Operation::kWrite, 9000, false}, {Operation::kWriteImmediate, 10, false},
                         {Operation::kRead, 9000, false},  {Operation::kAtomic, 8, false},
                         {Operation::kAtomic, 8, true},    {Operation::kFetchAdd, 8, true}};
  ASSERT_EQ(host(1).completions.size(), std::size(wanted));
  for (size_t i = 0; i < std::size(wanted); ++i) {
    const Completion& told = host(1).completions[i];
    EXPECT_EQ(told.operation, wanted[i].operation) << i;
    EXPECT_EQ(told.bytes, wanted[i].bytes) << i;
    EXPECT_EQ(told.fetched, wanted[i].fetched) << i;
    EXPECT_EQ(told.region, region) << i;
    EXPECT_EQ(told.connection, connection(1)) << i;
    EXPECT_EQ(told.user_data, 0u) << i;
  }
  EXPECT_EQ(endpoint(1).counters().rx_writes, 2u);
  EXPECT_EQ(endpoint(1).counters().rx_reads, 1u);
  EXPECT_EQ(endpoint(1).counters().rx_atomics, 3u);
}

TEST_P(OneSidedTest, MisalignedAtomicsAreRefused) {
  GuardedBuffer& memory = NewBuffer(64);
  const RemoteMemory remote = Export(1, memory, kAll);
  EXPECT_EQ(endpoint(0).PostAtomic(connection(0), {.remote = remote, .remote_offset = 4, .operand = 1}, now()),
            PostResult::kInvalidArgument);
  EXPECT_EQ(endpoint(0).PostAtomic(connection(0), {.operation = Operation::kSend, .remote = remote}, now()),
            PostResult::kInvalidArgument);
}

TEST_P(OneSidedTest, DeregisteringAtThePosterEndsItsOperations) {
  GuardedBuffer& in = NewBuffer(8'000'000);
  const RegionId region = endpoint(1).RegisterMemory(in.data(), in.size(), kLocalOnly);
  OperationId id = 0;
  host(1).on_completion = [&](const Completion& completion) { host(1).completions.push_back(completion); };
  ASSERT_EQ(endpoint(1).PostReceive(connection(1), {.buffer = in.local(region), .tag = 1, .user_data = 77}, now(), &id),
            PostResult::kOk);
  Send(0, NewFilled(8'000'000, 3), 1);
  world().RunFor(Duration::Micros(60));
  endpoint(1).DeregisterMemory(region, now());
  host(1).Touch();
  const std::vector<uint8_t> then(in.data(), in.data() + in.size());
  ASSERT_TRUE(world().RunUntil([&] { return Done(1, 77) != nullptr; }));
  EXPECT_NE(Done(1, 77)->status, OperationStatus::kOk);
  AwaitAll();  // the send ends too, one way or the other
  EXPECT_EQ(std::memcmp(then.data(), in.data(), in.size()), 0) << "written after deregistration";
  world().RunFor(Duration::Millis(100));
  size_t count = 0;
  for (const Completion& completion : host(1).completions) count += completion.user_data == 77;
  EXPECT_EQ(count, 1u);
}

}  // namespace
}  // namespace paceline::support
