// An output port of a switch or a NIC: the queues in front of a link and the link's state, one cache line of it.
//
// Thread rule: owned by Fabric; links of the lists are Packet::next.
#pragma once

#include <cstdint>

#include "transport/lane/sim/event_queue.h"
#include "transport/lane/sim/packet_pool.h"
#include "transport/lane/sim/sim_time.h"

namespace paceline::sim {

// A first-in first-out list of packets through Packet::next.
struct PacketList {
  uint32_t head = kNoPacket;
  uint32_t tail = kNoPacket;

  bool empty() const { return head == kNoPacket; }
  void Append(PacketPool& pool, uint32_t packet) {
    pool[packet].next = kNoPacket;
    if (head == kNoPacket) {
      head = packet;
    } else {
      pool[tail].next = packet;
    }
    tail = packet;
  }
  uint32_t TakeFront(PacketPool& pool) {
    const uint32_t packet = head;
    head = pool[packet].next;
    return packet;
  }
};

struct Port {
  PacketList data;
  PacketList control;
  uint32_t data_bytes = 0;     // waiting
  uint32_t control_bytes = 0;  // waiting
  uint32_t sending_data = 0;   // wire bytes of the data packet on its way out until busy_until, 0: none
  uint32_t sent_bytes = 0;     // on the wire since the start, modulo 2^32
  Picos busy_until = 0;
  Picos last_change = 0;  // of the data queue, for its histogram over time
  uint32_t to_node = 0;
  uint32_t peak_bytes = 0;  // most of occupancy() in the current interval of the series
  // Event lines for a full packet and for a header: it arrives, and the port is free again. kNoLine: see LinkTiming.
  uint8_t arrive_full = EventQueue::kNoLine;
  uint8_t arrive_header = EventQueue::kNoLine;
  uint8_t free_full = EventQueue::kNoLine;
  uint8_t free_header = EventQueue::kNoLine;
  bool waiting = false;    // packets wait, and an event at busy_until is scheduled
  bool disturbed = false;  // faults may befall what crosses the link
  bool paused = false;     // data must wait, by order of the other end
  uint8_t unused = 0;

  uint32_t occupancy() const { return data_bytes + sending_data; }
  // Of both queues, and the data packet on its way out; after its last bit has left `sending_data` is stale.
  uint32_t waiting_bytes(Picos now) const { return data_bytes + control_bytes + (busy_until > now ? sending_data : 0); }
};
static_assert(sizeof(Port) == 64);

// What is needed of a link for packets of odd sizes and for damaged links.
struct LinkTiming {
  uint64_t bits_per_second = 0;
  Picos delay = 0;
};

}  // namespace paceline::sim
