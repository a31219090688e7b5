#include "transport/wire/packet.h"

#include <array>
#include <cstring>

#include "transport/base/limits.h"
#include "transport/wire/checksum.h"

namespace paceline::wire {
namespace {

constexpr size_t kCrcAt = 8;
constexpr size_t kMaxHeader = 1024;
constexpr size_t kDataBytes = 52;  // what every data header has behind the common one

// The checksum of a header whose own field counts as zero.
uint32_t HeaderCrc(std::span<const uint8_t> header) {
  std::array<uint8_t, kMaxHeader> copy;
  CopyWithoutChecksum(header, copy);
  return Crc32c(std::span(copy).first(header.size()));
}

bool HasRemote(MessageKind kind) {
  return kind == MessageKind::kWrite || kind == MessageKind::kAnnounce || kind == MessageKind::kReadRequest ||
         kind == MessageKind::kFetchAdd || kind == MessageKind::kCompareSwap || kind == MessageKind::kAtomic;
}
bool IsWordAtomic(MessageKind kind) { return kind == MessageKind::kFetchAdd || kind == MessageKind::kCompareSwap; }
bool IsAnswer(MessageKind kind) {
  return kind == MessageKind::kReadResponse || kind == MessageKind::kAtomicResponse || kind == MessageKind::kFailure;
}

// False: no such operation, or lengths that do not agree.
bool ParseAtomic(Reader& reader, DataHeader& header) {
  const uint8_t op = reader.U8(), type = reader.U8(), fetch = reader.U8();
  reader.U8();
  header.elements = reader.U32();
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
  if (crc != HeaderCrc(packet.first(common.header_bytes))) {
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
  FixedWriter<kCommonBytes> fields(header.data());
  fields.U8(static_cast<uint8_t>(kVersion << 4 | static_cast<uint8_t>(type)));
  fields.U8(flags);
  fields.U16(static_cast<uint16_t>(header.size()));
  fields.U32(connection);
  RefreshChecksum(header);
}

void BeginProtection(std::span<uint8_t> header) {
  header[1] |= kProtected;
  const auto size = static_cast<uint16_t>(header.size());
  std::memcpy(header.data() + 2, &size, sizeof(size));
  std::memset(header.data() + kCrcAt, 0, 4);
}

void RefreshChecksum(std::span<uint8_t> header) {
  std::memset(header.data() + kCrcAt, 0, 4);
  const uint32_t crc = Crc32c(header);
  std::memcpy(header.data() + kCrcAt, &crc, 4);
}

void CopyWithoutChecksum(std::span<const uint8_t> header, std::span<uint8_t> out) {
  std::memcpy(out.data(), header.data(), header.size());
  std::memset(out.data() + kCrcAt, 0, 4);
}

std::optional<DataHeader> ParseData(const CommonHeader& common, std::span<const uint8_t> packet) {
  Reader reader(packet.first(common.header_bytes));
  reader.Bytes(kCommonBytes);
  auto fields = reader.Fixed<kDataBytes>();
  if (!fields.has_value()) return std::nullopt;
  DataHeader header;
  header.flags = common.flags;
  header.connection = common.connection;
  header.payload_crc = fields->U32();
  header.psn = fields->U32();
  header.message = fields->U32();
  header.timestamp = fields->U32();
  header.floor_distance = fields->U16();
  header.cap = fields->U16();
  header.offset = fields->U48();
  const uint8_t kind = fields->U8();
  fields->U8();
  header.length = fields->U48();
  header.entropy = fields->U16();
  header.backlog = fields->U32();
  header.tx_total = fields->U32();
  header.lost_total = fields->U32();
  header.match_sequence = fields->U32();
  if (kind > kLastMessageKind) return std::nullopt;
  header.kind = static_cast<MessageKind>(kind);
  if (header.kind == MessageKind::kSend) header.tag = reader.U64();
  if (HasRemote(header.kind)) {
    header.remote_key = reader.U64();
    header.remote_offset = reader.U64();
  }
  if (IsWordAtomic(header.kind)) {
    header.operand = reader.U64();
    header.compare = reader.U64();
  }
  if (header.kind == MessageKind::kAtomic && !ParseAtomic(reader, header)) return std::nullopt;
  if (IsAnswer(header.kind)) {
    header.request = reader.U32();
    reader.U32();
    if (header.kind != MessageKind::kReadResponse) header.value = reader.U64();
  }
  if (header.flags & kHasImmediate) header.immediate = reader.U64();
  if ((header.flags & kHasFrames) != 0 && reader.remaining() > 0) header.frames = reader.Bytes(reader.remaining());
  if (reader.failed() || reader.remaining() != 0) return std::nullopt;
  return header;
}

size_t EncodeData(const DataHeader& header, std::span<uint8_t> buffer) {
  Writer writer(buffer);
  BeginPacket(writer);
  auto fields = writer.Fixed<kDataBytes>();
  if (!fields.has_value()) return 0;
  fields->U32(header.payload_crc);
  fields->U32(header.psn);
  fields->U32(header.message);
  fields->U32(header.timestamp);
  fields->U16(header.floor_distance);
  fields->U16(header.cap);
  fields->U48(header.offset);
  fields->U8(static_cast<uint8_t>(header.kind));
  fields->U8(0);
  fields->U48(header.length);
  fields->U16(header.entropy);
  fields->U32(header.backlog);
  fields->U32(header.tx_total);
  fields->U32(header.lost_total);
  fields->U32(header.match_sequence);
  if (header.kind == MessageKind::kSend) writer.U64(header.tag);
  if (HasRemote(header.kind)) {
    writer.U64(header.remote_key);
    writer.U64(header.remote_offset);
  }
  if (IsWordAtomic(header.kind)) {
    writer.U64(header.operand);
    writer.U64(header.compare);
  }
  if (header.kind == MessageKind::kAtomic) {
    writer.U8(static_cast<uint8_t>(header.atomic_op));
    writer.U8(static_cast<uint8_t>(header.atomic_type));
    writer.U8(header.fetch ? 1 : 0);
    writer.U8(0);
    writer.U32(header.elements);
  }
  if (IsAnswer(header.kind)) {
    writer.U32(header.request);
    writer.U32(0);
    if (header.kind != MessageKind::kReadResponse) writer.U64(header.value);
  }
  if (header.flags & kHasImmediate) writer.U64(header.immediate);
  writer.Bytes(header.frames);
  const uint8_t flags = static_cast<uint8_t>((header.flags & ~kHasFrames) | (header.frames.empty() ? 0 : kHasFrames));
  FinishPacket(buffer.first(writer.size()), PacketType::kData, flags, header.connection);
  return writer.size();
}

}  // namespace paceline::wire
