#include "transport/wire/packet.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include "transport/base/limits.h"
#include "transport/wire/checksum.h"

namespace paceline::wire {
namespace {

constexpr size_t kFlagsAt = 1;
constexpr size_t kCrcAt = kHeaderChecksumAt;
constexpr size_t kMaxHeader = 1024;
constexpr size_t kDataBytes = 52;  // what every data header has behind the common one

// Each field of a stamp, where it stands in the header, and its bytes there.
template <typename Stamp, typename Visit>
constexpr void ForEachField(Stamp& stamp, const Visit& visit) {
  visit(stamp.flags, kFlagsAt, 1);
  visit(stamp.payload_crc, 12, 4);
  visit(stamp.psn, 16, 4);
  visit(stamp.floor_distance, 28, 2);
  visit(stamp.offset, 32, 6);
  visit(stamp.backlog, 48, 4);
  visit(stamp.tx_total, 52, 4);
}

// What is the same in a run of the fields that every data header has: a mask of eight bytes each. Not the header's
// checksum, nor what a stamp has, but for flags that no run changes.
constexpr size_t kFixed = kCommonBytes + kDataBytes;
constexpr auto kSameInRun = [] {
  std::array<uint8_t, kFixed> same{};
  same.fill(0xff);
  const auto clear = [&same](size_t at, size_t bytes) {
    for (size_t i = at; i < at + bytes; ++i) same[i] = 0;
  };
  const DataStamp stamp;
  ForEachField(stamp, [&](const auto&, size_t at, size_t bytes) { clear(at, bytes); });
  clear(kCrcAt, 4);
  same[kFlagsAt] = static_cast<uint8_t>(~(kAckNow | kLastOfBacklog));
  return std::bit_cast<std::array<uint64_t, kFixed / 8>>(same);
}();

// The block that a kind has behind the fields of all, without an immediate; by MessageKind.
constexpr std::array<uint8_t, kLastMessageKind + 1> kKindBytes = {0, 8, 16, 16, 8, 32, 32, 16, 16, 16, 24, 0};

bool HasRemote(MessageKind kind) {
  return kind == MessageKind::kWrite || kind == MessageKind::kAnnounce || kind == MessageKind::kReadRequest ||
         kind == MessageKind::kFetchAdd || kind == MessageKind::kCompareSwap || kind == MessageKind::kAtomic;
}

// False: no such operation, or lengths that do not agree.
bool ParseAtomic(FixedReader<8> fields, DataHeader& header) {
  const uint8_t op = fields.U8(), type = fields.U8(), fetch = fields.U8();
  fields.U8();
  header.elements = fields.U32();
  if (op > kLastAtomicOp || type > kLastAtomicType || fetch > 1 || header.elements == 0) return false;
  header.atomic_op = static_cast<AtomicOp>(op);
  header.atomic_type = static_cast<AtomicType>(type);
  header.fetch = fetch != 0;
  const uint64_t bytes = uint64_t{header.elements} * SizeOf(header.atomic_type);
  return IsAtomicValid(header.atomic_op, header.atomic_type) && bytes <= limits::kMaxAtomicBytes &&
         header.length == bytes * VectorsOf(header.atomic_op);
}

}  // namespace

std::optional<CommonHeader> ParseCommon(std::span<const uint8_t> packet, bool* bad_checksum) {
  *bad_checksum = false;
  Reader reader(packet);
  auto fields = reader.Fixed<kCommonBytes>();
  if (!fields.has_value()) return std::nullopt;
  const uint8_t version_type = fields->U8();
  CommonHeader common;
  common.version = version_type >> 4;
  common.type = static_cast<PacketType>(version_type & 0x0f);
  common.flags = fields->U8();
  common.header_bytes = fields->U16();
  common.connection = fields->U32();
  const uint32_t crc = fields->U32();
  if (common.header_bytes < kCommonBytes || common.header_bytes > packet.size() || common.header_bytes > kMaxHeader) {
    return std::nullopt;
  }
  if (crc != HeaderCrc32c(packet.first(common.header_bytes))) {
    *bad_checksum = true;
    return std::nullopt;
  }
  return common;
}

void BeginPacket(Writer& writer) {
  writer.U64(0);
  writer.U32(0);
}

void FinishPacket(std::span<uint8_t> header, PacketType type, uint8_t flags, uint32_t connection) {
  assert(header.size() <= UINT16_MAX);
  const auto version_type = static_cast<uint8_t>(kVersion << 4 | static_cast<uint8_t>(type));
  FixedWriter<8>(header.data())
      .U64(version_type | uint64_t{flags} << 8 | uint64_t{header.size()} << 16 | uint64_t{connection} << 32);
  RefreshChecksum(header);
}

void BeginProtection(std::span<uint8_t> header) {
  header[1] |= kProtected;
  const auto size = static_cast<uint16_t>(header.size());
  std::memcpy(header.data() + 2, &size, sizeof(size));
  std::memset(header.data() + kCrcAt, 0, 4);
}

void RefreshChecksum(std::span<uint8_t> header) {
  const uint32_t crc = HeaderCrc32c(header);
  std::memcpy(header.data() + kCrcAt, &crc, 4);
}

void CopyWithoutChecksum(std::span<const uint8_t> header, std::span<uint8_t> out) {
  std::memcpy(out.data(), header.data(), header.size());
  std::memset(out.data() + kCrcAt, 0, 4);
}

namespace {

bool Parse(const CommonHeader& common, std::span<const uint8_t> packet, DataHeader& header) {
  const size_t size = common.header_bytes;
  if (size < kCommonBytes + kDataBytes) return false;
  FixedReader<kDataBytes> fields(packet.data() + kCommonBytes);
  header.flags = common.flags;
  header.connection = common.connection;
  header.payload_crc = fields.U32();
  header.psn = fields.U32();
  header.message = fields.U32();
  header.timestamp = fields.U32();
  header.floor_distance = fields.U16();
  header.cap = fields.U16();
  header.offset = fields.U48();
  const uint8_t kind = fields.U8();
  fields.U8();
  header.length = fields.U48();
  header.entropy = fields.U16();
  header.backlog = fields.U32();
  header.tx_total = fields.U32();
  header.lost_total = fields.U32();
  header.match_sequence = fields.U32();
  if (kind > kLastMessageKind) return false;
  header.kind = static_cast<MessageKind>(kind);

  const size_t immediate_bytes = (header.flags & kHasImmediate) != 0 ? 8 : 0;
  const size_t known = kCommonBytes + kDataBytes + kKindBytes[kind] + immediate_bytes;
  if (size < known || (size > known && (header.flags & kHasFrames) == 0)) return false;
  const uint8_t* at = packet.data() + kCommonBytes + kDataBytes;
  if (HasRemote(header.kind)) {
    FixedReader<16> remote(at);
    header.remote_key = remote.U64();
    header.remote_offset = remote.U64();
  }
  switch (header.kind) {
    case MessageKind::kSend:
      header.tag = FixedReader<8>(at).U64();
      break;
    case MessageKind::kFetchAdd:
    case MessageKind::kCompareSwap: {
      FixedReader<16> operands(at + 16);
      header.operand = operands.U64();
      header.compare = operands.U64();
      break;
    }
    case MessageKind::kAtomic:
      if (!ParseAtomic(FixedReader<8>(at + 16), header)) return false;
      break;
    case MessageKind::kReadResponse:
      header.request = FixedReader<4>(at).U32();
      break;
    case MessageKind::kAtomicResponse:
    case MessageKind::kFailure:
      header.request = FixedReader<4>(at).U32();
      header.value = FixedReader<8>(at + 8).U64();
      break;
    case MessageKind::kProbe:
    case MessageKind::kWrite:
    case MessageKind::kReadRequest:
    case MessageKind::kAnnounce:
    case MessageKind::kBundle:
      break;
  }
  if (immediate_bytes > 0) header.immediate = FixedReader<8>(at + kKindBytes[kind]).U64();
  header.frames = packet.subspan(known, size - known);
  return true;
}

}  // namespace

std::optional<DataHeader> ParseData(const CommonHeader& common, std::span<const uint8_t> packet) {
  std::optional<DataHeader> header(std::in_place);  // filled where it stands, as it is large
  if (!Parse(common, packet, *header)) header.reset();
  return header;
}

void StampData(const uint8_t* first, size_t header_bytes, const DataStamp& stamp, uint8_t* out) {
  std::memcpy(out, first, limits::kMaxDataHeaderBytes);  // all that may be there: a copy of known size costs least
  ForEachField(stamp, [out](const auto& field, size_t at, size_t bytes) { std::memcpy(out + at, &field, bytes); });
  RefreshChecksum({out, header_bytes});
}

bool ReadStamp(std::span<const uint8_t> first, std::span<const uint8_t> packet, DataStamp* stamp) {
  const size_t size = first.size();
  if (packet.size() < size || size < kFixed || size % 8 != 0) return false;
  using Two = uint64_t __attribute__((vector_size(16)));
  const auto differ = [&](auto as, size_t at) {
    auto ours = as, other = as;
    std::memcpy(&ours, first.data() + at, sizeof(ours));
    std::memcpy(&other, packet.data() + at, sizeof(other));
    return ours ^ other;
  };
  const auto wrongly = [&](size_t word) {
    return differ(Two{}, word * 8) & Two{kSameInRun[word], kSameInRun[word + 1]};
  };
  static_assert(kSameInRun.size() == 8);
  const Two two = wrongly(0) | wrongly(2) | wrongly(4) | wrongly(6);
  uint64_t others = two[0] | two[1];
  for (size_t at = kFixed; at < size; at += 8) others |= differ(uint64_t{0}, at);
  uint32_t crc;
  std::memcpy(&crc, packet.data() + kCrcAt, 4);
  if (others != 0 || crc != HeaderCrc32c(packet.first(size))) return false;
  ForEachField(*stamp, [packet](auto& field, size_t at, size_t bytes) {
    field = 0;
    std::memcpy(&field, packet.data() + at, bytes);
  });
  return true;
}

size_t EncodeData(const DataHeader& header, std::span<uint8_t> buffer) {
  const auto kind = static_cast<uint8_t>(header.kind);
  const size_t immediate_bytes = (header.flags & kHasImmediate) != 0 ? 8 : 0;
  const size_t known = kCommonBytes + kDataBytes + kKindBytes[kind] + immediate_bytes;
  const size_t size = known + header.frames.size();
  if (size > buffer.size()) return 0;
  // Eight bytes at a time, as the checksum reads them: a read across several stores has to wait for them.
  constexpr uint64_t kLow48 = (uint64_t{1} << 48) - 1;
  FixedWriter<kDataBytes + 4> words(buffer.data() + kCrcAt);
  words.U64(uint64_t{header.payload_crc} << 32);  // behind the checksum, which follows
  words.U64(header.psn | uint64_t{header.message} << 32);
  words.U64(header.timestamp | uint64_t{header.floor_distance} << 32 | uint64_t{header.cap} << 48);
  words.U64((header.offset & kLow48) | uint64_t{kind} << 48);
  words.U64((header.length & kLow48) | uint64_t{header.entropy} << 48);
  words.U64(header.backlog | uint64_t{header.tx_total} << 32);
  words.U64(header.lost_total | uint64_t{header.match_sequence} << 32);
  uint8_t* at = buffer.data() + kCommonBytes + kDataBytes;
  if (HasRemote(header.kind)) {
    FixedWriter<16> remote(at);
    remote.U64(header.remote_key);
    remote.U64(header.remote_offset);
  }
  switch (header.kind) {
    case MessageKind::kSend:
      FixedWriter<8>(at).U64(header.tag);
      break;
    case MessageKind::kFetchAdd:
    case MessageKind::kCompareSwap: {
      FixedWriter<16> operands(at + 16);
      operands.U64(header.operand);
      operands.U64(header.compare);
      break;
    }
    case MessageKind::kAtomic: {
      FixedWriter<8> atomic(at + 16);
      atomic.U8(static_cast<uint8_t>(header.atomic_op));
      atomic.U8(static_cast<uint8_t>(header.atomic_type));
      atomic.U8(header.fetch ? 1 : 0);
      atomic.U8(0);
      atomic.U32(header.elements);
      break;
    }
    case MessageKind::kReadResponse:
      FixedWriter<8>(at).U64(header.request);
      break;
    case MessageKind::kAtomicResponse:
    case MessageKind::kFailure: {
      FixedWriter<16> answer(at);
      answer.U64(header.request);
      answer.U64(header.value);
      break;
    }
    case MessageKind::kProbe:
    case MessageKind::kWrite:
    case MessageKind::kReadRequest:
    case MessageKind::kAnnounce:
    case MessageKind::kBundle:
      break;
  }
  if (immediate_bytes > 0) FixedWriter<8>(at + kKindBytes[kind]).U64(header.immediate);
  if (!header.frames.empty()) std::memcpy(buffer.data() + known, header.frames.data(), header.frames.size());
  const uint8_t flags = static_cast<uint8_t>((header.flags & ~kHasFrames) | (header.frames.empty() ? 0 : kHasFrames));
  FinishPacket(buffer.first(size), PacketType::kData, flags, header.connection);
  return size;
}

}  // namespace paceline::wire
