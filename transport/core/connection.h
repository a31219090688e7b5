// One connection: its two halves, its life cycle (connecting, established, closing, lingering), keepalive. What
// concerns all connections (numbers, listeners, timers, who sends next) is the endpoint's.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/intrusive_list.h"
#include "transport/core/context.h"
#include "transport/core/keepalive.h"
#include "transport/core/path_mtu_search.h"
#include "transport/core/rtt_probe.h"
#include "transport/core/rx/receiver.h"
#include "transport/core/secure_channel.h"
#include "transport/core/tx/sender.h"
#include "transport/wire/handshake.h"
#include "transport/wire/presence.h"

namespace paceline {

class Connection final : private wire::FrameHandler {
 public:
  enum class State : uint8_t {
    kReserved,    // has a number, nothing else
    kConnecting,  // client: requests go out until an answer comes
    kRequested,   // server: waits for Accept or Refuse
    kEstablished,
    kClosing,    // we close: drains, then says so until the peer agrees
    kLingering,  // over; still answers late packets of the peer, then the number is free
    kFinished,   // may be deleted
  };

  Connection(CoreContext* context, ConnectionId id);
  ~Connection() override;

  ConnectionId id() const { return peer_.local_connection; }
  State state() const { return state_; }
  bool open() const { return state_ == State::kEstablished || state_ == State::kClosing; }
  // The sending half, made when first needed; and the same, or nullptr while it is not there. Who only wants to know
  // how it stands asks send_state().
  Sender& sender();
  Sender* active_sender() {
    sender_touched_ = true;
    return sender_.get();
  }
  const SendState& send_state() const { return send_state_; }
  Receiver& receiver() { return receiver_; }
  const Receiver& receiver() const { return receiver_; }
  const PeerInfo& peer() const { return peer_; }

  // ---- life cycle
  void StartConnecting(const ListenAddress& address, uint64_t nonce, Time now);
  // `digest`: DigestOfInit of the packet, where packets are authenticated.
  void StartRequested(const wire::InitPacket& init, const crypto::Secret& digest, uint32_t listener, Time now);
  // `channel`: what protects its packets, or nullptr; it takes the place of payload checksums.
  void Establish(const EstablishedPeer& peer, bool payload_crc, std::unique_ptr<SecureChannel> channel, Time now);
  void StartClosing(Time now);
  // Ends it at once; `say_abort`: late packets of the peer are answered with an abort.
  void Finish(CloseReason reason, OperationStatus status, bool say_abort, const std::string& detail, Time now);
  // What the user is to be told. Set by Finish and Establish; taken, when there is one, by the endpoint.
  bool has_event() const { return event_ != nullptr; }
  ConnectionEvent TakeEvent();
  void DropEvent() { event_.reset(); }

  uint64_t nonce() const { return nonce_; }
  bool is_server() const { return listener_ != 0; }
  // What belongs to the handshake: until established, and of a server a little longer.
  struct Handshake {
    ListenAddress address;                // client: where to, and how
    std::vector<PortPair> pairs;          // client: empty: no port of ours leads there
    size_t pair = 0;                      // of them, which is being tried
    uint32_t retries = 0;                 // client: requests that were not answered in time
    bool awaiting = false;                // requests are sent, and neither an answer nor the end of patience has come
    std::optional<PathMtuSearch> search;  // client: through that pair
    uint32_t segment_bytes = 0;           // client: what the request with the cookie says, once and for all; 0: not yet
    wire::Cookie cookie{};
    wire::Hello hello;                // of the client
    crypto::Secret private_key{};     // client's, with a cluster key
    wire::Credentials credentials;    // the client's: here, or of the peer
    crypto::Secret init_digest{};     // of the last request sent, or of the one received
    std::optional<CloseReason> hint;  // a refusal that nobody vouches for: believed when nothing better has come
    std::string hint_detail;
    PrivateData private_data;     // client: for who accepts
    std::vector<uint8_t> accept;  // server: the encoded answer, until the client is heard, as it may be lost
  };
  Handshake& handshake() { return *handshake_; }
  // Server: keeps the encoded answer to the request.
  void KeepAccept(std::span<const uint8_t> packet);
  // Empty when it is no longer needed.
  std::span<const uint8_t> kept_accept() const {
    return handshake_ == nullptr ? std::span<const uint8_t>() : std::span<const uint8_t>(handshake_->accept);
  }
  SecureChannel* channel() { return channel_.get(); }
  // A packet for it was not the peer's: what was made to find that out is given back, if nothing else needs it.
  void NoteForged() {
    if (channel_ != nullptr && released_) channel_->Release();
  }
  // Server: a request came in through this port, so that its answer finds its way out there.
  void AnswerThrough(uint32_t port) {
    if (state_ == State::kRequested || peer_.reaches(port)) last_port_ = static_cast<uint8_t>(port);
  }
  // Client: a request is due; then PrepareRequest settles what it asks for and through which ports, and says whether
  // any port leads there (false: not now, and it is due again later).
  bool RequestDue(Time now) const { return state_ == State::kConnecting && retry_at_ <= now; }
  bool PrepareRequest(Time now);
  PortPair RequestPair() const;
  // Bit per local port that the request offers.
  uint8_t RequestPorts() const;
  // The request that is to be sent there: with the cookie once it is known how large packets may be.
  void FillRequest(wire::InitPacket* init, LaneAddress* address) const;
  bool asks_with_cookie() const { return handshake_->search.has_value() && handshake_->search->done(); }
  // The path of entropy 0 may be dead, or the only one that a firewall permits: of three rounds of requests over the
  // pairs of ports, the first takes it and two take other paths.
  bool asks_by_other_path() const {
    return handshake_->retries / static_cast<uint32_t>(handshake_->pairs.size()) % 3 != 0;
  }
  // It was sent.
  void AwaitAnswer(Time now);
  // `bytes`: of the packet that brought it.
  void OnCookie(const wire::Cookie& cookie, uint32_t bytes, Time now);
  // Client: when it stops waiting for an answer.
  Time give_up_at() const { return started_ + context_->options.connect_timeout; }

  // The user or the peer does something with it: it may take path state, which it gives back some time after the last
  // use.
  void NoteUse(Time now) {
    last_active_ = now;
    released_ = false;
  }

  // ---- packets
  void HandleData(const wire::DataHeader& header, uint32_t port, std::span<const Receiver::Arrival> packets, Time now);
  // What has changed the receiving half is told to the allocators.
  void FinishBurst(Time now) {
    if (receiver_.FinishBurst(now)) NoteUse(now);
  }
  // Frames behind the common header; false: malformed.
  bool HandleControl(std::span<const uint8_t> body, uint32_t port, Time arrived, Time now);
  void HandlePlaced(uint32_t port, uint32_t immediate, uint32_t bytes, Time arrived, Time now);
  // A fence that the lane of this port was told of holds.
  void HandleFenceHeld(uint32_t port);

  // A control packet for what is to be said now; 0: nothing.
  size_t BuildControl(std::span<uint8_t> buffer, Time now);
  bool control_due(Time now) const { return frames_due() || (open() && acks_.due(now)); }
  // Only an acknowledgement is due, and it has not waited for a packet to ride on yet: from now on it has.
  bool LetAckWait(Time now);
  uint32_t control_port() const;

  // The entropy that the next control packet must take; nullopt: any.
  std::optional<uint16_t> ProvenPathForControl(uint32_t port) const {
    return send_state_.demand_pending == 0 || sender_ == nullptr ? std::nullopt : sender_->ProvenPathForDemand(port);
  }
  // The most payload bytes of a packet through this port.
  uint32_t PayloadBytes(uint32_t port) const {
    return sender_ == nullptr ? memo_.PayloadBytes(port, peer_.segment_bytes) : sender_->PayloadBytes(port);
  }

  // ---- whether the peer still has it
  // A question is to be sent, in a packet of its own; what it says, with this token, which nobody can guess.
  bool ask_due() const { return open() && keepalive_.ask_due(); }
  wire::PresencePacket TakeAsk(uint64_t token) {
    keepalive_.TakeAsk(token);
    return {.connection = id(), .token = token};
  }
  // Somebody says that the peer does not have it.
  void HandleGone(const wire::PresencePacket& packet, Time now);

  // ---- time. What only waits to be sent (in the endpoint's control list) needs no timer.
  Time PollTimeout();
  void HandleTimeout(Time now);

  size_t memory_bytes() const {
    return sizeof(*this) - sizeof(receiver_) + receiver_.memory_bytes() + acks_.memory_bytes() + MemoBytes() +
           (sender_ == nullptr ? 0 : sender_->memory_bytes()) + (channel_ == nullptr ? 0 : channel_->memory_bytes()) +
           (handshake_ == nullptr ? 0 : sizeof(Handshake) + handshake_->accept.capacity()) +
           (fenced_ ? sizeof(WriteFences) : 0);
  }

  ListLink ready_link;    // may have data to send
  ListLink control_link;  // has control packets to send
  ListLink touched_link;  // heard of something in this burst
  ListLink retime_link;   // its timer may be wrong

 private:
  void OnAck(const wire::AckFrame& frame) override;
  void OnGrant(const wire::GrantFrame& frame) override;
  void OnDemand(const wire::DemandFrame& frame) override;
  void OnTrimmed(const wire::TrimmedFrame& frame) override;
  void OnTelemetry(const wire::TelemetryFrame& frame) override;
  void OnFence(const wire::FenceFrame& frame) override;
  void OnFenced(const wire::FencedFrame& frame) override;
  void OnNotReady(uint32_t message) override;
  void OnPing(uint32_t value) override;
  void OnPong(uint32_t value) override;
  void OnClose(uint16_t reason) override;
  void OnCloseAck(uint16_t reason) override;
  void OnAbort(uint16_t reason) override;

  void Heard(uint32_t port, Time now);
  size_t MemoBytes() const {
    return (memo_.flows.size() > 1 ? memo_.flows.capacity() * sizeof(SenderMemo::Flow) : 0) +
           (memo_.payload_limits == nullptr ? 0 : memo_.payload_limits->capacity() * sizeof(PayloadLimit));
  }
  // Something other than an acknowledgement is to be said.
  bool frames_due() const {
    if (send_close_ || send_close_ack_ || send_abort_ || send_pong_ || keepalive_.ping_due()) return true;
    return open() && (keepalive_.ask_due() || receiver_.control_pending() || send_state_.demand_pending != 0 ||
                      send_state_.fence_pending != 0 || (fenced_ && context_->write_fences[id()].answer_due()));
  }
  bool expects_peer() const;
  bool FindPairs();
  void DropSender();
  Time SenderTimeout();
  bool HandleSenderTimeout(Time now);
  void ClosePeers();
  // Its packets are so much smaller than its ports' that more of them leave together.
  bool is_narrow() const;
  void MeasureRtt(uint32_t packets, Time now);

  // First what every packet looks at, last what few do.
  CoreContext* context_;
  State state_ = State::kReserved;
  bool released_ = true;    // path state is given back
  bool say_abort_ = false;  // lingering: answer with an abort
  bool send_close_ = false, send_close_ack_ = false, send_abort_ = false, send_pong_ = false;
  uint8_t tries_ = 0;      // of requests, later of saying that it closes
  uint8_t last_port_ = 0;  // where the peer was heard last, or is to be spoken to first
  bool sender_touched_ = false;
  bool fenced_ = false;  // the peer has asked for fences: CoreContext::write_fences
  SendState send_state_;
  uint32_t listener_ = 0;
  uint32_t pong_value_ = 0;
  Time sender_timeout_ = Time::Never();  // of sender_, unless it was touched since
  std::unique_ptr<Sender> sender_;       // only while it has something to do, and a while after
  Keepalive keepalive_;
  Time last_active_;
  Time retry_at_ = Time::Never();
  std::unique_ptr<SecureChannel> channel_;
  std::unique_ptr<Handshake> handshake_;  // only while it is being set up
  std::unique_ptr<ConnectionEvent> event_;
  std::unique_ptr<RttProbe> rtt_probe_;  // while payload comes
  AckState acks_;
  PeerInfo peer_;
  Receiver receiver_;
  SenderMemo memo_;  // counts while there is no sender
  uint64_t nonce_ = 0;
  Time started_;  // connecting, closing or lingering
};

}  // namespace paceline
