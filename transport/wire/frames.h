// Control packets: the common header, then frames one after another until `header bytes` is used up. Everything in them
// is state rather than event: a lost control packet heals with the next one. Each frame starts with its type (8 bits).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transport/base/limits.h"
#include "transport/base/telemetry.h"
#include "transport/wire/byte_order.h"

namespace paceline::wire {

enum class FrameType : uint8_t {
  kAck = 1,
  kGrant = 2,
  kDemand = 3,
  kTrimmed = 4,
  kNotReady = 5,
  kPing = 6,
  kPong = 7,
  kClose = 8,
  kCloseAck = 9,
  kAbort = 10,
  kTelemetry = 11,
  kFence = 12,
  kFenced = 13,
};

// Of the arrays in frames only so much is set as their counts say: they are made for every packet.

//  kAck:  type(8) words(8) flags(8) reserved(8) | last psn(32) | its timestamp(32) | delay, ns(32)
//         cumulative psn(32) | base psn(32) | bitmap words(64 each) | mark words(64 each, with flag 1)
//  Bit i of word w: packet base + 64 w + i has arrived. `cumulative`: everything below has. base is a multiple of 64.
struct AckFrame {
  uint32_t last_psn = 0;     // of the packet that arrived last, which need not be the highest
  uint32_t timestamp = 0;    // that packet's timestamp field
  uint32_t delay_nanos = 0;  // from its arrival to this acknowledgement
  uint32_t cumulative = 0;
  uint32_t base = 0;
  uint8_t words = 0;  // at most limits::kSackWords
  bool has_marks = false;
  std::array<uint64_t, limits::kSackWords> received;
  std::array<uint64_t, limits::kSackWords> marked;  // arrived with an ECN mark
};

//  kGrant: type(8) port(8) clears(8) reserved(8) | rate16(16) reserved(16) | clear limit(32) | credit end(64)
//          then `clears` times: message(32) reserved(32) address(64) key(64)
//  Clear-to-send and grant are one frame. `clear limit`: sends with a match sequence below it may go (receives stand
//  ready for as many); the list clears single messages, and tells lanes with remote placement where to write.
struct ClearEntry {
  uint32_t message;
  uint64_t address;  // 0, key 0: send it in packets
  uint64_t key;
};
struct GrantFrame {
  static constexpr size_t kMaxClears = 16;
  uint8_t port = 0;   // receiver's port that the credit is for
  uint16_t rate = 0;  // rate16; 0: none stated
  uint32_t clear_limit = 0;
  uint64_t credit_end = 0;  // bytes, cumulative; all ones: no limit
  uint8_t clears = 0;
  std::array<ClearEntry, kMaxClears> clear;
};

//  kDemand: type(8) port(8) cap rate16(16) | tx total(32) | lost total(32) | backlog, 64 B(32)
//  What a data header says of the flow, when no data may be sent. The receiver answers with what of a
//  grant frame the sender does not know.
struct DemandFrame {
  uint8_t port = 0;
  uint16_t cap = 0;
  uint32_t tx_total = 0;
  uint32_t lost_total = 0;
  uint32_t backlog = 0;
};

//  kTrimmed: type(8) count(8) reserved(16) | psn(32) each
struct TrimmedFrame {
  static constexpr size_t kMaxPsns = 32;
  uint8_t count = 0;
  std::array<uint32_t, kMaxPsns> psns;
};

//  kTelemetry: type(8) port(8) hops(8) reserved(8), then `hops` times:
//          link(32) | queue, bytes(32) | sent, bytes(32) | time, ns(32) | rate16(16) reserved(16)
//  What the network wrote into the newest packet that came to the receiver's `port` and had asked for it. Stands before
//  the Ack of the same control packet.
struct TelemetryFrame {
  uint8_t port = 0;
  uint8_t hops = 0;  // at most limits::kMaxTelemetryHops
  std::array<HopTelemetry, limits::kMaxTelemetryHops> hop{};
};

//  kFence: type(8) port(8) reserved(16) | end psn(32) | from psn(32)
//  Asks that no write to the receiver's `port` with a psn below `end` is placed any more. `from`: what the answer is to
//  begin with, a multiple of 64.
struct FenceFrame {
  uint8_t port = 0;
  uint32_t end = 0;
  uint32_t from = 0;
};

//  kFenced: type(8) port(8) words(8) reserved(8) | end psn(32) | from psn(32) | bitmap words(64 each)
//  It is so. Bit i of word w: packet from + 64 w + i has arrived; of those below `end` for that port, others never
//  will.
struct FencedFrame {
  uint8_t port = 0;
  uint8_t words = 0;  // at most limits::kFencedWords
  uint32_t end = 0;
  uint32_t from = 0;
  std::array<uint64_t, limits::kFencedWords> arrived;
};

//  kNotReady: type(8) reserved(24) | message(32): hold this send until it is cleared by name.
//  kPing, kPong: type(8) reserved(24) | value(32): a pong echoes its ping.
//  kClose, kCloseAck, kAbort: type(8) reserved(8) reason(16), see CloseReason.

// Calls one method per frame; the wire layer knows nothing of what they do.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  virtual void OnAck(const AckFrame& frame) = 0;
  virtual void OnGrant(const GrantFrame& frame) = 0;
  virtual void OnDemand(const DemandFrame& frame) = 0;
  virtual void OnTrimmed(const TrimmedFrame& frame) = 0;
  virtual void OnTelemetry(const TelemetryFrame& frame) = 0;
  virtual void OnFence(const FenceFrame& frame) = 0;
  virtual void OnFenced(const FencedFrame& frame) = 0;
  virtual void OnNotReady(uint32_t message) = 0;
  virtual void OnPing(uint32_t value) = 0;
  virtual void OnPong(uint32_t value) = 0;
  virtual void OnClose(uint16_t reason) = 0;
  virtual void OnCloseAck(uint16_t reason) = 0;
  virtual void OnAbort(uint16_t reason) = 0;
};

// Parses all frames in `body` (the packet behind its common header), then hands them over in order; false, with nothing
// handed over, when any is malformed.
bool ParseFrames(std::span<const uint8_t> body, FrameHandler& handler);

void WriteAck(Writer& writer, const AckFrame& frame);
void WriteGrant(Writer& writer, const GrantFrame& frame);
void WriteDemand(Writer& writer, const DemandFrame& frame);
void WriteTrimmed(Writer& writer, const TrimmedFrame& frame);
void WriteTelemetry(Writer& writer, const TelemetryFrame& frame);
void WriteFence(Writer& writer, const FenceFrame& frame);
void WriteFenced(Writer& writer, const FencedFrame& frame);
void WriteValue(Writer& writer, FrameType type, uint32_t value);    // kNotReady, kPing, kPong
void WriteReason(Writer& writer, FrameType type, uint16_t reason);  // kClose, kCloseAck, kAbort

// Bytes that the frame will take.
inline size_t AckBytes(const AckFrame& frame) { return 24 + frame.words * (frame.has_marks ? 16u : 8u); }
inline size_t GrantBytes(const GrantFrame& frame) { return 20 + frame.clears * 24u; }
inline constexpr size_t kDemandBytes = 16;
inline constexpr size_t kFenceBytes = 12;
inline size_t FencedBytes(const FencedFrame& frame) { return 12 + frame.words * 8u; }
inline constexpr size_t kMostFencedBytes = 12 + limits::kFencedWords * 8;
inline size_t TelemetryBytes(const TelemetryFrame& frame) { return 4 + frame.hops * 20u; }

}  // namespace paceline::wire
