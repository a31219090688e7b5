// The endpoint's connections and what they share: numbers, listeners, timers, who sends next. The class behind
// endpoint.h; its parts are in files of their own:
//   endpoint.cc             memory, connections, the facade
//   endpoint_operations.cc  posting operations
//   endpoint_receives.cc    receive queues
//   endpoint_handshake.cc   connection set-up, answers to strangers
//   endpoint_presence.cc    whether a peer still has a connection
//   endpoint_io.cc          arrivals, departures, time
//
// Thread rule: as endpoint.h.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/base/timer_heap.h"
#include "transport/core/connection.h"
#include "transport/core/context.h"
#include "transport/core/cookie.h"
#include "transport/core/endpoint.h"
#include "transport/core/secret_numbers.h"
#include "transport/core/session_keys.h"
#include "transport/wire/packet.h"

namespace paceline {

class Endpoint::Impl {
 public:
  Impl(const EndpointOptions& options, std::unique_ptr<CongestionControl> congestion_control,
       EndpointEnvironment* environment, std::span<const PortDescription> ports);

  ~Impl();

  // For memory keys and nonces. The other generator is drawn from too, so that what follows from its seed stays the
  // same.
  uint64_t NewSecretNumber() { return context_.random.Next() ^ secret_numbers_.Next(); }

  // ---- memory
  RegionId RegisterMemory(void* base, uint64_t bytes, uint8_t access, MemoryKind kind, ConnectionId connection,
                          const RegionName& same_as);

  RegionId RegisterMemoryAs(uint64_t key, uint64_t origin, void* base, uint64_t bytes, uint8_t access,
                            const RegionName& same_as);

  RegionId RegisterDeviceMemory(const LaneMemory& memory, uint8_t access, const RegionName& same_as);
  uint32_t PlacingPorts(RegionId id) const;
  uint32_t ReadingPorts(RegionId id) const;

  // Completes what of it only the endpoint knows: keys of lanes and its number.
  RegionId AddRegion(Region region);
  void DeregisterFromLanes(const Region& region);

  void DeregisterMemory(RegionId id, Time now);

  RemoteMemory ExportMemory(RegionId id) const;

  // ---- connections
  uint32_t Listen(const ConnectionSetup& setup, uint64_t nonce);

  void CloseListener(uint32_t listener);

  ListenAddress listen_address(uint32_t listener) const;

  Connection* NewConnection();

  Connection* Find(ConnectionId id) const;

  ConnectionId Connect(const ListenAddress& address, Time now, const ConnectionSetup& setup,
                       const PrivateData& private_data);

  void Accept(ConnectionId id, Time now);

  void Refuse(ConnectionId id, Time now);

  void Close(ConnectionId id, Time now);

  void Abort(ConnectionId id, Time now);

  ConnectionId ReserveConnection();

  void Establish(ConnectionId id, const EstablishedPeer& peer, Time now);

  // ---- operations
  // The connection if operations may be posted on it, with a completion reserved; else nullptr and why.
  Connection* Prepare(ConnectionId id, PostResult* result);

  PostResult PostMessage(ConnectionId id, Time now, OperationId* operation, TxMessage* message);

  // A message with what all operations with a local buffer have.
  TxMessage* NewMessage(Operation operation, wire::MessageKind kind, const LocalBuffer& buffer, uint64_t user_data);

  PostResult CheckBuffer(const LocalBuffer& buffer) const;
  static bool InBounds(const RemoteMemory& remote, uint64_t offset, uint64_t bytes);

  PostResult PostSend(ConnectionId id, const SendRequest& request, Time now, OperationId* operation);

  PostResult PostReceive(ConnectionId id, const ReceiveRequest& request, Time now, OperationId* operation);

  PostResult PostWrite(ConnectionId id, const WriteRequest& request, Time now, OperationId* operation);

  PostResult PostRead(ConnectionId id, const ReadRequest& request, Time now, OperationId* operation);

  PostResult PostAtomic(ConnectionId id, const AtomicRequest& request, Time now, OperationId* operation);
  PostResult PostVectorAtomic(ConnectionId id, const VectorAtomicRequest& request, Time now, OperationId* operation);

  PostResult PostFlush(ConnectionId id, const FlushRequest& request, Time now, OperationId* operation);

  bool Cancel(ConnectionId id, OperationId operation, Time now);

  // ---- receive queues
  ReceiveQueueId NewReceiveQueue();
  void DeleteReceiveQueue(ReceiveQueueId queue, Time now);
  ReceiveQueue* FindQueue(ReceiveQueueId queue) const;
  // Before anything arrives on it.
  void SetUp(Connection& connection, const ConnectionSetup& setup);
  void SetSource(ConnectionId id, Source source, Time now);
  PostResult PostSharedReceive(ReceiveQueueId queue, const ReceiveRequest& request, Time now, OperationId* operation);
  std::optional<WaitingSend> Peek(ReceiveQueueId queue, const ReceiveRequest& request, bool claim);
  bool CancelReceive(ReceiveQueueId queue, OperationId operation, Time now);
  void FailReceivesFrom(ReceiveQueueId queue, Source source, OperationStatus status, Time now);
  void CancelReceivesInto(RegionId region, Time now);
  // Sends that found no receive may find one now.
  // All stored sends, or only those of one connection.
  void MatchAgain(ReceiveQueue& queue, const Receiver* receiver, Time now);
  void FeedStarvedQueues(Time now);

  size_t PollCompletions(std::span<Completion> out) { return context_.completions.Poll(out); }

  size_t PollConnectionEvents(std::span<ConnectionEvent> out);

  // ---- arrivals
  void TakeSegments(uint32_t port, std::span<const RxSegment> segments, Time now);
  void FinishSegments(Time now);
  void HandleRiders(Time now);
  PlacementGuess GuessPlacement(uint32_t port);
  size_t CountInPlace(std::span<const RxSegment> guessed);
  size_t TakeGuessed(uint32_t port, std::span<const RxSegment> segments, Time now);

  // What a lane with remote placement tells: that a write was placed, or that a fence holds.
  void HandleNotice(uint32_t port, const RxSegment& segment, Time now);
  // Takes the first of `segments`, a packet, and those behind it that are of the same run; returns how many.
  size_t HandlePacket(uint32_t port, std::span<const RxSegment> segments, Time now);
  size_t HandleData(uint32_t port, std::span<const RxSegment> segments, wire::CommonHeader& common, Time now);
  // Undoes the protection of a packet for `connection`: takes the trailer off the header, points `payload` to clear
  // bytes. False: not to be handled, counted.
  bool Open(Connection& connection, std::span<const uint8_t> packet, wire::CommonHeader& common,
            std::span<const uint8_t>& payload);
  // Protects what a connection has put into the burst.
  void Seal(Connection& connection, TxBurst& burst, size_t at, size_t count);
  size_t RoomTo(const Connection& connection, uint32_t port, const TxBurst& burst, size_t filled) const;

  // ---- handshake
  // Bit per local port that leads to one of the addresses, see Routes.
  uint8_t ReachOf(std::span<const LaneAddress> addresses);
  // For a connection over these local ports (a bit each): the addresses of all others are left empty.
  wire::Hello OurHello(uint8_t ports) const;

  LaneAddress ReceivingAddress(uint32_t port, const LaneAddress& source, const wire::Hello& hello) const;
  // `padding`: bytes of the packet behind its header; our answer to a stranger has no more.
  [[gnu::cold]] void HandleInit(uint32_t port, std::span<const uint8_t> body, uint32_t padding,
                                const LaneAddress& source, Time now);

  [[gnu::cold]] void TakeRequest(const ConnectionRequest& request, Time now);
  void TakeRequest(const ConnectionRequest& request, const wire::InitPacket& init, Time now);
  void RefuseRequest(const ConnectionRequest& request, CloseReason reason);
  crypto::Secret DigestOf(const ConnectionRequest& request) const;  // for who believes our answer by it

  // kOther: an entropy other than the last one, as the peer repeats its request and the path of entropy 0 may be dead.
  enum class AnswerPath : uint8_t { kFirst, kOther };
  void SendAccept(Connection* connection, AnswerPath path);
  bool WantsChecksum(uint8_t ports, uint32_t peer_features) const {
    return (peer_features & wire::kFeaturePayloadCrc) != 0 ||
           (context_.options.payload_checksum &&
            std::any_of(context_.ports.begin(), context_.ports.end(), [ports](const Port& port) {
              return (ports >> port.index & 1) != 0 && !port.capabilities.keeps_bytes_intact;
            }));
  }
  // Packets of a keyed connection are encrypted when either side wants it.
  bool Encrypts(uint32_t peer_features) const {
    return context_.options.encrypt || (peer_features & wire::kFeatureEncryption) != 0;
  }
  // Server: encodes and signs the answer to the request of `connection`. nullptr: its public key is unusable.
  std::unique_ptr<SecureChannel> AnswerKeyExchange(Connection& connection, wire::AcceptPacket& accept,
                                                   std::span<uint8_t> buffer, size_t* size);
  // Client: the channel that a signed answer gives; nullptr: it is not from who knows the cluster key.
  std::unique_ptr<SecureChannel> FinishKeyExchange(Connection& connection, const wire::AcceptPacket& accept,
                                                   std::span<const uint8_t> body);
  // Whether a request has the credentials that this endpoint demands; counts it if not.
  bool Vouched(const wire::InitPacket& init, std::span<const uint8_t> body);

  [[gnu::cold]] void HandleCookie(ConnectionId id, std::span<const uint8_t> body, uint32_t padding, Time now);

  [[gnu::cold]] void HandleAccept(ConnectionId id, std::span<const uint8_t> body, Time now);

  [[gnu::cold]] void HandleRefuse(ConnectionId id, std::span<const uint8_t> body, Time now);

  // A request in another version: its first fields stand where they stand in ours.
  [[gnu::cold]] void RefuseVersion(uint32_t port, std::span<const uint8_t> body, const RxSegment& segment);

  // ---- presence
  [[gnu::cold]] void HandleAsk(uint32_t port, ConnectionId id, std::span<const uint8_t> body,
                               const LaneAddress& source);

  [[gnu::cold]] void HandleGone(ConnectionId id, std::span<const uint8_t> body, Time now);

  // The question that is due; returns its size.
  size_t BuildAsk(Connection& connection, std::span<uint8_t> buffer);

  // ---- answers to strangers: packets that belong to no established connection
  struct Reply {
    uint32_t port = 0;
    LaneAddress address;
    ConnectionId connection = kNoConnection;  // takes port and address from it when set
    AnswerPath path = AnswerPath::kFirst;
    size_t size = 0;
    size_t padded_bytes = 0;  // of the packet, when it is to be larger than `size`
    std::array<uint8_t, limits::kMaxControlBytes> bytes;
  };

  Reply* NewReply(uint32_t port, const LaneAddress& address);

  // `init_digest`: of a request that was made with our key, so that the client may believe the answer; else nullptr.
  void ReplyRefuse(uint32_t port, const LaneAddress& address, ConnectionId peer_connection, uint64_t nonce,
                   CloseReason reason, const crypto::Secret* init_digest);

  [[gnu::cold]] void ReleaseReplyPeers();

  // ---- departures
  size_t PollTransmit(uint32_t port, TxBurst& burst, size_t room, Time now);
  bool may_transmit() const {
    return !ready_.empty() || !control_.empty() || !replies_.empty() || !reply_peers_.empty() || any_queue_starved();
  }
  // A send found no receive for want of completions: PollTransmit tries again.
  bool any_queue_starved() const {
    return std::any_of(receive_queues_.begin(), receive_queues_.end(),
                       [](const auto& queue) { return queue.second->matcher().starved(); });
  }

  [[gnu::cold]] size_t TransmitReplies(uint32_t port, TxBurst& burst, size_t room);

  void SetControl(TxBurst& burst, size_t at, uint32_t peer, size_t size);

  enum class AckPolicy : uint8_t { kMayWait, kNow };
  size_t TransmitControl(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now, AckPolicy acks);

  uint16_t NextControlEntropy(uint32_t port);

  // A packet of the handshake, with zeros behind it up to `padded_bytes`.
  [[gnu::cold]] void PutHandshake(TxBurst& burst, size_t at, uint32_t peer, std::span<const uint8_t> packet,
                                  size_t padded_bytes);

  // The request of a connection that is being set up: once with the cookie, before that in the sizes that are tried.
  [[gnu::cold]] size_t TransmitRequest(Connection* connection, uint32_t port, TxBurst& burst, size_t at, size_t room,
                                       Time now);
  // What it says, and where it is to go; returns its size.
  size_t BuildRequest(Connection& connection, uint32_t port, std::span<uint8_t> buffer, LaneAddress* address);

  // ---- time
  Time PollTimeout();

  void HandleTimeout(Time now);
  // Connections for which a copy of memory of a GPU has failed.
  void EndFailedCopies(Time now);

  void HandlePortStatus(uint32_t port, bool up, Time now);

  // Puts a connection into the lists that fit its state, after anything happened to it.
  void After(Connection* connection, Time now);
  [[gnu::cold]] void TellKeysAgain(Time now);
  // Sets the timers of connections that anything happened to: once per pass, however much happened.
  void SetTimers();
  [[gnu::cold]] void TakeEvent(Connection* connection);
  // Into the lists of those that have data or control packets to send.
  void Enlist(Connection* connection, Time now);

  // A server connection counts as pending until it was accepted or has ended.
  bool settled(Connection* connection) const { return slots_[connection->id() & kSlotMask].settled; }
  void SetSettled(Connection* connection) { slots_[connection->id() & kSlotMask].settled = true; }

  void Touch(Connection* connection);
  // What was changed of connections by others than themselves is told to the allocators and the lists: at once, or
  // behind the segments that are being taken.
  void FinishTouched(Time now);

  [[gnu::cold]] void Free(Connection* connection, Time now);

  void ForgetSpentRequests(Time now);

  uint32_t UnexpectedMessages(ConnectionId id) const;
  size_t MemoryOf(ConnectionId id) const;

  const CoreContext& context() const { return context_; }
  size_t connections() const { return live_; }

 private:
  struct Listener {
    uint64_t nonce = 0;
    ConnectionSetup setup;
  };
  struct Slot {
    std::unique_ptr<Connection> connection;
    uint32_t generation = 0;
    bool settled = false;
  };
  // Frames that rode on a data packet; the bytes are the lane's.
  struct Riders {
    ConnectionId connection = kNoConnection;
    uint32_t port = 0;
    Time arrived;
    std::span<const uint8_t> frames;
  };

  static constexpr size_t kMostInRun = 64;   // packets that are taken together
  static constexpr uint32_t kSlotBits = 20;  // of a connection id; the rest counts the uses of the slot
  static constexpr uint32_t kSlotMask = (1u << kSlotBits) - 1;
  static constexpr uint32_t kGenerationBits = 32 - kSlotBits;
  static_assert(limits::kMostIdPrefixBits < kGenerationBits);

  CoreContext context_;
  CookieJar cookies_;
  SecretNumbers secret_numbers_;
  std::optional<Identity> identity_;  // with a cluster key
  std::vector<uint8_t> decrypted_;    // payload of the packet that is being handled
  std::map<ReceiveQueueId, std::unique_ptr<ReceiveQueue>> receive_queues_;  // outlive the connections
  ReceiveQueueId next_receive_queue_ = 1;
  std::vector<Slot> slots_;
  uint32_t first_generation_ = 0;    // of each slot
  std::deque<uint32_t> free_slots_;  // the longest unused first
  size_t live_ = 0;
  uint32_t next_listener_ = 1;
  absl::flat_hash_map<uint32_t, Listener> listeners_;
  absl::flat_hash_map<uint64_t, uint32_t> listener_by_nonce_;
  struct Request {
    ConnectionId connection = kNoConnection;
    bool refused = false;  // by the application
  };
  absl::flat_hash_map<std::pair<uint64_t, ConnectionId>, Request> requests_;       // of clients, by nonce and number
  std::deque<std::pair<std::pair<uint64_t, ConnectionId>, Time>> spent_requests_;  // over, and good until when
  uint32_t pending_requests_ = 0;
  std::deque<Reply> replies_;
  std::vector<std::pair<uint32_t, uint32_t>> reply_peers_;  // opened for one packet each
  uint32_t control_entropy_ = 0;
  std::deque<ConnectionEvent> events_;
  TimerHeap timers_;
  IntrusiveList<Connection, &Connection::ready_link> ready_;
  IntrusiveList<Connection, &Connection::control_link> control_;
  IntrusiveList<Connection, &Connection::touched_link> touched_;
  IntrusiveList<Connection, &Connection::retime_link> retime_;
  std::vector<Riders> riders_;                     // of the segments taken and not finished
  std::array<Receiver::Arrival, kMostInRun> run_;  // that is being taken
  bool taking_ = false;                            // there are such segments

  // Of the last run of packets that came through a port: where the next ones may belong.
  struct LastRun {
    ConnectionId connection = kNoConnection;
    uint32_t message = 0;
    uint32_t header_bytes = 0;
    uint64_t end = 0;        // offset in the message
    bool continued = false;  // the run before it
  };
  void NoteRun(uint32_t port, ConnectionId connection, const wire::DataHeader& header, uint32_t header_bytes,
               uint64_t end);
  std::array<LastRun, limits::kMaxPorts> last_runs_;
  std::vector<RxSegment> aside_;  // that were where others belong, and
  std::vector<uint8_t> aside_bytes_;
};

}  // namespace paceline
