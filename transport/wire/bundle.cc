#include "transport/wire/bundle.h"

#include <cstring>

#include "transport/wire/byte_order.h"

namespace paceline::wire {
namespace {

constexpr size_t kFixedBytes = BundledBytes(0, false);
constexpr uint8_t kImmediate = 1;

}  // namespace

uint8_t* WriteBundled(const BundledSend& send, uint8_t* to) {
  FixedWriter<kFixedBytes> fields(to);
  fields.U16(static_cast<uint16_t>(send.data.size()));
  fields.U8(send.has_immediate ? kImmediate : 0);
  fields.U8(0);
  fields.U64(send.tag);
  to += kFixedBytes;
  if (send.has_immediate) {
    FixedWriter<8>(to).U64(send.immediate);
    to += 8;
  }
  std::memcpy(to, send.data.data(), send.data.size());
  return to + send.data.size();
}

bool ReadBundled(std::span<const uint8_t>& bundle, BundledSend* send) {
  if (bundle.size() < kFixedBytes) return false;
  FixedReader<kFixedBytes> fields(bundle.data());
  const size_t bytes = fields.U16();
  const uint8_t flags = fields.U8();
  fields.U8();
  send->tag = fields.U64();
  send->has_immediate = (flags & kImmediate) != 0;
  if (bytes == 0 || (flags & ~kImmediate) != 0 || bundle.size() < BundledBytes(bytes, send->has_immediate))
    return false;
  bundle = bundle.subspan(kFixedBytes);
  if (send->has_immediate) {
    send->immediate = FixedReader<8>(bundle.data()).U64();
    bundle = bundle.subspan(8);
  }
  send->data = bundle.first(bytes);
  bundle = bundle.subspan(bytes);
  return true;
}

bool IsBundle(std::span<const uint8_t> bundle) {
  if (bundle.empty()) return false;
  BundledSend send;
  while (ReadBundled(bundle, &send)) {
  }
  return bundle.empty();
}

}  // namespace paceline::wire
