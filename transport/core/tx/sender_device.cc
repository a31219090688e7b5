// Messages whose payload is in memory of a GPU: a card reads it where it is, or the driver copies it for a packet.
#include "transport/core/tx/sender.h"

namespace paceline {

uint64_t Sender::DeviceKey(const TxMessage& message, uint32_t local_port) const {
  const Region* region = context_->memory.Find(message.region);
  return region == nullptr ? 0 : region->lane_keys[local_port];
}

bool Sender::LeaveToCard(const TxMessage& message, uint32_t local_port, Time now) {
  if (ShouldPlace(message, local_port)) return false;
  uint8_t placing = 0;
  for (const Port& other : context_->ports) {
    if (other.up && MayUse(other.index, now) && ShouldPlace(message, other.index)) {
      placing |= static_cast<uint8_t>(1u << other.index);
    }
  }
  state_->ready_ports |= placing;
  return placing != 0;
}

bool Sender::IsReadByCard(const Packet& packet) const {
  const TxMessage& message = *packet.message;
  const bool may_be_late = packet.retransmission || packet.kind != Outstanding::Kind::kSegment;
  const bool is_lent_out = message.kind == wire::MessageKind::kSend || message.kind == wire::MessageKind::kWrite;
  if (may_be_late || !is_lent_out || context_->trailer_bytes > 0) return false;
  const Region* region = context_->memory.Find(message.region);
  return region != nullptr && (region->lent_ports >> packet.local_port & 1) != 0 &&
         context_->environment->ReadsFromDevice(packet.local_port, packet.payload, packet.bytes);
}

const uint8_t* Sender::CopyFromDevice(const TxMessage& message, uint64_t offset, uint32_t bytes) {
  return context_->device_copies.FromDevice(peer_->local_connection, message.device, message.data + offset, bytes);
}

}  // namespace paceline
