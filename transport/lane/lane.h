// A lane is one network port and one way of driving it: kernel UDP sockets, a simulated NIC, an RDMA card, ... The
// protocol core never includes a lane; the engine hands bursts of segments back and forth between the two, and a lane
// carries their bytes without looking into them. What a lane can do it states in LaneCapabilities; nobody asks for its
// name to decide what to do.
//
// Two kinds of segments travel:
//   - packets: a header (and a payload behind it) that arrives at the peer's lane as it was sent. Every lane has them.
//   - writes: payload placed by the remote card straight into registered memory; the peer's lane tells only that it
//     happened, with 32 bits of immediate. Only lanes with `remote_placement` have them.
//
// Thread rule: a lane belongs to one engine and is called from the thread that polls that engine; only
// LaneWaker-style descriptors (`wait_descriptor`) may be polled elsewhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "transport/base/lane_address.h"
#include "transport/base/telemetry.h"
#include "transport/base/time.h"

namespace paceline {

// Of a path whose MTU is 1,500 (IPv4 and UDP headers), which is that of most networks, whatever a port may send.
inline constexpr uint32_t kUsualPacketBytes = 1472;

// Which packets the network may send ahead of others on the same path: a packet that may overtake tells nothing of
// those that it may have overtaken.
enum class Overtaking : uint8_t {
  kNone,
  kControl,  // packets without payload (TxSegment::control): a queue of their own in switches
  kShort,    // short packets, whatever is in them: routers that let acknowledgements go first
};

struct LaneCapabilities {
  uint32_t max_packet_bytes = 0;  // header and payload of the largest packet
  bool remote_placement = false;  // takes writes: the remote card places data by itself
  uint32_t max_write_bytes = 0;   // largest write; 0 without remote_placement
  bool ecn = false;               // congestion marks are set on the way and seen on arrival
  bool rx_timestamps = false;     // RxSegment::received_at is the time of arrival, however long before the poll
  Duration delay_error;    // time that hosts may add to a one-way delay seen over this lane (software timestamps)
  Duration send_ahead;     // TxSegment::leaves_at is heeded, so far ahead; zero: all leaves at once. Not with
                           // remote_placement
  bool trimming = false;   // the network may cut payloads and deliver the header
  bool telemetry = false;  // switches report on themselves in packets that ask for it
  bool keeps_path_order =
      true;  // segments of one (peer, entropy) arrive in the order in which they were sent, if at all
  Overtaking overtaking = Overtaking::kNone;
  bool path_may_be_narrower = false;  // links on the way may take less than max_packet_bytes, and drop what is larger
  bool this_machine_only = false;     // nobody on another machine can send to this lane
  bool shares_memory = false;         // whom it reaches, no other lane reaches faster: peers of this host
  uint32_t least_guessed_bytes = 0;   // of payloads whose place is worth guessing (Lane::GuessPlacement); 0: none is
  bool costly_receive = false;        // Receive makes a system call, even when there is nothing
  bool reads_later = false;  // payloads that stay (TxSegment::payload_stays) in memory that was lent to the lane are
                             // read after Send has taken them
  bool keeps_bytes_intact = false;    // nothing on the way damages bits: a checksum over payloads would find nothing
  uint32_t burst_segments = 1;        // segments of one path that are cheapest to send together
  uint32_t burst_bytes = 0;           // where it is bytes that bound a burst: so many, of smaller packets more; else 0
  uint32_t entropies = 1;             // different routes that the lane can ask for towards one peer address
  bool entropy_is_udp_port = false;   // by the UDP port that packets leave from; only that of entropy 0 receives
  uint32_t header_bytes = 0;          // bytes on the wire around a packet (Ethernet, IP, UDP): for rates in wire bytes
  bool nominal_header = false;        // header_bytes stands for all headers, the transport's own too (simulated lanes)
  uint64_t receive_buffer_bytes = 0;  // what may be in flight towards this lane before it must drop; 0: no limit known
  Rate link_rate;                     // of the port; zero when not known (a virtual link)
  Duration base_rtt;                  // to the farthest peer without queues; zero when not known

  // Packets of so many bytes that are cheapest to send together.
  uint32_t BurstOf(uint32_t packet_bytes) const {
    return std::max({1u, burst_segments, burst_bytes / std::max(1u, packet_bytes)});
  }
};

inline constexpr int kNoDevice = -1;

// Memory that a lane is to know (Lane::RegisterMemory).
struct LaneMemory {
  void* base = nullptr;
  size_t bytes = 0;
  int device = kNoDevice;  // ordinal of the GPU whose memory it is, which only cards may touch; kNoDevice: host memory
  int dma_buf = -1;  // of a GPU: a descriptor of a dma-buf that holds it, the caller's; -1: `base` is all there is
  uint64_t dma_buf_offset = 0;  // of `base` in it, in bytes

  bool on_device() const { return device != kNoDevice; }
};

// kFenced: nothing that travelled; Receive tells that a fence holds (Lane::FenceWrites).
enum class SegmentKind : uint8_t { kPacket, kWrite, kFenced };

// One segment to send. Pointers are borrowed until Lane::Send has taken the segment; lanes that read later (see
// LaneCapabilities) have more time for payloads that stay in memory that was lent to them.
struct TxSegment {
  SegmentKind kind = SegmentKind::kPacket;
  bool ecn_capable = false;    // ask switches to mark rather than drop
  bool control = false;        // acknowledgements, grants, requests: may use a priority queue, never trimmed
  bool expendable = false;     // an answer to somebody who may not exist: dropped rather than that others wait for it
  bool payload_stays = false;  // packets: what is at `payload` is its owner's, who leaves it as it is until the packet
                               // has arrived; should he not, its receiver finds out by a checksum
  bool on_device = false;      // packets whose payload stays: it is in memory of a GPU, and ReadsFromDevice said that
                               // the card reads it; nobody else may, so what can no longer leave that way is dropped
  bool telemetry = false;      // packets: ask switches for in-band telemetry; without the capability ignored
  uint16_t entropy = 0;        // in [0, capabilities().entropies): chooses the route; who gets a packet of entropy 0
                               // can answer to its source
  uint32_t peer = 0;           // from Lane::OpenPeer
  uint16_t header_bytes = 0;   // packets: bytes at `header`
  uint32_t payload_bytes = 0;
  const uint8_t* header = nullptr;
  const uint8_t* payload =
      nullptr;  // null with payload_bytes > 0: a phantom payload (simulated lanes only; see MemoryKind::kPhantom)
  union {
    Time leaves_at{};         // packets: to be on the wire no sooner; zero: at once. Only with send_ahead
    uint64_t remote_address;  // writes
  };
  // Writes only:
  uint32_t connection = 0;  // the peer's connection number: the remote lane reports it with the completion
  uint32_t immediate = 0;
  uint64_t remote_key = 0;   // the remote *lane's* key of the memory (Lane::RegisterMemory there)
  uint64_t payload_key = 0;  // not 0: the payload is in memory of a GPU, which has this key here, and only the card may
                             // read it
};

// One segment that arrived. Memory at `data` belongs to the lane and is valid until the next call of Receive.
struct RxSegment {
  SegmentKind kind = SegmentKind::kPacket;
  bool congestion_experienced = false;  // ECN mark
  bool trimmed = false;                 // payload was cut on the way; `data` holds the header
  uint32_t data_bytes = 0;              // packets: header and payload bytes at `data`; only the header's with `payload`
  uint32_t phantom_bytes = 0;           // packets: payload bytes that were sent without contents
  uint8_t* data = nullptr;
  uint8_t* payload = nullptr;  // packets: not null: `payload_bytes` of payload stand here, apart from their header. The
                               // sender may still change them, as they lie in memory that it shares
  uint32_t payload_bytes = 0;
  bool guessed = false;  // packets: the lane has put `payload` where it was told, and it may not belong there: after
                         // `data_bytes` of the packet, whatever its header says, the rest stands there
  const LaneAddress* source = nullptr;      // packets: where it came from; valid as long as `data`
  Time received_at;                         // see LaneCapabilities::rx_timestamps
  std::span<const HopTelemetry> telemetry;  // packets that asked: in the order of the hops; valid as long as `data`
  // Writes, and fences (which have nothing else):
  uint32_t connection = 0;  // our connection number, as the sender named it
  // Writes only:
  uint32_t immediate = 0;
  uint32_t placed_bytes = 0;
  uint16_t entropy = 0;
};

// Where payloads of packets that have not come yet are thought to belong (Lane::GuessPlacement).
struct PlacementGuess {
  uint8_t* to = nullptr;       // the first of them; the others follow it
  uint32_t packets = 0;        // 0: no guess
  uint32_t header_bytes = 0;   // of each
  uint32_t payload_bytes = 0;  // of each
};

// What happened to the port since the last look.
struct LaneStatus {
  bool up = true;             // false: nothing leaves or arrives (link down, device gone)
  uint32_t change_count = 0;  // grows with every change
};

// Counted by each lane; names and units as in docs/counters.md.
struct LaneCounters {
  uint64_t tx_packets = 0, tx_bytes = 0, tx_calls = 0, tx_drops = 0;
  uint64_t rx_packets = 0, rx_bytes = 0, rx_calls = 0, rx_drops = 0;
  uint64_t tx_in_place = 0;
};

class Lane {
 public:
  virtual ~Lane() = default;

  virtual std::string_view name() const = 0;  // "udp:eth0 192.0.2.1:4791" for people; decides nothing
  virtual const LaneCapabilities& capabilities() const = 0;
  virtual const LaneAddress& address() const = 0;  // where peers reach this lane
  virtual LaneStatus status() const = 0;
  virtual const LaneCounters& counters() const = 0;

  // A small number for a remote address, to be used in TxSegment::peer; the same for the same address while it is open.
  // 0: this lane does not reach the address, and drops what is sent there.
  // Reference counted: ClosePeer as often as OpenPeer. Cheap enough to answer a stray packet.
  virtual uint32_t OpenPeer(const LaneAddress& address) = 0;
  virtual void ClosePeer(uint32_t peer) = 0;

  // How many segments Send would take now. 0: ask again after the lane became writable (wait_descriptor, or for a
  // simulated lane the next event).
  virtual size_t room() const = 0;

  // The same towards one peer, where peers have queues of their own: one that does not take its packets must not stop
  // the others. What Send gets beyond it, it may drop. 0: ask again after wait_descriptor became readable.
  virtual size_t RoomTo(uint32_t peer) {
    (void)peer;
    return room();
  }

  // Sends from the front of `segments`; returns how many were taken. Consecutive segments with the same peer, entropy
  // and size (the last may be shorter) are one burst and cost about as much as one. A segment taken may still be lost.
  virtual size_t Send(std::span<const TxSegment> segments) = 0;

  // Fills `out` with what has arrived; returns how many. Never blocks.
  virtual size_t Receive(std::span<RxSegment> out, Time now) = 0;

  // Lanes with least_guessed_bytes: what the next Receive finds may be put there as it comes, without a look at what it
  // is, so that the kernel's copy is the last one. Holds for that call alone: until it returns anything may be written
  // there, afterwards nothing.
  virtual void GuessPlacement(const PlacementGuess& guess) { (void)guess; }

  // Lanes with remote_placement: makes memory a target of writes, and memory of a GPU a source of them too; returns the
  // lane's key, never 0, or 0 when the lane has no use for it or its card does not take it.
  virtual uint64_t RegisterMemory(const LaneMemory& memory) {
    (void)memory;
    return 0;
  }
  virtual void DeregisterMemory(uint64_t key) { (void)key; }
  // Why the last RegisterMemory answered 0, or LendMemory false, for people, with the lane's name.
  virtual std::string memory_problem() const { return std::string(name()) + ": it places no data by itself"; }

  // Lanes with remote_placement: a path stays silent, although what was written on it should have been acknowledged.
  // The lane may give it another route. What was written before either arrives before what is written from now on, or
  // not at all.
  virtual void ResetPath(uint32_t peer, uint32_t connection, uint16_t entropy) {
    (void)peer, (void)connection, (void)entropy;
  }
  // Lanes that read later: payloads may be read from this memory, until ReturnMemory is told the same. False: they are
  // not, and it need not be returned.
  virtual bool LendMemory(const LaneMemory& memory) {
    (void)memory;
    return false;
  }
  // No payload that is sent from now on is read from it. For what was sent before, the lane keeps the pages that were
  // there: their owner may do with his addresses what he likes. But with those of a GPU only when all that was sent
  // from them has arrived, or the lane has closed.
  virtual void ReturnMemory(const LaneMemory& memory) { (void)memory; }
  // Whether packets could have these bytes as their payloads now, which lie in memory of a GPU that was lent: the card
  // reads them, and the processor does not.
  virtual bool ReadsFromDevice(const uint8_t* payload, size_t bytes) const {
    (void)payload, (void)bytes;
    return false;
  }

  // Lanes with remote_placement: nothing that was written for this connection of the peer is read from memory any more.
  virtual void EndWrites(uint32_t peer, uint32_t connection) { (void)peer, (void)connection; }
  // Lanes with remote_placement, the side that is written to: what peers have written for this connection of ours and
  // has not arrived is to arrive no more. When that is so Receive hands out a segment of kind kFenced with the
  // connection's number: what had been placed before was handed out before it; from then on nothing that was sent
  // before the call is placed, nor told of. What is written on ways that are opened later is not meant. A lane that
  // cannot promise that never says it. Not to be called again for a connection before it has answered.
  virtual void FenceWrites(uint32_t connection) { (void)connection; }

  // A descriptor that becomes readable when Receive may have something, or -1 (poll only).
  virtual int wait_descriptor() const { return -1; }

  // The caller is about to wait for wait_descriptor(), for the first time since the last Receive: whoever sends to this
  // lane is told to wake it. False: do not wait, something has come or found room meanwhile.
  virtual bool PrepareToWait() { return true; }
};

}  // namespace paceline
