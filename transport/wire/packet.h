// The headers of protocol version 1. docs/protocol.md is the specification; the bit diagrams stand above each struct.
// All fields are little endian. Parsing never reads past its input and never trusts a length.
//
//  Every packet starts with the common header:
//
//   0       1       2       3       4               8
//   +-------+-------+---------------+---------------+---------------+
//   |ver|typ| flags | header bytes  | connection    | header crc    |
//   +-------+-------+---------------+---------------+---------------+
//
//  version 4 bits (1) | type 4 bits; `header bytes` counts everything before the payload; `connection` is the number
//  that the *receiver* of the packet gave its side (0: none yet); the CRC covers the header with its own field as zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/base/atomic_operation.h"
#include "transport/wire/byte_order.h"

namespace paceline::wire {

inline constexpr uint8_t kVersion = 1;
inline constexpr size_t kCommonBytes = 12;

enum class PacketType : uint8_t {
  kInvalid = 0,
  kInit = 1,     // handshake.h
  kCookie = 2,   // handshake.h
  kAccept = 3,   // handshake.h
  kRefuse = 4,   // handshake.h
  kData = 5,     // below
  kControl = 6,  // frames.h
  kAsk = 7,      // presence.h
  kGone = 8,     // presence.h
};

// Flags of the common header.
enum Flag : uint8_t {
  kAckNow = 1,          // data: acknowledge without delay
  kHasImmediate = 2,    // data: the immediate field counts
  kNoPayloadCrc = 4,    // data: payload crc is not set (phantom, read by a card alone, or switched off)
  kRetransmission = 8,  // data: this segment was sent before
  kLastOfBacklog = 16,  // data: nothing more to send after it for now, or all of its message
  kHasFrames = 32,      // data: control frames (frames.h) end the header
  kProtected = 128,     // data and control: the header ends with a trailer that authenticates the packet
};

struct CommonHeader {
  uint8_t version = kVersion;
  PacketType type = PacketType::kInvalid;
  uint8_t flags = 0;
  uint16_t header_bytes = 0;
  uint32_t connection = 0;
};

// nullopt: too short, impossible length or wrong checksum (which, tells *bad_checksum). A foreign version is returned
// as it is, its checksum checked too: the layout of these 12 bytes is the same in every version.
std::optional<CommonHeader> ParseCommon(std::span<const uint8_t> packet, bool* bad_checksum);

// Reserves the common header at the front; Finish writes it, with lengths and checksum, when the rest is there.
void BeginPacket(Writer& writer);
void FinishPacket(std::span<uint8_t> header, PacketType type, uint8_t flags, uint32_t connection);

// A finished packet whose header shall end with a trailer: `header` is the whole with the trailer's room. this makes it
// say so and leaves the checksum as zero, as which a trailer covers it.
void BeginProtection(std::span<uint8_t> header);
// The checksum anew, after something in the header has changed.
void RefreshChecksum(std::span<uint8_t> header);
// Copies a header with its checksum as zero. `out`: at least as large.
void CopyWithoutChecksum(std::span<const uint8_t> header, std::span<uint8_t> out);

// What a data packet belongs to.
enum class MessageKind : uint8_t {
  kProbe = 0,  // no message: asks for an acknowledgement
  kSend = 1,
  kWrite = 2,
  kReadRequest = 3,  // no payload; length is what is asked for
  kReadResponse = 4,
  kFetchAdd = 5,        // no payload
  kCompareSwap = 6,     // no payload
  kAtomicResponse = 7,  // no payload; value
  kFailure = 8,         // no payload; the request named by `request` was refused with `value` as status
  kAnnounce = 9,        // a write that travels by remote placement: key, offset, length and immediate, no payload
  kAtomic = 10,         // payload: the vectors that its operation needs. Answered by kReadResponse if it fetches
  kBundle = 11,  // payload: several sends (bundle.h), of which the header names the first; offset 0, length all of it
};
inline constexpr uint8_t kLastMessageKind = 11;

//  Data header, 64 bytes with the common header, then the block of its kind:
//
//  12 payload crc (32)      16 packet sequence number (32)   20 message (32)         24 timestamp, ns (32)
//  28 floor distance (16)   30 sender cap, rate16            32 offset (48)          38 kind (8)  39 reserved (8)
//  40 message length (48)   46 entropy (16)                  48 backlog, 64 B (32)   52 tx total, bytes (32)
//  56 lost total, bytes (32)  60 match sequence (32)
//
//  kSend:            64 tag (64)            72 immediate (64), with kHasImmediate
//  kWrite, kAnnounce: 64 remote key (64)    72 remote offset (64)   80 immediate (64), with kHasImmediate
//  kReadRequest:     64 remote key (64)     72 remote offset (64)
//  kReadResponse:    64 request (32)        68 reserved (32)
//  kFetchAdd, kCompareSwap: 64 remote key (64)   72 remote offset (64)   80 operand (64)   88 compare (64)
//  kAtomicResponse, kFailure: 64 request (32)    68 reserved (32)        72 value (64)
//  kAtomic:          64 remote key (64)     72 remote offset (64)
//                    80 operation (8)   81 type (8)   82 fetch (8), 0 or 1   83 reserved (8)   84 elements (32)
//  then, with kHasFrames: control frames up to the header's end
struct DataHeader {
  uint8_t flags = 0;
  uint32_t connection = 0;
  uint32_t payload_crc = 0;
  uint32_t psn = 0;             // low bits of the packet sequence number: one space for all paths, never used twice
  uint32_t message = 0;         // low bits of the message number of this direction
  uint32_t timestamp = 0;       // sender's clock, low bits
  uint16_t floor_distance = 0;  // psn - oldest psn that the sender still waits for
  uint16_t cap = 0;             // rate16: most that the sender can give this flow
  uint64_t offset = 0;          // of the payload in its message
  MessageKind kind = MessageKind::kProbe;
  uint64_t length = 0;          // of the message
  uint16_t entropy = 0;         // of the path, for tracing
  uint32_t backlog = 0;         // cleared bytes not yet sent, in units of 64, rounded up, saturating
  uint32_t tx_total = 0;        // payload bytes transmitted on this flow, this packet included, low bits
  uint32_t lost_total = 0;      // payload bytes found lost on this flow, low bits
  uint32_t match_sequence = 0;  // kSend, kBundle: its number among the sends of this direction
  // By kind:
  uint64_t tag = 0;
  uint64_t remote_key = 0, remote_offset = 0;
  uint64_t immediate = 0;
  uint64_t operand = 0, compare = 0;
  AtomicOp atomic_op = AtomicOp::kMin;
  AtomicType atomic_type = AtomicType::kInt8;
  bool fetch = false;     // kAtomic: the values before are wanted
  uint32_t elements = 0;  // kAtomic; parsed: fits `length` and limits::kMaxAtomicBytes
  uint32_t request = 0;   // message number of the request that this answers
  uint64_t value = 0;
  // Control frames that ride on the packet. Parsed: bytes of the packet, not looked at yet. Encoded: whole frames, or
  // nothing; they set the flag.
  std::span<const uint8_t> frames;
};

// Backlogs travel in units of 64 bytes.
inline uint32_t EncodeBacklog(uint64_t bytes) {
  return static_cast<uint32_t>(std::min<uint64_t>((bytes + 63) / 64, 0xffffffff));
}
inline uint64_t DecodeBacklog(uint32_t units) { return static_cast<uint64_t>(units) * 64; }

// `common` as ParseCommon gave it, `packet` from its first byte. nullopt: malformed.
std::optional<DataHeader> ParseData(const CommonHeader& common, std::span<const uint8_t> packet);

// Returns the bytes written; `buffer` holds at least limits::kMaxDataHeaderBytes and the frames.
size_t EncodeData(const DataHeader& header, std::span<uint8_t> buffer);

// What differs between the packets of one message that leave together on one path, a run. Fields as in DataHeader.
struct DataStamp {
  uint8_t flags = 0;
  uint32_t payload_crc = 0;
  uint32_t psn = 0;
  uint16_t floor_distance = 0;
  uint64_t offset = 0;
  uint32_t backlog = 0;
  uint32_t tx_total = 0;
};
inline DataStamp StampOf(const DataHeader& header) {
  return {.flags = header.flags,
          .payload_crc = header.payload_crc,
          .psn = header.psn,
          .floor_distance = header.floor_distance,
          .offset = header.offset,
          .backlog = header.backlog,
          .tx_total = header.tx_total};
}
// Writes the header of another packet of the run, of `header_bytes` as its first, which EncodeData wrote without
// frames. Both buffers hold limits::kMaxDataHeaderBytes.
void StampData(const uint8_t* first, size_t header_bytes, const DataStamp& stamp, uint8_t* out);
// The other way: what `packet` has, if it is of the run that the packet with the header `first` began. `first` is one
// that was parsed, without frames and protection. False: it is not, or its checksum is wrong.
bool ReadStamp(std::span<const uint8_t> first, std::span<const uint8_t> packet, DataStamp* stamp);

}  // namespace paceline::wire
