#include "transport/wire/frames.h"

#include "transport/wire/rate16.h"

namespace paceline::wire {
namespace {

constexpr uint8_t kAckHasMarks = 1;
constexpr size_t kAckBytes = 24;  // with its type, without the bitmaps

bool ReadAck(Reader& reader, AckFrame* frame) {
  auto fields = reader.Fixed<kAckBytes - 1>();
  if (!fields.has_value()) return false;
  frame->words = fields->U8();
  const uint8_t flags = fields->U8();
  fields->U8();
  frame->has_marks = (flags & kAckHasMarks) != 0;
  frame->last_psn = fields->U32();
  frame->timestamp = fields->U32();
  frame->delay_nanos = fields->U32();
  frame->cumulative = fields->U32();
  frame->base = fields->U32();
  if (frame->words > limits::kSackWords || frame->base % 64 != 0) return false;
  for (uint8_t i = 0; i < frame->words; ++i) frame->received[i] = reader.U64();
  if (frame->has_marks) {
    for (uint8_t i = 0; i < frame->words; ++i) frame->marked[i] = reader.U64();
  }
  return !reader.failed();
}

bool ReadGrant(Reader& reader, GrantFrame* frame) {
  frame->port = reader.U8();
  frame->clears = reader.U8();
  reader.U8();
  frame->rate = reader.U16();
  reader.U16();
  frame->clear_limit = reader.U32();
  frame->credit_end = reader.U64();
  if (frame->clears > GrantFrame::kMaxClears || frame->port >= limits::kMaxPorts) return false;
  for (uint8_t i = 0; i < frame->clears; ++i) {
    frame->clear[i].message = reader.U32();
    reader.U32();
    frame->clear[i].address = reader.U64();
    frame->clear[i].key = reader.U64();
  }
  return !reader.failed();
}

bool ReadDemand(Reader& reader, DemandFrame* frame) {
  frame->port = reader.U8();
  frame->cap = reader.U16();
  frame->tx_total = reader.U32();
  frame->lost_total = reader.U32();
  frame->backlog = reader.U32();
  return !reader.failed() && frame->port < limits::kMaxPorts;
}

bool ReadTrimmed(Reader& reader, TrimmedFrame* frame) {
  frame->count = reader.U8();
  reader.U16();
  if (frame->count > TrimmedFrame::kMaxPsns) return false;
  for (uint8_t i = 0; i < frame->count; ++i) frame->psns[i] = reader.U32();
  return !reader.failed();
}

bool ReadTelemetry(Reader& reader, TelemetryFrame* frame) {
  frame->port = reader.U8();
  frame->hops = reader.U8();
  reader.U8();
  if (frame->hops > limits::kMaxTelemetryHops || frame->port >= limits::kMaxPorts) return false;
  for (uint8_t i = 0; i < frame->hops; ++i) {
    HopTelemetry& hop = frame->hop[i];
    hop.link = reader.U32();
    hop.queue_bytes = reader.U32();
    hop.sent_bytes = reader.U32();
    hop.time_nanos = reader.U32();
    hop.rate = DecodeRate(reader.U16());
    reader.U16();
  }
  return !reader.failed();
}

bool ReadFence(Reader& reader, FenceFrame* frame) {
  frame->port = reader.U8();
  reader.U16();
  frame->end = reader.U32();
  frame->from = reader.U32();
  return !reader.failed() && frame->port < limits::kMaxPorts && frame->from % 64 == 0;
}

bool ReadFenced(Reader& reader, FencedFrame* frame) {
  frame->port = reader.U8();
  frame->words = reader.U8();
  reader.U8();
  frame->end = reader.U32();
  frame->from = reader.U32();
  if (frame->words > limits::kFencedWords || frame->port >= limits::kMaxPorts || frame->from % 64 != 0) return false;
  for (uint8_t i = 0; i < frame->words; ++i) frame->arrived[i] = reader.U64();
  return !reader.failed();
}

uint32_t ReadValue(Reader& reader) {
  reader.U8();
  reader.U16();
  return reader.U32();
}

uint16_t ReadReason(Reader& reader) {
  reader.U8();
  return reader.U16();
}

// One pass over the frames; without a handler it only checks.
bool Walk(std::span<const uint8_t> body, FrameHandler* handler) {
  Reader reader(body);
  while (reader.remaining() > 0) {
    switch (static_cast<FrameType>(reader.U8())) {
      case FrameType::kAck: {
        AckFrame frame;
        if (!ReadAck(reader, &frame)) return false;
        if (handler != nullptr) handler->OnAck(frame);
        break;
      }
      case FrameType::kGrant: {
        GrantFrame frame;
        if (!ReadGrant(reader, &frame)) return false;
        if (handler != nullptr) handler->OnGrant(frame);
        break;
      }
      case FrameType::kDemand: {
        DemandFrame frame;
        if (!ReadDemand(reader, &frame)) return false;
        if (handler != nullptr) handler->OnDemand(frame);
        break;
      }
      case FrameType::kTrimmed: {
        TrimmedFrame frame;
        if (!ReadTrimmed(reader, &frame)) return false;
        if (handler != nullptr) handler->OnTrimmed(frame);
        break;
      }
      case FrameType::kTelemetry: {
        TelemetryFrame frame;
        if (!ReadTelemetry(reader, &frame)) return false;
        if (handler != nullptr) handler->OnTelemetry(frame);
        break;
      }
      case FrameType::kFence: {
        FenceFrame frame;
        if (!ReadFence(reader, &frame)) return false;
        if (handler != nullptr) handler->OnFence(frame);
        break;
      }
      case FrameType::kFenced: {
        FencedFrame frame;
        if (!ReadFenced(reader, &frame)) return false;
        if (handler != nullptr) handler->OnFenced(frame);
        break;
      }
      case FrameType::kNotReady: {
        const uint32_t message = ReadValue(reader);
        if (reader.failed()) return false;
        if (handler != nullptr) handler->OnNotReady(message);
        break;
      }
      case FrameType::kPing: {
        const uint32_t value = ReadValue(reader);
        if (reader.failed()) return false;
        if (handler != nullptr) handler->OnPing(value);
        break;
      }
      case FrameType::kPong: {
        const uint32_t value = ReadValue(reader);
        if (reader.failed()) return false;
        if (handler != nullptr) handler->OnPong(value);
        break;
      }
      case FrameType::kClose: {
        const uint16_t reason = ReadReason(reader);
        if (reader.failed()) return false;
        if (handler != nullptr) handler->OnClose(reason);
        break;
      }
      case FrameType::kCloseAck: {
        const uint16_t reason = ReadReason(reader);
        if (reader.failed()) return false;
        if (handler != nullptr) handler->OnCloseAck(reason);
        break;
      }
      case FrameType::kAbort: {
        const uint16_t reason = ReadReason(reader);
        if (reader.failed()) return false;
        if (handler != nullptr) handler->OnAbort(reason);
        break;
      }
      default:
        return false;
    }
  }
  return !reader.failed();
}

}  // namespace

bool ParseFrames(std::span<const uint8_t> body, FrameHandler& handler) {
  return Walk(body, nullptr) && Walk(body, &handler);
}

void WriteAck(Writer& writer, const AckFrame& frame) {
  auto fields = writer.Fixed<kAckBytes>();
  if (!fields.has_value()) return;
  fields->U8(static_cast<uint8_t>(FrameType::kAck));
  fields->U8(frame.words);
  fields->U8(frame.has_marks ? kAckHasMarks : 0);
  fields->U8(0);
  fields->U32(frame.last_psn);
  fields->U32(frame.timestamp);
  fields->U32(frame.delay_nanos);
  fields->U32(frame.cumulative);
  fields->U32(frame.base);
  for (uint8_t i = 0; i < frame.words; ++i) writer.U64(frame.received[i]);
  if (frame.has_marks) {
    for (uint8_t i = 0; i < frame.words; ++i) writer.U64(frame.marked[i]);
  }
}

void WriteGrant(Writer& writer, const GrantFrame& frame) {
  writer.U8(static_cast<uint8_t>(FrameType::kGrant));
  writer.U8(frame.port);
  writer.U8(frame.clears);
  writer.U8(0);
  writer.U16(frame.rate);
  writer.U16(0);
  writer.U32(frame.clear_limit);
  writer.U64(frame.credit_end);
  for (uint8_t i = 0; i < frame.clears; ++i) {
    writer.U32(frame.clear[i].message);
    writer.U32(0);
    writer.U64(frame.clear[i].address);
    writer.U64(frame.clear[i].key);
  }
}

void WriteDemand(Writer& writer, const DemandFrame& frame) {
  writer.U8(static_cast<uint8_t>(FrameType::kDemand));
  writer.U8(frame.port);
  writer.U16(frame.cap);
  writer.U32(frame.tx_total);
  writer.U32(frame.lost_total);
  writer.U32(frame.backlog);
}

void WriteTrimmed(Writer& writer, const TrimmedFrame& frame) {
  writer.U8(static_cast<uint8_t>(FrameType::kTrimmed));
  writer.U8(frame.count);
  writer.U16(0);
  for (uint8_t i = 0; i < frame.count; ++i) writer.U32(frame.psns[i]);
}

void WriteTelemetry(Writer& writer, const TelemetryFrame& frame) {
  writer.U8(static_cast<uint8_t>(FrameType::kTelemetry));
  writer.U8(frame.port);
  writer.U8(frame.hops);
  writer.U8(0);
  for (uint8_t i = 0; i < frame.hops; ++i) {
    const HopTelemetry& hop = frame.hop[i];
    writer.U32(hop.link);
    writer.U32(hop.queue_bytes);
    writer.U32(hop.sent_bytes);
    writer.U32(hop.time_nanos);
    writer.U16(EncodeRate(hop.rate));
    writer.U16(0);
  }
}

void WriteFence(Writer& writer, const FenceFrame& frame) {
  writer.U8(static_cast<uint8_t>(FrameType::kFence));
  writer.U8(frame.port);
  writer.U16(0);
  writer.U32(frame.end);
  writer.U32(frame.from);
}

void WriteFenced(Writer& writer, const FencedFrame& frame) {
  writer.U8(static_cast<uint8_t>(FrameType::kFenced));
  writer.U8(frame.port);
  writer.U8(frame.words);
  writer.U8(0);
  writer.U32(frame.end);
  writer.U32(frame.from);
  for (uint8_t i = 0; i < frame.words; ++i) writer.U64(frame.arrived[i]);
}

void WriteValue(Writer& writer, FrameType type, uint32_t value) {
  writer.U8(static_cast<uint8_t>(type));
  writer.U8(0);
  writer.U16(0);
  writer.U32(value);
}

void WriteReason(Writer& writer, FrameType type, uint16_t reason) {
  writer.U8(static_cast<uint8_t>(type));
  writer.U8(0);
  writer.U16(reason);
}

}  // namespace paceline::wire
