#include "transport/wire/packet.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "transport/base/limits.h"
#include "transport/base/random.h"
#include "transport/wire/checksum.h"

namespace paceline::wire {
namespace {

// A header of this kind with a different value in each field that the kind carries.
DataHeader SomeHeader(MessageKind kind, bool immediate) {
  DataHeader header;
  header.flags = static_cast<uint8_t>(kAckNow | kRetransmission | (immediate ? kHasImmediate : 0));
  header.connection = 0x01020304;
  header.payload_crc = 0x11121314;
  header.psn = 0xfffffffe;
  header.message = 0x21222324;
  header.timestamp = 0x31323334;
  header.floor_distance = 0x4142;
  header.cap = 0x5152;
  header.offset = 0x616263646566;
  header.kind = kind;
  header.length = 0xfffffffffff0;
  header.entropy = 0x7172;
  header.backlog = 0x81828384;
  header.tx_total = 0x91929394;
  header.lost_total = 0xa1a2a3a4;
  header.match_sequence = 0xb1b2b3b4;
  const bool remote = kind == MessageKind::kWrite || kind == MessageKind::kAnnounce ||
                      kind == MessageKind::kReadRequest || kind == MessageKind::kFetchAdd ||
                      kind == MessageKind::kCompareSwap || kind == MessageKind::kAtomic;
  if (kind == MessageKind::kSend) header.tag = 0xc1c2c3c4c5c6c7c8;
  if (remote) header.remote_key = 0xd1d2d3d4d5d6d7d8, header.remote_offset = 0xe1e2e3e4e5e6e7e8;
  if (kind == MessageKind::kFetchAdd || kind == MessageKind::kCompareSwap) header.operand = 77, header.compare = 88;
  if (kind >= MessageKind::kAtomicResponse && kind <= MessageKind::kFailure) header.value = 99;
  if (kind == MessageKind::kReadResponse || kind == MessageKind::kAtomicResponse || kind == MessageKind::kFailure) {
    header.request = 66;
  }
  if (kind == MessageKind::kAtomic) {
    header.atomic_op = AtomicOp::kSwapIfLess;
    header.atomic_type = AtomicType::kDouble;
    header.fetch = true;
    header.elements = 5;
    header.length = 80;
  }
  if (immediate) header.immediate = 0xf1f2f3f4f5f6f7f8;
  return header;
}

void ExpectSame(const DataHeader& a, const DataHeader& b) {
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.connection, b.connection);
  EXPECT_EQ(a.payload_crc, b.payload_crc);
  EXPECT_EQ(a.psn, b.psn);
  EXPECT_EQ(a.message, b.message);
  EXPECT_EQ(a.timestamp, b.timestamp);
  EXPECT_EQ(a.floor_distance, b.floor_distance);
  EXPECT_EQ(a.cap, b.cap);
  EXPECT_EQ(a.offset, b.offset);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.length, b.length);
  EXPECT_EQ(a.entropy, b.entropy);
  EXPECT_EQ(a.backlog, b.backlog);
  EXPECT_EQ(a.tx_total, b.tx_total);
  EXPECT_EQ(a.lost_total, b.lost_total);
  EXPECT_EQ(a.atomic_op, b.atomic_op);
  EXPECT_EQ(a.atomic_type, b.atomic_type);
  EXPECT_EQ(a.fetch, b.fetch);
  EXPECT_EQ(a.elements, b.elements);
  EXPECT_EQ(a.match_sequence, b.match_sequence);
  EXPECT_EQ(a.tag, b.tag);
  EXPECT_EQ(a.remote_key, b.remote_key);
  EXPECT_EQ(a.remote_offset, b.remote_offset);
  EXPECT_EQ(a.immediate, b.immediate);
  EXPECT_EQ(a.operand, b.operand);
  EXPECT_EQ(a.compare, b.compare);
  EXPECT_EQ(a.request, b.request);
  EXPECT_EQ(a.value, b.value);
}

std::vector<uint8_t> Encoded(const DataHeader& header) {
  std::vector<uint8_t> buffer(limits::kMaxDataHeaderBytes);
  buffer.resize(EncodeData(header, buffer));
  return buffer;
}

TEST(PacketTest, EveryKindOfDataHeaderComesBackAsItWasWritten) {
  for (uint8_t kind = 0; kind <= kLastMessageKind; ++kind) {
    for (const bool immediate : {false, true}) {
      const auto message = static_cast<MessageKind>(kind);
      if (immediate && message != MessageKind::kSend && message != MessageKind::kWrite &&
          message != MessageKind::kAnnounce) {
        continue;  // no other kind has one
      }
      const DataHeader header = SomeHeader(message, immediate);
      const std::vector<uint8_t> bytes = Encoded(header);
      ASSERT_GE(bytes.size(), 64u);
      ASSERT_LE(bytes.size(), limits::kMaxDataHeaderBytes);
      bool bad_checksum = true;
      const auto common = ParseCommon(bytes, &bad_checksum);
      ASSERT_TRUE(common);
      EXPECT_FALSE(bad_checksum);
      EXPECT_EQ(common->version, kVersion);
      EXPECT_EQ(common->type, PacketType::kData);
      EXPECT_EQ(common->header_bytes, bytes.size());
      const auto parsed = ParseData(*common, bytes);
      ASSERT_TRUE(parsed) << int{kind};
      ExpectSame(*parsed, header);
    }
  }
}

// Byte by byte as docs/protocol.md has it, but for the checksum.
TEST(PacketTest, ASendIsWrittenAsTheProtocolSays) {
  std::vector<uint8_t> bytes = Encoded(SomeHeader(MessageKind::kSend, false));
  ASSERT_EQ(bytes.size(), 72u);
  constexpr uint8_t kFlags = 0x01 | 0x08;  // ack now, retransmission
  std::fill_n(bytes.begin() + kHeaderChecksumAt, 4, uint8_t{0});
  EXPECT_EQ(bytes, (std::vector<uint8_t>{
                       0x15, kFlags, 72,   0,    0x04, 0x03, 0x02, 0x01,  // version and type, flags, bytes, connection
                       0,    0,      0,    0,    0x14, 0x13, 0x12, 0x11,  // the checksum, that of the payload
                       0xfe, 0xff,   0xff, 0xff, 0x24, 0x23, 0x22, 0x21,  // psn, message
                       0x34, 0x33,   0x32, 0x31, 0x42, 0x41, 0x52, 0x51,  // timestamp, floor distance, cap
                       0x66, 0x65,   0x64, 0x63, 0x62, 0x61, 0x01, 0,     // offset, kind
                       0xf0, 0xff,   0xff, 0xff, 0xff, 0xff, 0x72, 0x71,  // length, entropy
                       0x84, 0x83,   0x82, 0x81, 0x94, 0x93, 0x92, 0x91,  // backlog, bytes transmitted
                       0xa4, 0xa3,   0xa2, 0xa1, 0xb4, 0xb3, 0xb2, 0xb1,  // lost bytes, match sequence
                       0xc8, 0xc7,   0xc6, 0xc5, 0xc4, 0xc3, 0xc2, 0xc1,  // tag
                   }));
}

TEST(PacketTest, FramesRideBehindTheBlockOfTheKind) {
  DataHeader header = SomeHeader(MessageKind::kSend, true);
  const std::vector<uint8_t> frames(40, 0x7e);
  header.frames = frames;
  header.flags |= kHasFrames;
  std::vector<uint8_t> bytes(limits::kMaxDataHeaderBytes + frames.size());
  bytes.resize(EncodeData(header, bytes));
  EXPECT_EQ(bytes.size(), Encoded(SomeHeader(MessageKind::kSend, true)).size() + frames.size());
  bool bad_checksum = false;
  auto common = ParseCommon(bytes, &bad_checksum);
  ASSERT_TRUE(common);
  const auto parsed = ParseData(*common, bytes);
  ASSERT_TRUE(parsed);
  ExpectSame(*parsed, header);
  EXPECT_EQ(std::vector<uint8_t>(parsed->frames.begin(), parsed->frames.end()), frames);
  // The same bytes without the flag that announces them are a header of a wrong length.
  common->flags &= static_cast<uint8_t>(~kHasFrames);
  EXPECT_FALSE(ParseData(*common, bytes));
}

TEST(PacketTest, PayloadBehindTheHeaderChangesNothing) {
  const DataHeader header = SomeHeader(MessageKind::kSend, true);
  std::vector<uint8_t> bytes = Encoded(header);
  bytes.insert(bytes.end(), 4096, 0x5a);
  bool bad_checksum = false;
  const auto common = ParseCommon(bytes, &bad_checksum);
  ASSERT_TRUE(common);
  const auto parsed = ParseData(*common, bytes);
  ASSERT_TRUE(parsed);
  ExpectSame(*parsed, header);
}

TEST(PacketTest, AnyTurnedBitOfTheHeaderIsSeen) {
  const std::vector<uint8_t> good = Encoded(SomeHeader(MessageKind::kCompareSwap, false));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<uint8_t> bytes = good;
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
    bool bad_checksum = false;
    EXPECT_FALSE(ParseCommon(bytes, &bad_checksum)) << bit;
  }
}

TEST(PacketTest, TruncationIsRefused) {
  const std::vector<uint8_t> good = Encoded(SomeHeader(MessageKind::kWrite, false));
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    const std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
    bool bad_checksum = false;
    EXPECT_FALSE(ParseCommon(cut, &bad_checksum)) << bytes;
    EXPECT_FALSE(bad_checksum);
  }
}

// Headers whose checksum is right but whose contents are not: too short for their kind, too long, of no kind.
TEST(PacketTest, WellSignedNonsenseIsRefused) {
  const std::vector<uint8_t> good = Encoded(SomeHeader(MessageKind::kFetchAdd, false));
  auto parses = [](std::vector<uint8_t> bytes) {
    FinishPacket(bytes, PacketType::kData, 0, 1);
    bool bad_checksum = false;
    const auto common = ParseCommon(bytes, &bad_checksum);
    EXPECT_TRUE(common);
    return common && ParseData(*common, bytes).has_value();
  };
  EXPECT_TRUE(parses(good));
  for (size_t bytes = kCommonBytes; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(parses(std::vector<uint8_t>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes))));
  }
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  EXPECT_FALSE(parses(longer));
  std::vector<uint8_t> kind = good;
  for (unsigned value = kLastMessageKind + 1u; value < 256; ++value) {
    kind[38] = static_cast<uint8_t>(value);
    EXPECT_FALSE(parses(kind));
  }
}

// What an atomic works on is bounded before anybody looks at it, and its lengths agree.
TEST(PacketTest, AtomicsThatMakeNoSenseAreRefused) {
  const auto parses = [](AtomicOp op, AtomicType type, uint32_t elements, uint64_t length) {
    DataHeader header = SomeHeader(MessageKind::kAtomic, false);
    header.atomic_op = op;
    header.atomic_type = type;
    header.elements = elements;
    header.length = length;
    const std::vector<uint8_t> bytes = Encoded(header);
    bool bad_checksum = false;
    const auto common = ParseCommon(bytes, &bad_checksum);
    return common && ParseData(*common, bytes).has_value();
  };
  EXPECT_TRUE(parses(AtomicOp::kSum, AtomicType::kUint64, 2, 16));
  EXPECT_TRUE(parses(AtomicOp::kSwapIfEqual, AtomicType::kUint64, 2, 32));
  EXPECT_TRUE(parses(AtomicOp::kRead, AtomicType::kUint64, 2, 0));
  EXPECT_TRUE(parses(AtomicOp::kWrite, AtomicType::kUint8, limits::kMaxAtomicBytes, limits::kMaxAtomicBytes));
  EXPECT_FALSE(parses(AtomicOp::kWrite, AtomicType::kUint8, limits::kMaxAtomicBytes + 1, limits::kMaxAtomicBytes + 1));
  EXPECT_FALSE(parses(AtomicOp::kSum, AtomicType::kUint64, 0, 0));
  EXPECT_FALSE(parses(AtomicOp::kSum, AtomicType::kUint64, 2, 15));
  EXPECT_FALSE(parses(AtomicOp::kSum, AtomicType::kUint64, 2, 32));
  EXPECT_FALSE(parses(AtomicOp::kSum, AtomicType::kUint64, 0x20000001, uint64_t{0x20000001} * 8));
  EXPECT_FALSE(parses(AtomicOp::kBitOr, AtomicType::kDouble, 1, 8));
  EXPECT_FALSE(parses(AtomicOp::kMin, AtomicType::kFloatComplex, 1, 8));
  EXPECT_FALSE(parses(static_cast<AtomicOp>(kLastAtomicOp + 1), AtomicType::kUint64, 1, 8));
  EXPECT_FALSE(parses(AtomicOp::kSum, static_cast<AtomicType>(kLastAtomicType + 1), 1, 8));
}

TEST(PacketTest, AForeignVersionIsTold) {
  std::vector<uint8_t> bytes(kCommonBytes + 4);
  FinishPacket(bytes, PacketType::kInit, 0, 0);
  bytes[0] = static_cast<uint8_t>((kVersion + 1) << 4 | (bytes[0] & 0x0f));
  bool bad_checksum = false;
  EXPECT_FALSE(ParseCommon(bytes, &bad_checksum));
  EXPECT_TRUE(bad_checksum);
}

TEST(PacketTest, SurvivesRandomBytes) {
  Random random(2);
  for (int i = 0; i < 100'000; ++i) {
    std::vector<uint8_t> bytes(random.Below(200));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    if (bytes.size() >= kCommonBytes && random.Chance(0.9)) {
      const PacketType type = static_cast<PacketType>(random.Below(16));
      FinishPacket(bytes, type, static_cast<uint8_t>(random.Next()), static_cast<uint32_t>(random.Next()));
    }
    bool bad_checksum = false;
    if (const auto common = ParseCommon(bytes, &bad_checksum)) ParseData(*common, bytes);
  }
}

// ---- runs

DataHeader Stamped(DataHeader header, const DataStamp& stamp) {
  header.flags = stamp.flags;
  header.payload_crc = stamp.payload_crc;
  header.psn = stamp.psn;
  header.floor_distance = stamp.floor_distance;
  header.offset = stamp.offset;
  header.backlog = stamp.backlog;
  header.tx_total = stamp.tx_total;
  return header;
}

constexpr std::array<uint8_t, 8> kSomeFrame = {6, 0, 0, 0, 1, 2, 3, 4};  // a ping

constexpr DataStamp kSomeStamp = {.flags = kHasImmediate | kLastOfBacklog | kNoPayloadCrc,
                                  .payload_crc = 0x0a0b0c0d,
                                  .psn = 0x1a1b1c1d,
                                  .floor_distance = 0x2a2b,
                                  .offset = 0x3a3b3c3d3e3f,
                                  .backlog = 0x4a4b4c4d,
                                  .tx_total = 0x5a5b5c5d};

TEST(PacketTest, AStampedHeaderIsTheOneThatEncodingGives) {
  for (const MessageKind kind : {MessageKind::kSend, MessageKind::kWrite, MessageKind::kReadResponse}) {
    const DataHeader header = SomeHeader(kind, true);
    std::vector<uint8_t> first(limits::kMaxDataHeaderBytes), stamped(limits::kMaxDataHeaderBytes);
    const size_t bytes = EncodeData(header, first);
    StampData(first.data(), bytes, kSomeStamp, stamped.data());
    stamped.resize(bytes);
    EXPECT_EQ(stamped, Encoded(Stamped(header, kSomeStamp)));
  }
}

TEST(PacketTest, AStampIsReadFromAPacketOfTheRun) {
  DataHeader header = SomeHeader(MessageKind::kSend, true);
  header.flags = kHasImmediate | kAckNow | kNoPayloadCrc;
  const std::vector<uint8_t> first = Encoded(header);
  std::vector<uint8_t> packet = Encoded(Stamped(header, kSomeStamp));
  packet.resize(packet.size() + 100, 1);  // payload
  DataStamp stamp;
  ASSERT_TRUE(ReadStamp(first, packet, &stamp));
  ExpectSame(Stamped(header, stamp), Stamped(header, kSomeStamp));
  EXPECT_EQ(stamp.flags, kSomeStamp.flags);
  packet.resize(first.size() - 1);
  EXPECT_FALSE(ReadStamp(first, packet, &stamp)) << "too short";
}

TEST(PacketTest, WhatDiffersInAnythingElseIsOfNoRun) {
  DataHeader header = SomeHeader(MessageKind::kSend, true);
  header.flags = kHasImmediate;
  const std::vector<uint8_t> first = Encoded(header);
  DataStamp stamp;
  ASSERT_TRUE(ReadStamp(first, first, &stamp));
  const auto follows = [&](const std::function<void(DataHeader&)>& change) {
    DataHeader other = header;
    change(other);
    return ReadStamp(first, Encoded(other), &stamp);
  };
  EXPECT_TRUE(follows([](DataHeader& other) { ++other.psn; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.connection; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.message; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.timestamp; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.cap; }));
  EXPECT_FALSE(follows([](DataHeader& other) { other.kind = MessageKind::kReadResponse; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.length; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.entropy; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.lost_total; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.match_sequence; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.tag; }));
  EXPECT_FALSE(follows([](DataHeader& other) { ++other.immediate; }));
  EXPECT_FALSE(follows([](DataHeader& other) { other.flags |= kRetransmission; }));
  EXPECT_FALSE(follows([](DataHeader& other) { other.flags |= kNoPayloadCrc; }));
  EXPECT_FALSE(follows([](DataHeader& other) { other.flags |= kProtected; }));
  EXPECT_FALSE(follows([](DataHeader& other) { other.frames = std::span<const uint8_t>(kSomeFrame); }));
  for (size_t at = 0; at < first.size(); ++at) {
    std::vector<uint8_t> damaged = first;
    damaged[at] ^= 0x10;
    EXPECT_FALSE(ReadStamp(first, damaged, &stamp)) << at;
  }
}

}  // namespace
}  // namespace paceline::wire
