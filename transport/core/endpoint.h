// The protocol core: one endpoint with its connections, over one or more ports. It does no I/O, reads no clock, starts
// no thread: segments in, segments out, time and randomness are arguments. Whoever owns it (engine/engine.h on real
// lanes and in the simulated fabric, a stepping harness in tests) calls, in any order:
//
//   HandleSegments   what a lane received
//   HandleTimeout    when PollTimeout() has come
//   PollTransmit     to fill what a lane has room for
//   PollCompletions, PollConnectionEvents   for the user
//
// and the Post* calls. Every call may change the answers of all Poll* calls.
//
// Thread rule: one thread at a time. Ownership: the endpoint owns its connections; buffers of operations belong to the
// caller and are borrowed until their completion has been polled.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cc/congestion_control.h"
#include "transport/base/limits.h"
#include "transport/base/time.h"
#include "transport/core/counters.h"
#include "transport/core/secure_channel.h"
#include "transport/core/types.h"
#include "transport/crypto/key_derivation.h"
#include "transport/lane/lane.h"

namespace paceline {

struct EndpointOptions {
  uint64_t seed = 1;                        // of what need not be secret: path choice, order
  std::array<uint8_t, 32> cookie_secret{};  // of the connection cookies: random for real use
  // With a cluster key connections are made with peers that have the same, and every packet but placed writes is
  // authenticated; payloads are encrypted too if either side wants it (docs/security.md).
  std::optional<crypto::Secret> cluster_key;
  // Of this endpoint alone, for real use secret and random: its private keys, memory keys and nonces follow from it.
  crypto::Secret key_seed{};
  bool encrypt = false;
  uint64_t packets_per_key = SecureChannel::kPacketsPerEpoch;
  std::string congestion_control = "tita";  // name that peers must run too; the object itself is a constructor argument
  std::string path_policy = "reps";         // see core/path/path_policy.h
  uint32_t entropies = 64;                  // routes per pair of ports; at most what the lane offers
  uint32_t eager_bytes = limits::kDefaultEagerBytes;
  // Payload is placed by OrderedCopy, in segments of whole lines: for memory that is watched while it is written.
  bool ordered_placement = false;
  uint64_t unexpected_bytes = limits::kDefaultUnexpectedBytes;  // whole endpoint
  uint32_t max_connections = 65536;
  // Of endpoints whose connections must all have different numbers: so many of the highest bits of each (at most
  // limits::kMostIdPrefixBits), and what they are here. What is left of the count of a slot's uses is shorter for it.
  uint32_t id_prefix_bits = 0, id_prefix = 0;
  // By port, where such endpoints hand out credit for the same ports, as members that are numbered by their prefix.
  // They outlive the endpoint.
  std::vector<CreditPool*> credit_pools;
  uint32_t max_operations = 4096;                 // per connection and direction
  uint32_t max_completions = 65536;               // completions not yet polled before posts answer kTryAgain
  bool payload_checksum = true;                   // CRC-32C over payloads beside that over headers
  uint32_t ack_every = 2;                         // packets received per acknowledgement at most
  Duration max_ack_delay = Duration::Micros(25);  // an acknowledgement waits this long at most
  // While more follows, on lanes that send bursts: so many of them per acknowledgement, and so many times
  // max_ack_delay. News of credit waits with it, or longer, while the sender has enough (docs/protocol.md, section 10).
  uint32_t bursts_per_ack = 4;
  // Instead of max_ack_delay after the last packet of a backlog: nothing follows that it could be acknowledged along
  // with, only an answer may be on its way. Both sides should have the same: a sender whose peer waits longer than it
  // reckons with probes for last packets that have arrived.
  Duration last_ack_delay = Duration::Nanos(6250);
  uint64_t prompt_ack_bytes = 16385;  // a message of this length or more is acknowledged as soon as it is complete
  bool prompt_acks = false;           // others too, where the sender waits for the completion: it asks for it
  Duration min_timeout = Duration::Millis(20);  // least retransmission time-out
  Duration min_probe = Duration::Micros(200);   // least time before a tail probe
  Duration base_rtt;  // to the farthest peer without queues; zero: as the lane states it, or else measured
  Duration assumed_rtt = Duration::Micros(50);  // until measured
  Rate assumed_link_rate = Rate::Gbps(100);     // when the lane states none
  uint64_t local_group = 0;  // of this endpoint, as EstablishedPeer::remote_group numbers groups; 0: not known
  Rate core_rate;            // what a port can take from other groups when all take theirs; zero: not known
  uint32_t group_ports = 0;  // ports of the own group that then share what it can take; 0: not known
  Duration connect_timeout = Duration::Seconds(5);  // unanswered connection request
  Duration peer_timeout = Duration::Seconds(10);    // silence after which a peer is given up
  Duration keepalive = Duration::Seconds(2);        // silence after which a peer is asked for a sign of life
  Duration idle_after = Duration::Millis(500);      // quiet time after which a connection gives back its path state
};

// One local port, as the engine describes it.
struct PortDescription {
  LaneCapabilities capabilities;
  LaneAddress address;
};

// Somebody wants to connect, and has shown that he gets what is sent to his address, and that he has our key where
// there is one.
struct ConnectionRequest {
  uint32_t port = 0;                    // through which it came
  LaneAddress client_address;           // where the client receives answers
  uint64_t listener = 0;                // ListenAddress::nonce
  uint64_t client_nonce = 0;            // this, and
  ConnectionId client = kNoConnection;  // this are the same in all copies of a request, which may come more than once
  std::span<const uint8_t> body;        // of its packet
};

enum class PassedOn : uint8_t {
  kNo,    // it is for this endpoint
  kYes,   // another one takes it (Endpoint::TakeRequest)
  kFull,  // another one should, and has no room: it is left unanswered
};

// What the core needs from whoever owns the lanes. Calls come only from inside the endpoint's calls.
class EndpointEnvironment {
 public:
  virtual ~EndpointEnvironment() = default;
  virtual uint32_t OpenPeer(uint32_t port, const LaneAddress& address) = 0;  // Lane::OpenPeer
  virtual void ClosePeer(uint32_t port, uint32_t peer) = 0;
  // Lane::RoomTo: how many segments that peer takes now.
  virtual size_t RoomTo(uint32_t port, uint32_t peer) {
    (void)port, (void)peer;
    return limits::kMaxOutstandingPackets;
  }
  virtual uint64_t RegisterMemory(uint32_t port, const LaneMemory& memory) = 0;  // Lane::RegisterMemory
  virtual void DeregisterMemory(uint32_t port, uint64_t key) = 0;
  virtual bool LendMemory(uint32_t port, const LaneMemory& memory) {  // Lane::LendMemory
    (void)port, (void)memory;
    return false;
  }
  virtual void ReturnMemory(uint32_t port, const LaneMemory& memory) {  // Lane::ReturnMemory
    (void)port, (void)memory;
  }
  virtual bool ReadsFromDevice(uint32_t port, const uint8_t* payload, size_t bytes) const {  // Lane::ReadsFromDevice
    (void)port, (void)payload, (void)bytes;
    return false;
  }
  virtual void ResetPath(uint32_t port, uint32_t peer, uint32_t connection, uint16_t entropy) {  // Lane::ResetPath
    (void)port, (void)peer, (void)connection, (void)entropy;
  }
  virtual void EndWrites(uint32_t port, uint32_t peer, uint32_t connection) {  // Lane::EndWrites
    (void)port, (void)peer, (void)connection;
  }
  virtual void FenceWrites(uint32_t port, ConnectionId connection) {  // Lane::FenceWrites
    (void)port, (void)connection;
  }
  virtual PassedOn PassOn(const ConnectionRequest& request, Time now) {
    (void)request, (void)now;
    return PassedOn::kNo;
  }
  // Copies between memory of a GPU (its ordinal, as in LaneMemory) and host memory; done when they return. False: they
  // failed, and what is at `to` is anything.
  virtual bool CopyFromDevice(int device, void* to, const void* from, size_t bytes) {
    (void)device, (void)to, (void)from, (void)bytes;
    return false;
  }
  virtual bool CopyToDevice(int device, void* to, const void* from, size_t bytes) {
    (void)device, (void)to, (void)from, (void)bytes;
    return false;
  }
};

// Parameters of a connection that both sides know without a handshake (simulated studies, test harnesses).
struct EstablishedPeer {
  ConnectionId peer_connection = kNoConnection;
  std::vector<LaneAddress> addresses;  // by the peer's port
  uint32_t segment_bytes = 0;          // 0: as large as our ports allow
  bool atomics = true;                 // it understands wire::MessageKind::kAtomic
  bool fences = true;                  // it answers wire::FenceFrame
  bool bundles = true;                 // it understands wire::MessageKind::kBundle
  bool fragments = true;               // it takes fragments of segments
  uint64_t remote_group = 0;           // FlowInfo::remote_group
  Duration base_rtt;                   // zero: not known
  // Bit per local port: data of this connection goes through these, and credit is handed out there, as long as one of
  // them is fit; then through all. 0: all. The peer is to name the ports that lead to these.
  uint32_t ports = 0;
};

// Room for one burst: segments and the headers they point to. Owned by the caller of PollTransmit.
struct TxBurst {
  static constexpr size_t kSegments = 64;
  std::array<TxSegment, kSegments> segments;
  std::array<std::array<uint8_t, limits::kMaxControlBytes>, kSegments> headers;
};

class Endpoint {
 public:
  Endpoint(const EndpointOptions& options, std::unique_ptr<CongestionControl> congestion_control,
           EndpointEnvironment* environment, std::span<const PortDescription> ports);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // ---- memory
  // Registers [base, base + bytes) for remote access and for local use. kPhantom: base is nullptr; never kDevice.
  // `connection`: only this peer may use it; kNoConnection: any peer. `same_as`: the same memory in another endpoint,
  // which numbers all regions of both. Returns kUnregistered when out of ids.
  RegionId RegisterMemory(void* base, uint64_t bytes, uint8_t access, MemoryKind kind = MemoryKind::kHost,
                          ConnectionId connection = kNoConnection, const RegionName& same_as = {});
  // The same under a key of the application's choice, as guessable as that is, and with offsets of remote operations
  // that count from `origin` at its first byte. kUnregistered: out of ids, or the key is in use.
  RegionId RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access,
                            const RegionName& same_as = {});
  // The same for memory of a GPU, which the core never touches. Cards that took it read and write it by themselves, or
  // read what packets take along, without a checksum of ours over it; what must go as packets all the same (no key of
  // the peer's memory, a protected connection, an answer to a read, a port whose card did not take it), or again, is
  // copied packet by packet, and the endpoint waits for each copy. One that fails ends the connection, its operations
  // with kConnectionClosed. A send from it of 1 byte or more waits for its receive on ports that place data, so that it
  // is written and not copied. The dma-buf stays usable while the region lives. kUnregistered also with kRemoteAtomic:
  // no processor can do atomics there.
  RegionId RegisterDeviceMemory(const LaneMemory& memory, uint8_t access, const RegionName& same_as = {});
  // Bit per port whose card reads and writes the region by itself.
  uint32_t PlacingPorts(RegionId region) const;
  // The same, and ports whose card only reads it (Lane::LendMemory): first copies of what is sent from it.
  uint32_t ReadingPorts(RegionId region) const;
  // At once: what arrives later for it is refused, writes and reads of peers under way end there with kRemoteAccess. A
  // connection with operations of its own that still use the region is aborted (its operations end with
  // kConnectionClosed): the peer would otherwise wait for bytes that nobody may read or place any more.
  void DeregisterMemory(RegionId region, Time now);
  RemoteMemory ExportMemory(RegionId region) const;  // key 0: no such region

  // ---- connections
  // A listener's number, never 0. `nonce`: part of its address; 0: random. 0 comes back where that nonce is in use.
  // Connections it leads to start with `setup`.
  uint32_t Listen(const ConnectionSetup& setup = {}, uint64_t nonce = 0);
  void CloseListener(uint32_t listener);
  ListenAddress listen_address(uint32_t listener) const;
  // Starts to connect; kEstablished or kClosed follows as an event. kNoConnection: at the bound.
  // `private_data` goes to who accepts.
  ConnectionId Connect(const ListenAddress& address, Time now, const ConnectionSetup& setup = {},
                       const PrivateData& private_data = {});
  // One that another endpoint passed on, whose ports lead where ours lead, and whose cluster key is ours. It is as if
  // it had come here; the answer is sent from here.
  void TakeRequest(const ConnectionRequest& request, Time now);
  void Accept(ConnectionId connection, Time now);  // answers kRequest
  void Refuse(ConnectionId connection, Time now);
  // Orderly: what was posted before is carried out first (receives are completed with kConnectionClosed), then kClosed.
  void Close(ConnectionId connection, Time now);
  // At once: every operation left ends with kConnectionClosed, the peer is told.
  void Abort(ConnectionId connection, Time now);
  // Without handshake: reserve on both sides, then establish on both sides.
  ConnectionId ReserveConnection();
  void Establish(ConnectionId connection, const EstablishedPeer& peer, Time now);

  // ---- operations (id may be nullptr)
  PostResult PostSend(ConnectionId connection, const SendRequest& request, Time now, OperationId* id = nullptr);
  // kInvalidArgument also on a connection that shares a receive queue.
  PostResult PostReceive(ConnectionId connection, const ReceiveRequest& request, Time now, OperationId* id = nullptr);
  PostResult PostWrite(ConnectionId connection, const WriteRequest& request, Time now, OperationId* id = nullptr);
  PostResult PostRead(ConnectionId connection, const ReadRequest& request, Time now, OperationId* id = nullptr);
  PostResult PostAtomic(ConnectionId connection, const AtomicRequest& request, Time now, OperationId* id = nullptr);
  // kInvalidArgument also where the peer is of a version that knows no such atomics.
  PostResult PostVectorAtomic(ConnectionId connection, const VectorAtomicRequest& request, Time now,
                              OperationId* id = nullptr);
  PostResult PostFlush(ConnectionId connection, const FlushRequest& request, Time now, OperationId* id = nullptr);
  // True: it will complete with kCancelled. False: too late (it will complete as usual) or unknown.
  bool Cancel(ConnectionId connection, OperationId id, Time now);

  // ---- receive queues
  ReceiveQueueId NewReceiveQueue();
  // Aborts the connections that use it and cancels its receives.
  void DeleteReceiveQueue(ReceiveQueueId queue, Time now);
  // Names the peer of a connection, from now on and for what it has sent and nobody has received.
  void SetSource(ConnectionId connection, Source source, Time now);
  PostResult PostSharedReceive(ReceiveQueueId queue, const ReceiveRequest& request, Time now, OperationId* id);
  // The first send that a receive with this tag, ignore and source would meet now; nothing: none. `claim`: it then
  // meets only the receive that names it.
  std::optional<WaitingSend> Peek(ReceiveQueueId queue, const ReceiveRequest& request, bool claim);
  bool CancelReceive(ReceiveQueueId queue, OperationId id, Time now);
  // Receives that name this source end with `status`.
  void FailReceivesFrom(ReceiveQueueId queue, Source source, OperationStatus status, Time now);

  size_t PollCompletions(std::span<Completion> out);
  size_t PollConnectionEvents(std::span<ConnectionEvent> out);

  // ---- I/O
  void HandleSegments(uint32_t port, std::span<const RxSegment> segments, Time now);
  // The same in two steps, for who wants to answer in between: the first takes what arrived as far as completions of
  // receives; the second what rode on it, credit and timers. Before the second the lane's Receive is not called again,
  // as the segments' bytes are still read.
  void TakeSegments(uint32_t port, std::span<const RxSegment> segments, Time now);
  void FinishSegments(Time now);
  // For Lane::GuessPlacement, in the moment before Receive; what that finds is handed in before anything else is done.
  PlacementGuess GuessPlacement(uint32_t port);
  // At most `room` segments for this port; returns how many are in burst.segments. Pointers in them live until the next
  // call on this endpoint, or until the burst is used again, whichever comes first.
  size_t PollTransmit(uint32_t port, TxBurst& burst, size_t room, Time now);
  // False: PollTransmit would find nothing, and there is no need to ask.
  bool may_transmit() const;
  Time PollTimeout();
  void HandleTimeout(Time now);
  void HandlePortStatus(uint32_t port, bool up, Time now);

  // ---- looking in
  const EndpointCounters& counters() const;
  const EndpointOptions& options() const;
  size_t connections() const;
  // Some connection's packets are so much smaller than its ports' that more of them leave together.
  bool has_narrow_paths() const;
  // Sends of the peer that have met no receive yet; 0 when there is no such connection.
  uint32_t UnexpectedMessages(ConnectionId connection) const;
  // Bytes of memory that this connection holds now, with its share of pooled state. For `paceline info` and tests.
  size_t MemoryOf(ConnectionId connection) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
