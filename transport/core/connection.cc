#include "transport/core/connection.h"

#include <algorithm>

#include "transport/wire/packet.h"

namespace paceline {
namespace {

constexpr Duration kFirstRequestRetry = Duration::Millis(50);
constexpr Duration kFirstCloseRetry = Duration::Millis(20);
constexpr uint8_t kCloseTries = 8;
constexpr Duration kLinger = Duration::Seconds(1);
constexpr uint8_t kPingsBeforeLost = 3;
constexpr int64_t kIdleKeepaliveFactor = 15;  // a peer from which nothing is expected is asked this much more seldom

}  // namespace

Connection::Connection(CoreContext* context, ConnectionId id)
    : context_(context), memo_(context->options.assumed_rtt), receiver_(context, &peer_, this, &acks_) {
  peer_.local_connection = id;
}

Connection::~Connection() { ClosePeers(); }

Sender& Connection::sender() {
  if (sender_ == nullptr) {
    sender_ = std::make_unique<Sender>(context_, &peer_, &acks_, memo_);
    released_ = false;
  }
  return *sender_;
}

// ---- life cycle

void Connection::StartConnecting(const ListenAddress& address, uint64_t nonce, Time now) {
  state_ = State::kConnecting;
  handshake_ = std::make_unique<Handshake>();
  handshake_->address = address;
  nonce_ = nonce;
  started_ = now;
  retry_at_ = now;
}

void Connection::StartRequested(const wire::InitPacket& init, const crypto::Secret& digest, uint32_t listener,
                                Time now) {
  state_ = State::kRequested;
  handshake_ = std::make_unique<Handshake>();
  handshake_->hello = init.hello;
  handshake_->credentials = init.credentials;
  handshake_->init_digest = digest;
  nonce_ = init.client_nonce;
  peer_.peer_connection = init.client_connection;
  listener_ = listener;
  started_ = now;
  event_ = std::make_unique<ConnectionEvent>(ConnectionEvent{.kind = ConnectionEventKind::kRequest,
                                                             .connection = id(),
                                                             .listener = listener,
                                                             .private_data = init.hello.private_data});
}

void Connection::Establish(const EstablishedPeer& peer, bool payload_crc, std::unique_ptr<SecureChannel> channel,
                           Time now) {
  peer_.peer_connection = peer.peer_connection;
  peer_.remote_ports = static_cast<uint8_t>(std::min<size_t>(peer.addresses.size(), limits::kMaxPorts));
  channel_ = std::move(channel);
  peer_.payload_crc = payload_crc && channel_ == nullptr;
  peer_.encrypted = channel_ != nullptr && channel_->encrypts();
  peer_.flow = {.remote_group = peer.remote_group, .base_rtt = peer.base_rtt};
  peer_.segment_bytes = peer.segment_bytes;
  for (const Port& port : context_->ports) {
    if (peer_.segment_bytes == 0 || port.info.segment_bytes < peer_.segment_bytes) {
      peer_.segment_bytes = port.info.segment_bytes;
    }
    peer_.remote_of[port.index] = static_cast<uint8_t>(port.index % peer_.remote_ports);
    peer_.handle[port.index] = context_->environment->OpenPeer(port.index, peer.addresses[peer_.remote_of[port.index]]);
  }
  state_ = State::kEstablished;
  last_heard_ = last_ping_ = last_active_ = now;
  retry_at_ = Time::Never();
  handshake_.reset();
  ++context_->counters.connections_opened;
  event_ = std::make_unique<ConnectionEvent>(
      ConnectionEvent{.kind = ConnectionEventKind::kEstablished, .connection = id(), .listener = listener_});
}

void Connection::KeepAccept(std::span<const uint8_t> packet) {
  handshake_ = std::make_unique<Handshake>();
  handshake_->accept.assign(packet.begin(), packet.end());
}

void Connection::StartClosing(Time now) {
  if (state_ == State::kEstablished) {
    state_ = State::kClosing;
    started_ = now;
    receiver_.FailReceives(OperationStatus::kConnectionClosed, now);
    retry_at_ = now;
  } else if (state_ != State::kClosing && state_ != State::kLingering && state_ != State::kFinished) {
    Finish(CloseReason::kLocal, OperationStatus::kConnectionClosed, false, "", now);
  }
}

void Connection::Finish(CloseReason reason, OperationStatus status, bool say_abort, const std::string& detail,
                        Time now) {
  if (state_ == State::kLingering || state_ == State::kFinished) return;
  const bool was_open = open();
  const bool told = state_ != State::kReserved;
  receiver_.FailAll(status, now);
  if (sender_ != nullptr) sender_->FailAll(status);
  sender_.reset();
  receiver_.ReleaseIdleState(now);
  if (was_open) {
    const bool lost = reason == CloseReason::kPeerLost || reason == CloseReason::kProtocolError;
    ++(lost ? context_->counters.connections_lost : context_->counters.connections_closed);
  }
  handshake_.reset();
  say_abort_ = say_abort;
  send_abort_ = say_abort && was_open;
  send_close_ = send_ping_ = send_pong_ = false;
  retry_at_ = Time::Never();
  state_ = was_open ? State::kLingering : State::kFinished;
  linger_until_ = now + kLinger;
  if (told) {
    event_ = std::make_unique<ConnectionEvent>(ConnectionEvent{.kind = ConnectionEventKind::kClosed,
                                                               .connection = id(),
                                                               .listener = listener_,
                                                               .reason = reason,
                                                               .detail = detail});
  }
}

ConnectionEvent Connection::TakeEvent() { return std::move(*std::exchange(event_, nullptr)); }

void Connection::ClosePeers() {
  if (peer_.remote_ports == 0) return;
  for (const Port& port : context_->ports) context_->environment->ClosePeer(port.index, peer_.handle[port.index]);
  peer_.remote_ports = 0;
}

// Each try takes the next pair of ports: one that is down does not stop the others.
uint32_t Connection::request_port() const { return request_tries_ % static_cast<uint32_t>(context_->ports.size()); }

void Connection::TakeRequest(wire::InitPacket* init, LaneAddress* address, Time now) {
  const ListenAddress& target = handshake_->address;
  init->client_connection = id();
  init->client_nonce = nonce_;
  init->listener_nonce = target.nonce;
  init->cookie = handshake_->cookie;
  init->credentials = handshake_->credentials;
  *address = target.addresses[(request_tries_ / context_->ports.size()) % std::max<size_t>(1, target.ports)];
  retry_at_ = now + kFirstRequestRetry * (int64_t{1} << std::min<uint8_t>(request_tries_, 5));
  ++request_tries_;
}

void Connection::OnCookie(const wire::Cookie& cookie, Time now) {
  if (state_ != State::kConnecting) return;
  handshake_->cookie = cookie;
  retry_at_ = now;
  if (request_tries_ > 0) --request_tries_;  // the same pair of ports answered
}

// ---- packets

void Connection::Heard(uint32_t port, Time now) {
  last_heard_ = now;
  unanswered_pings_ = 0;
  last_port_ = static_cast<uint8_t>(port);
  if (channel_ != nullptr && open()) NoteUse(now);          // opening it took ciphers, which are to be given back
  if (handshake_ != nullptr && open()) handshake_.reset();  // so it has our answer
}

void Connection::HandleData(const wire::DataHeader& header, const Receiver::Arrival& arrival, Time now) {
  Heard(arrival.port, now);
  if (state_ == State::kLingering) {
    (say_abort_ ? send_abort_ : send_close_ack_) = true;
    return;
  }
  if (!open()) return;
  NoteUse(now);
  receiver_.HandleData(header, arrival, now);
}

void Connection::HandlePlaced(uint32_t port, uint32_t immediate, uint32_t bytes, Time now) {
  if (peer_.encrypted) {
    ++context_->counters.rx_forged;
    return;
  }
  Heard(port, now);
  if (!open()) return;
  NoteUse(now);
  receiver_.HandlePlaced(port, immediate, bytes, now);
}

bool Connection::HandleControl(std::span<const uint8_t> body, uint32_t port, Time arrived, Time now) {
  if (state_ == State::kConnecting || state_ == State::kRequested || state_ == State::kReserved) return true;
  Heard(port, now);
  context_->frames_now = now;
  context_->frames_arrived = arrived;
  return wire::ParseFrames(body, *this);
}

void Connection::OnAck(const wire::AckFrame& frame) {
  if (!open()) return;
  NoteUse(context_->frames_now);
  if (sender_ != nullptr) sender_->HandleAck(frame, context_->frames_arrived, context_->frames_now);
}

void Connection::OnGrant(const wire::GrantFrame& frame) {
  if (!open()) return;
  NoteUse(context_->frames_now);
  sender().HandleGrant(frame, context_->frames_now);
}

void Connection::OnDemand(const wire::DemandFrame& frame) {
  if (!open()) return;
  NoteUse(context_->frames_now);
  receiver_.HandleDemand(frame, context_->frames_now);
}

void Connection::OnTrimmed(const wire::TrimmedFrame& frame) {
  if (open() && sender_ != nullptr) sender_->HandleTrimmed(frame, context_->frames_now);
}

void Connection::OnTelemetry(const wire::TelemetryFrame& frame) {
  if (open() && sender_ != nullptr) sender_->HandleTelemetry(frame);
}

void Connection::OnNotReady(uint32_t message) {
  if (open() && sender_ != nullptr) sender_->HandleNotReady(message);
}

void Connection::OnPing(uint32_t value) {
  send_pong_ = true;
  pong_value_ = value;
}

void Connection::OnPong(uint32_t) {}  // that something was heard is all it says

void Connection::OnClose(uint16_t) {
  send_close_ack_ = true;
  if (!open()) return;
  const bool ours = state_ == State::kClosing;
  Finish(ours ? CloseReason::kLocal : CloseReason::kByPeer, OperationStatus::kConnectionClosed, false, "",
         context_->frames_now);
}

void Connection::OnCloseAck(uint16_t) {
  if (state_ == State::kClosing)
    Finish(CloseReason::kLocal, OperationStatus::kConnectionClosed, false, "", context_->frames_now);
}

void Connection::OnAbort(uint16_t) {
  Finish(CloseReason::kAborted, OperationStatus::kConnectionClosed, false, "", context_->frames_now);
}

// ---- what is to be said

bool Connection::LetAckWait(Time now) {
  return ready_link.linked() && !frames_due() && acks_.due(now) && acks_.Defer();
}

uint32_t Connection::control_port() const {
  if (context_->ports[last_port_].up) return last_port_;
  for (const Port& port : context_->ports) {
    if (port.up) return port.index;
  }
  return last_port_;
}

size_t Connection::BuildControl(std::span<uint8_t> buffer, Time now) {
  wire::Writer writer(buffer);
  wire::BeginPacket(writer);
  const size_t empty = writer.size();
  if (send_abort_) {
    wire::WriteReason(writer, wire::FrameType::kAbort, static_cast<uint16_t>(CloseReason::kAborted));
  } else if (send_close_ack_) {
    wire::WriteReason(writer, wire::FrameType::kCloseAck, 0);
  }
  send_abort_ = send_close_ack_ = false;
  if (std::exchange(send_pong_, false)) wire::WriteValue(writer, wire::FrameType::kPong, pong_value_);
  if (std::exchange(send_ping_, false)) {
    wire::WriteValue(writer, wire::FrameType::kPing, static_cast<uint32_t>(now.nanos()));
  }
  if (open()) {
    // A close says once more what has arrived: an earlier acknowledgement may be lost, or come behind it.
    if (acks_.pending() || (send_close_ && acks_.any_arrived())) {
      if (const wire::TelemetryFrame* telemetry = acks_.TakeTelemetry()) wire::WriteTelemetry(writer, *telemetry);
      wire::AckFrame ack;
      acks_.Build(&ack, now);
      wire::WriteAck(writer, ack);
      ++context_->counters.acks_sent;
    }
    if (wire::TrimmedFrame trimmed; receiver_.PollTrimmed(&trimmed)) wire::WriteTrimmed(writer, trimmed);
    for (uint32_t message; writer.room() >= 8 && receiver_.PollNotReady(&message);) {
      wire::WriteValue(writer, wire::FrameType::kNotReady, message);
    }
    if (wire::DemandFrame demand;
        writer.room() >= wire::kDemandBytes && sender_ != nullptr && sender_->PollDemand(&demand)) {
      wire::WriteDemand(writer, demand);
    }
    constexpr size_t kLargestGrant = 20 + wire::GrantFrame::kMaxClears * 24;
    if (wire::GrantFrame grant; writer.room() >= kLargestGrant && receiver_.PollGrant(&grant)) {
      wire::WriteGrant(writer, grant);
    }
    if (std::exchange(send_close_, false)) {
      wire::WriteReason(writer, wire::FrameType::kClose, static_cast<uint16_t>(CloseReason::kByPeer));
    }
  }
  if (writer.size() == empty) return 0;
  wire::FinishPacket(buffer.first(writer.size()), wire::PacketType::kControl, 0, peer_.peer_connection);
  return writer.size();
}

// ---- time

bool Connection::expects_peer() const {
  return (sender_ != nullptr && !sender_->drained()) || receiver_.operations() > 0;
}

Time Connection::KeepaliveAt() const {
  const bool often = unanswered_pings_ > 0 || expects_peer();
  const Duration interval = context_->options.keepalive * (often ? 1 : kIdleKeepaliveFactor);
  return std::max(last_heard_, last_ping_) + interval;
}

Time Connection::PollTimeout() {
  switch (state_) {
    case State::kReserved:
    case State::kFinished:
      return Time::Never();
    case State::kConnecting:
      return std::min(retry_at_, give_up_at());
    case State::kRequested:
      return started_ + context_->options.connect_timeout * 4;
    case State::kLingering:
      return linger_until_;
    case State::kEstablished:
    case State::kClosing:
      break;
  }
  Time next = std::min(KeepaliveAt(), retry_at_);
  if (sender_ != nullptr) next = std::min(next, sender_->PollTimeout());
  if (!control_link.linked()) next = std::min(next, acks_.deadline());
  if (!released_) next = std::min(next, last_active_ + context_->options.idle_after);
  return next;
}

void Connection::HandleTimeout(Time now) {
  const EndpointOptions& options = context_->options;
  switch (state_) {
    case State::kReserved:
    case State::kFinished:
      return;
    case State::kConnecting:
      if (now >= give_up_at()) {
        const CloseReason reason = handshake_->hint.value_or(CloseReason::kUnreachable);
        const std::string detail =
            handshake_->hint.has_value() ? handshake_->hint_detail : "no answer to the connection request";
        Finish(reason, OperationStatus::kPeerLost, false, detail, now);
      }
      return;  // the endpoint polls the request
    case State::kRequested:
      if (now >= started_ + options.connect_timeout * 4) {
        Finish(CloseReason::kUnreachable, OperationStatus::kPeerLost, false, "the request was not accepted in time",
               now);
      }
      return;
    case State::kLingering:
      if (now >= linger_until_) state_ = State::kFinished;
      return;
    case State::kEstablished:
    case State::kClosing:
      break;
  }
  if (sender_ != nullptr && sender_->PollTimeout() <= now) sender_->HandleTimeout(now);
  if (sender_ != nullptr && sender_->path_dead()) {
    Finish(CloseReason::kPeerLost, OperationStatus::kPeerLost, true, "a path with remote placement stays silent", now);
    return;
  }
  if (KeepaliveAt() <= now) {
    if (unanswered_pings_ >= kPingsBeforeLost && now - last_heard_ >= options.peer_timeout) {
      Finish(CloseReason::kPeerLost, OperationStatus::kPeerLost, true, "no sign of life", now);
      return;
    }
    send_ping_ = true;
    last_ping_ = now;
    if (unanswered_pings_ < 255) ++unanswered_pings_;
  }
  if (state_ == State::kClosing && retry_at_ <= now) {
    retry_at_ = Time::Never();
    if (sender_ != nullptr && !sender_->drained()) {
      retry_at_ = now + kFirstCloseRetry;
    } else if (close_tries_ == kCloseTries) {
      Finish(CloseReason::kLocal, OperationStatus::kConnectionClosed, false, "", now);
      return;
    } else {
      send_close_ = true;
      retry_at_ = now + kFirstCloseRetry * (int64_t{1} << std::min<uint8_t>(close_tries_++, 5));
    }
  }
  if (!released_ && now >= last_active_ + options.idle_after) {
    if ((sender_ == nullptr || sender_->idle()) && receiver_.idle()) {
      if (sender_ != nullptr) memo_ = sender_->Memo();
      sender_.reset();
      receiver_.ReleaseIdleState(now);
      if (channel_ != nullptr) channel_->Release();
      released_ = true;
    } else {
      last_active_ = now;
    }
  }
}

}  // namespace paceline
