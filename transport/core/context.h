// What all connections of one endpoint share: options, ports, memory, completions, pools. Owned by the endpoint; no
// connection outlives it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cc/congestion_control.h"
#include "transport/base/limits.h"
#include "transport/base/ordered_copy.h"
#include "transport/base/pool.h"
#include "transport/base/random.h"
#include "transport/core/burst_memory.h"
#include "transport/core/completion_queue.h"
#include "transport/core/counters.h"
#include "transport/core/device_copies.h"
#include "transport/core/endpoint.h"
#include "transport/core/memory_table.h"
#include "transport/core/routes.h"
#include "transport/core/rx/message.h"
#include "transport/core/rx/write_fences.h"
#include "transport/core/tx/ack_totals.h"
#include "transport/core/tx/message.h"

namespace paceline {

class Connection;

// One local port with the allocator of its downlink.
struct Port {
  uint32_t index = 0;
  LaneCapabilities capabilities;
  LaneAddress address;
  PortInfo info;
  bool up = true;
  std::unique_ptr<ReceiverController> receiver;  // nullptr: the algorithm needs no credit
  std::vector<Connection*> flow_owner;           // by flow number of `receiver`
  std::vector<uint32_t> free_flows;

  bool sends_bursts() const { return capabilities.burst_segments > 1; }
  // Nobody states the round trip without queues.
  bool measures_rtt() const { return capabilities.base_rtt == Duration(); }
  // The most that the passes of both hosts' engines add to a round trip.
  Duration HostDelay() const {
    constexpr Duration kMost = Duration::Micros(50);
    return std::min(capabilities.delay_error, kMost);
  }
  // What controllers reckon with where `least` is the least round trip measured.
  Duration BaseRtt(Duration least) const { return least + HostDelay(); }
  // `peer`: as known of the connection.
  FlowInfo FlowOf(const FlowInfo& peer) const {
    if (!measures_rtt() || peer.base_rtt == Duration()) return peer;
    return {.remote_group = peer.remote_group, .base_rtt = BaseRtt(peer.base_rtt)};
  }
};

struct CoreContext {
  EndpointOptions options;
  std::unique_ptr<CongestionControl> congestion_control;
  EndpointEnvironment* environment = nullptr;
  EndpointCounters counters;
  Time frames_now, frames_arrived;  // of the packet whose frames are being handled
  AckTotals ack_totals;             // of the acknowledgement among them
  uint32_t trailer_bytes = 0;       // of protection, at the end of every header
  Random random{1};
  MemoryTable memory;
  BurstMemory burst_memory;
  std::vector<uint8_t> padding;  // zeros, as many as any port may have to send
  bool measures_rtt = false;     // a port that hands out credit needs it
  DeviceCopies device_copies{&burst_memory};
  CompletionQueue completions{1};
  std::vector<Port> ports;
  Pool<TxMessage> tx_messages;
  Pool<RxMessage> rx_messages;
  Pool<PostedReceive> posted_receives;
  absl::flat_hash_map<ConnectionId, WriteFences> write_fences;  // of the connections whose peers have asked for any
  uint64_t unexpected_bytes = 0;                                // held for sends without a receive
  uint64_t next_operation = 1;
  uint32_t narrow_connections = 0;  // whose bursts hold more packets than those of their ports
  std::vector<RegionId> rekeyed;    // by RevokePlacement, and who writes there has not been told

  uint32_t data_header_bytes() const { return limits::kMaxDataHeaderBytes + trailer_bytes; }
  // Payload of each packet but a message's last where packets of so many bytes are the largest.
  uint32_t SegmentBytes(uint32_t packet_bytes) const {
    const uint32_t bytes = packet_bytes - data_header_bytes();
    return options.ordered_placement && bytes >= kOrderedLineBytes ? bytes - bytes % kOrderedLineBytes : bytes;
  }

  // How long an acknowledgement of what has come through this port waits at most while more follows.
  Duration AckDelay(const Port& port) const {
    return port.sends_bursts() ? options.max_ack_delay * options.bursts_per_ack : options.max_ack_delay;
  }

  void Complete(const Completion& completion) {
    if (completion.status == OperationStatus::kOk) {
      ++counters.operations_completed;
    } else {
      ++counters.operations_failed;
    }
    completions.Push(completion);
  }

  // ---- receives
  PostedReceive* NewReceive(const ReceiveRequest& request, OperationId id) {
    ++counters.operations_posted;
    PostedReceive* receive = posted_receives.New();
    receive->buffer = request.buffer;
    receive->tag = request.tag;
    receive->ignore = request.ignore;
    receive->user_data = request.user_data;
    receive->operation_id = id;
    receive->source = request.source;
    receive->min_free = request.min_free;
    return receive;
  }
  // The next `bytes`, or what is left, of a buffer for many sends, which ends with its last part once there is less
  // room than it wants. The caller has reserved a completion.
  PostedReceive* NewPart(PostedReceive* whole, uint64_t bytes) {
    PostedReceive* part = posted_receives.New();
    const uint64_t left = whole->buffer.bytes - whole->used;
    part->buffer = whole->buffer;
    part->buffer.data = static_cast<uint8_t*>(whole->buffer.data) + whole->used;
    part->buffer.bytes = std::min(bytes, left);
    part->used = whole->used;
    part->user_data = whole->user_data;
    part->whole = whole;
    whole->used += part->buffer.bytes;
    ++whole->parts;
    whole->retired = whole->buffer.bytes - whole->used < whole->min_free;
    return part;
  }
  // Completes a receive with what `outcome` says of the message. A whole that is cancelled stays until its parts end,
  // as they are still written; the last of them releases the buffer.
  void EndReceive(PostedReceive* receive, Completion&& outcome) {
    PostedReceive* whole = receive->whole;
    outcome.operation = Operation::kReceive;
    outcome.user_data = receive->user_data;
    if (whole != nullptr) {
      outcome.offset = receive->used;
      --whole->parts;
      outcome.released = whole->retired && whole->parts == 0;
      if (outcome.released) {
        if (!whole->cancelled) completions.Unreserve();
        posted_receives.Delete(whole);
      }
    } else {
      outcome.released = receive->parts == 0;
    }
    Complete(outcome);
    if (receive->parts == 0) {
      posted_receives.Delete(receive);
    } else {
      receive->retired = receive->cancelled = true;
    }
  }

  // A receive ends while its sender may still write into it by remote placement: exchanges the region's keys on the
  // lanes, so that what is on its way finds nothing. Writes of other connections under way into the same region find
  // nothing either, and their senders are to be told the new keys. A region open to remote writes keeps its keys: its
  // owner lets peers write at any time.
  void RevokePlacement(RegionId id) {
    const Region* region = memory.Find(id);
    if (region == nullptr || (region->access & kRemoteWrite) != 0) return;
    std::array<uint64_t, limits::kMaxPorts> keys = region->lane_keys;
    for (const Port& port : ports) {
      uint64_t& key = keys[port.index];
      if (key == 0) continue;
      environment->DeregisterMemory(port.index, key);
      key = environment->RegisterMemory(port.index, region->ForLanes());
    }
    memory.SetLaneKeys(id, keys);
    rekeyed.push_back(id);
  }
};

// What both halves of a connection know of the other side.
struct PeerInfo {
  ConnectionId local_connection = kNoConnection;
  ConnectionId peer_connection = kNoConnection;
  uint32_t segment_bytes = 0;
  bool payload_crc : 1 = false;
  bool encrypted : 1 = false;       // what a card would place by itself goes as packets
  bool atomics : 1 = false;         // understands wire::MessageKind::kAtomic
  bool fences : 1 = false;          // answers wire::FenceFrame
  bool bundles : 1 = false;         // understands wire::MessageKind::kBundle
  bool fragments : 1 = false;       // takes fragments of segments
  uint16_t burst_segments : 7 = 1;  // of this size that are cheapest to send together
  uint16_t remote_ports : 4 = 0;
  uint8_t reach = 0;          // bit per local port: those that lead to the peer (Routes::Reach)
  uint8_t ports = kAllPorts;  // bit per local port: those to use while one of them is fit
  FlowInfo flow;              // group, and base round trip as stated, or the least measured
  Routes routes;

  static constexpr uint8_t kAllPorts = 0xff;
  static constexpr uint16_t kMostBurst = 0x7f, kMostRemotePorts = 0xf;  // what the fields hold
  bool prefers_some() const { return ports != kAllPorts; }
  bool reaches(uint32_t local_port) const { return (reach >> local_port & 1) != 0; }
  bool prefers(uint32_t local_port) const { return (ports >> local_port & 1) != 0; }
  // A local port that sends to this port of the peer; its first one when none does.
  uint32_t LocalOf(uint32_t remote_port) const {
    for (uint32_t port = 0; port < limits::kMaxPorts; ++port) {
      if (reaches(port) && routes.remote_of[port] == remote_port) return port;
    }
    return first_port();
  }
  uint32_t first_port() const { return reach == 0 ? 0 : static_cast<uint32_t>(std::countr_zero(reach)); }
};

}  // namespace paceline
