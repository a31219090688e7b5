#include "transport/core/connection.h"

#include <algorithm>
#include <bit>

#include "transport/wire/packet.h"

namespace paceline {
namespace {

constexpr Duration kFirstRequestRetry = Duration::Millis(50);
constexpr Duration kRoundGrace = Duration::Millis(2);  // of a search, for answers behind the first one
constexpr uint8_t kRoundTries = 3;                     // of a search that got answers before
constexpr Duration kFirstCloseRetry = Duration::Millis(20);
constexpr uint8_t kCloseTries = 8;
constexpr uint8_t kMostDoublings = 5;          // of a retry interval
constexpr uint8_t kMostDoublingsAnswered = 3;  // of a request's, once the server has sent a cookie
constexpr Duration kLinger = Duration::Seconds(1);

}  // namespace

Connection::Connection(CoreContext* context, ConnectionId id)
    : context_(context), receiver_(context, &peer_, this, &acks_), memo_(context->options.assumed_rtt) {
  peer_.local_connection = id;
}

Connection::~Connection() {
  sender_.reset();  // it looks at the other members as it ends
  if (fenced_) context_->write_fences.erase(id());
  ClosePeers();
}

Sender& Connection::sender() {
  if (sender_ == nullptr) {
    sender_ = std::make_unique<Sender>(context_, &peer_, &acks_, &send_state_, memo_);
    released_ = false;
  }
  sender_touched_ = true;
  return *sender_;
}

void Connection::DropSender() {
  sender_.reset();
  send_state_ = SendState();
  sender_touched_ = true;
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
  peer_.remote_ports = std::min<size_t>(peer.addresses.size(), limits::kMaxPorts) & PeerInfo::kMostRemotePorts;
  channel_ = std::move(channel);
  peer_.payload_crc = payload_crc && channel_ == nullptr;
  peer_.encrypted = channel_ != nullptr && channel_->encrypts();
  peer_.flow = {.remote_group = peer.remote_group, .base_rtt = peer.base_rtt};
  peer_.segment_bytes = peer.segment_bytes;
  peer_.atomics = peer.atomics;
  peer_.fences = peer.fences;
  peer_.bundles = peer.bundles;
  peer_.fragments = peer.fragments;
  peer_.routes = OpenRoutes(*context_->environment, context_->ports, peer.addresses);
  peer_.reach = peer_.routes.Reach();
  const uint32_t all = (1u << context_->ports.size()) - 1;
  const uint32_t wanted = peer.ports & peer_.reach, here = wanted != 0 ? wanted : peer_.reach;
  if (here != 0 && here != all) peer_.ports = static_cast<uint8_t>(here);
  if (!peer_.prefers(last_port_)) last_port_ = static_cast<uint8_t>(std::countr_zero(peer_.ports));
  for (const Port& port : context_->ports) {
    if (!peer_.reaches(port.index)) continue;
    if (peer_.segment_bytes == 0 || port.info.segment_bytes < peer_.segment_bytes) {
      peer_.segment_bytes = port.info.segment_bytes;
    }
  }
  uint32_t burst = TxBurst::kSegments;
  for (const Port& port : context_->ports) {
    if (!peer_.reaches(port.index)) continue;
    burst = std::min(burst, port.capabilities.BurstOf(peer_.segment_bytes + context_->data_header_bytes()));
  }
  peer_.burst_segments = burst & PeerInfo::kMostBurst;
  if (is_narrow()) ++context_->narrow_connections;
  state_ = State::kEstablished;
  keepalive_.Start(now);
  last_active_ = now;
  retry_at_ = Time::Never();
  handshake_.reset();
  receiver_.JoinSource();
  FinishBurst(now);
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
    tries_ = 0;
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
  if (peer_.remote_ports > 0) {  // buffers go back to the user: no card may read them from here on
    for (const Port& port : context_->ports) {
      if (!peer_.reaches(port.index)) continue;
      context_->environment->EndWrites(port.index, peer_.routes.handle[port.index], peer_.peer_connection);
    }
  }
  receiver_.FailAll(status, now);
  if (sender_ != nullptr) sender_->FailAll(status);
  DropSender();
  receiver_.ReleaseIdleState(now);
  if (was_open) {
    const bool lost = reason == CloseReason::kPeerLost || reason == CloseReason::kProtocolError;
    ++(lost ? context_->counters.connections_lost : context_->counters.connections_closed);
  }
  handshake_.reset();
  say_abort_ = say_abort;
  send_abort_ = say_abort && was_open;
  send_close_ = send_pong_ = false;
  keepalive_.Stop();
  retry_at_ = Time::Never();
  state_ = was_open ? State::kLingering : State::kFinished;
  started_ = now;
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
  if (is_narrow()) --context_->narrow_connections;
  CloseRoutes(*context_->environment, peer_.routes);
  peer_.remote_ports = 0;
}

bool Connection::is_narrow() const {
  return std::any_of(context_->ports.begin(), context_->ports.end(), [this](const Port& port) {
    return peer_.reaches(port.index) && peer_.burst_segments > std::max(1u, port.capabilities.burst_segments);
  });
}

PortPair Connection::RequestPair() const { return handshake_->pairs[handshake_->pair]; }

uint8_t Connection::RequestPorts() const {
  uint8_t ports = 0;
  for (const PortPair& pair : handshake_->pairs) {
    if (pair.shares_memory == RequestPair().shares_memory) ports |= static_cast<uint8_t>(1u << pair.local);
  }
  return ports;
}

bool Connection::FindPairs() {
  const ListenAddress& target = handshake_->address;
  std::vector<PortPair>& pairs = handshake_->pairs;
  if (pairs.empty()) {
    pairs = PairsToTry(*context_->environment, context_->ports, std::span(target.addresses).first(target.ports));
  }
  return !pairs.empty();
}

bool Connection::PrepareRequest(Time now) {
  Handshake& handshake = *handshake_;
  const bool found = FindPairs();
  if (std::exchange(handshake.awaiting, false)) {
    const bool asked = handshake.segment_bytes != 0;  // and the peer may have taken it: it is not to change
    if (found && !asked && handshake.search.has_value() && handshake.search->answered()) {
      handshake.search->EndRound();
      tries_ = 0;
      return true;
    }
    if (!asked && handshake.search.has_value() && handshake.search->under_way() && tries_ < kRoundTries) {
      handshake.search->RepeatRound();
    } else {  // one pair of ports that is down does not stop the others
      if (found) handshake.pair = (handshake.pair + 1) % handshake.pairs.size();
      if (!asked) handshake.search.reset();
    }
    tries_ = std::min<uint8_t>(static_cast<uint8_t>(tries_ + 1), kMostDoublings);
    ++handshake.retries;
  }
  if (!found) AwaitAnswer(now);
  return found;
}

void Connection::FillRequest(wire::InitPacket* init, LaneAddress* address) const {
  const ListenAddress& target = handshake_->address;
  init->client_connection = id();
  init->client_nonce = nonce_;
  init->listener_nonce = target.nonce;
  if (asks_with_cookie()) init->cookie = handshake_->cookie;
  init->credentials = handshake_->credentials;
  init->hello.private_data = handshake_->private_data;
  *address = target.addresses[RequestPair().remote];
}

void Connection::AwaitAnswer(Time now) {
  handshake_->awaiting = true;
  const auto after = [](uint8_t doublings) { return kFirstRequestRetry * (int64_t{1} << doublings); };
  if (handshake_->cookie == wire::Cookie{}) {
    retry_at_ = now + after(tries_);
    return;
  }
  // The server lives, and leaves requests unanswered while too many wait for its application. Intervals are random, as
  // thousands of clients may have begun together, and short: at least 14 tries within the default connect time-out.
  const Duration half = after(std::min(tries_, kMostDoublingsAnswered)) / 2;
  const uint64_t extra = context_->random.Below(static_cast<uint64_t>(half.nanos()));
  retry_at_ = now + half + Duration::Nanos(static_cast<int64_t>(extra));
}

void Connection::OnCookie(const wire::Cookie& cookie, uint32_t bytes, Time now) {
  if (state_ != State::kConnecting || !handshake_->search.has_value()) return;
  Handshake& handshake = *handshake_;
  PathMtuSearch& search = *handshake.search;
  if (search.done() && cookie == handshake.cookie) return;  // to another size of the request that it came for
  if (handshake.cookie == wire::Cookie{}) {
    // From now on only this kind of ports: the peer may take the request, and is not to see another one.
    const PortPair answered = RequestPair();
    std::vector<PortPair>& pairs = handshake.pairs;
    std::erase_if(pairs, [answered](const PortPair& pair) { return pair.shares_memory != answered.shares_memory; });
    handshake.pair = static_cast<size_t>(std::find(pairs.begin(), pairs.end(), answered) - pairs.begin());
  }
  handshake.cookie = cookie;
  search.OnAnswer(bytes);
  if (search.done()) handshake.awaiting = false;
  retry_at_ = search.done() ? now : std::min(retry_at_, now + kRoundGrace);
}

// ---- packets

void Connection::Heard(uint32_t port, Time now) {
  keepalive_.OnHeard(now);
  last_port_ = static_cast<uint8_t>(port);
  if (channel_ != nullptr && open()) NoteUse(now);          // opening it took ciphers, which are to be given back
  if (handshake_ != nullptr && open()) handshake_.reset();  // so it has our answer
}

void Connection::HandleData(const wire::DataHeader& header, uint32_t port, std::span<const Receiver::Arrival> packets,
                            Time now) {
  Heard(port, now);
  if (state_ == State::kLingering) {
    (say_abort_ ? send_abort_ : send_close_ack_) = true;
    return;
  }
  if (!open()) return;
  NoteUse(now);
  receiver_.HandleData(header, port, packets, now);
  MeasureRtt(static_cast<uint32_t>(packets.size()), now);
}

void Connection::HandlePlaced(uint32_t port, uint32_t immediate, uint32_t bytes, Time arrived, Time now) {
  if (peer_.encrypted) {
    ++context_->counters.rx_forged;
    return;
  }
  Heard(port, now);
  if (!open()) return;
  NoteUse(now);
  receiver_.HandlePlaced(port, immediate, bytes, arrived, now);
  MeasureRtt(1, now);
}

// A receiver that hands out credit wants to know it, where no lane states it.
void Connection::MeasureRtt(uint32_t packets, Time now) {
  if (!context_->measures_rtt) return;
  if (rtt_probe_ == nullptr) rtt_probe_ = std::make_unique<RttProbe>();
  if (rtt_probe_->OnArrival(packets, now)) keepalive_.Ping();
}

void Connection::HandleFenceHeld(uint32_t port) {
  if (!open() || !fenced_) return;
  ++context_->counters.fences_held;
  if (context_->write_fences[id()].OnHeld(port)) context_->environment->FenceWrites(port, id());
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
  Sender* sender = active_sender();
  if (sender == nullptr) return;
  sender->HandleAck(frame, context_->frames_arrived, context_->frames_now);
  receiver_.ReleaseRefused(sender->TakeDeliveredFailures());
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
  Sender* sender = active_sender();
  if (open() && sender != nullptr) sender->HandleTrimmed(frame, context_->frames_now);
}

void Connection::OnTelemetry(const wire::TelemetryFrame& frame) {
  if (open() && sender_ != nullptr) sender_->HandleTelemetry(frame);
}

// What is asked for here harms nobody but who asks: it is its own writes that do not arrive.
void Connection::OnFence(const wire::FenceFrame& frame) {
  if (!open()) return;
  const uint64_t end = acks_.UnwrapPsn(frame.end);
  const auto& ports = context_->ports;
  if (frame.port >= ports.size() || !ports[frame.port].capabilities.remote_placement || !acks_.MayBeSent(end)) {
    ++context_->counters.fences_refused;
    return;
  }
  NoteUse(context_->frames_now);
  fenced_ = true;
  if (context_->write_fences[id()].OnAsked(frame.port, end, acks_.UnwrapPsn(frame.from))) {
    context_->environment->FenceWrites(frame.port, id());
  }
}

void Connection::OnFenced(const wire::FencedFrame& frame) {
  Sender* sender = active_sender();
  if (!open() || sender == nullptr) return;
  sender->HandleFenced(frame, context_->frames_now);
  receiver_.ReleaseRefused(sender->TakeDeliveredFailures());
}

void Connection::OnNotReady(uint32_t message) {
  Sender* sender = active_sender();
  if (open() && sender != nullptr) sender->HandleNotReady(message, context_->frames_now);
}

void Connection::OnPing(uint32_t value) {
  send_pong_ = true;
  pong_value_ = value;
}

void Connection::OnPong(uint32_t value) {
  if (!open() || rtt_probe_ == nullptr || !rtt_probe_->OnPong(value, context_->frames_arrived)) return;
  const Duration rtt = rtt_probe_->rtt(), known = peer_.flow.base_rtt;
  if (rtt > known - known / 8 && rtt < known + known / 8) return;
  peer_.flow.base_rtt = rtt;
  context_->counters.base_rtt_nanos = static_cast<uint64_t>(rtt.nanos());
  receiver_.OnBaseRtt(rtt, context_->frames_now);
}

void Connection::HandleGone(const wire::PresencePacket& packet, Time now) {
  if (!open() || packet.connection != peer_.peer_connection || !keepalive_.OnGone(packet.token)) return;
  ++context_->counters.connections_gone;
  Finish(CloseReason::kPeerLost, OperationStatus::kPeerLost, false, "the peer does not have the connection any more",
         now);
}

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
  return ready_link.linked() && !frames_due() && !receiver_.grant_waits() && acks_.due(now) && acks_.Defer();
}

uint32_t Connection::control_port() const {
  if (context_->ports.size() == 1) return last_port_;
  const auto is_up = [this](const Port& port) { return port.up && peer_.reaches(port.index); };
  const auto is_good = [this, is_up](const Port& port) {
    return is_up(port) && (sender_ == nullptr || !sender_->suspects(port.index));
  };
  const auto& ports = context_->ports;
  if (is_good(ports[last_port_])) return last_port_;
  const auto found = std::find_if(ports.begin(), ports.end(), is_good);
  if (found != ports.end()) return found->index;
  const auto up = std::find_if(ports.begin(), ports.end(), is_up);
  return ports[last_port_].up || up == ports.end() ? last_port_ : up->index;
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
  if (keepalive_.TakePing()) {
    const auto value = rtt_probe_ != nullptr ? rtt_probe_->BeginPing(now) : static_cast<uint32_t>(now.nanos());
    wire::WriteValue(writer, wire::FrameType::kPing, value);
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
    if (wire::FenceFrame fence; writer.room() >= wire::kFenceBytes && send_state_.fence_pending != 0 &&
                                active_sender()->PollFence(&fence, now)) {
      wire::WriteFence(writer, fence);
    }
    if (wire::FencedFrame fenced;
        writer.room() >= wire::kMostFencedBytes && fenced_ && context_->write_fences[id()].PollAnswer(acks_, &fenced)) {
      wire::WriteFenced(writer, fenced);
    }
    for (uint32_t message; writer.room() >= 8 && receiver_.PollNotReady(&message);) {
      wire::WriteValue(writer, wire::FrameType::kNotReady, message);
    }
    if (wire::DemandFrame demand; writer.room() >= wire::kDemandBytes && send_state_.demand_pending != 0 &&
                                  active_sender()->PollDemand(&demand)) {
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

bool Connection::expects_peer() const { return !send_state_.drained() || receiver_.is_awaited(); }

Time Connection::SenderTimeout() {
  if (std::exchange(sender_touched_, false)) {
    sender_timeout_ = sender_ == nullptr ? Time::Never() : sender_->PollTimeout();
  }
  return sender_timeout_;
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
      return started_ + kLinger;
    case State::kEstablished:
    case State::kClosing:
      break;
  }
  Time next = std::min(keepalive_.PollTimeout(context_->options.keepalive, expects_peer()), retry_at_);
  next = std::min(next, SenderTimeout());
  if (!control_link.linked()) next = std::min(next, acks_.deadline());
  if (!released_) next = std::min(next, last_active_ + context_->options.idle_after);
  return next;
}

// False: nothing that it can do brings anything across.
bool Connection::HandleSenderTimeout(Time now) {
  if (SenderTimeout() > now) return true;
  Sender* sender = active_sender();
  const uint32_t before = sender->questions_in_a_row();
  sender->HandleTimeout(keepalive_.last_heard(), now);
  if (sender->questions_in_a_row() > before) keepalive_.OnQuestion(now);
  return sender->end_of_way().empty();
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
        const std::string detail = handshake_->hint.has_value() ? handshake_->hint_detail
                                   : handshake_->pairs.empty()  ? "none of our ports reaches any address of the peer"
                                   : handshake_->cookie == wire::Cookie{}
                                       ? "no answer to the connection request"
                                       : "the peer answers, but did not accept the connection request in time";
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
      if (now >= started_ + kLinger) state_ = State::kFinished;
      return;
    case State::kEstablished:
    case State::kClosing:
      break;
  }
  if (!HandleSenderTimeout(now)) {
    const std::string why(active_sender()->end_of_way());
    Finish(CloseReason::kPeerLost, OperationStatus::kPeerLost, true, why, now);
    return;
  }
  if (!keepalive_.HandleTimeout(options.keepalive, expects_peer(), options.peer_timeout, now)) {
    Finish(CloseReason::kPeerLost, OperationStatus::kPeerLost, true, "no sign of life", now);
    return;
  }
  if (state_ == State::kClosing && retry_at_ <= now) {
    retry_at_ = Time::Never();
    if (!send_state_.drained()) {
      retry_at_ = now + kFirstCloseRetry;
    } else if (tries_ == kCloseTries) {
      Finish(CloseReason::kLocal, OperationStatus::kConnectionClosed, false, "", now);
      return;
    } else {
      send_close_ = true;
      retry_at_ = now + kFirstCloseRetry * (int64_t{1} << std::min(tries_++, kMostDoublings));
    }
  }
  if (!released_ && now >= last_active_ + options.idle_after) {
    if ((sender_ == nullptr || sender_->idle()) && receiver_.idle()) {
      if (sender_ != nullptr) {
        memo_ = sender_->Memo();
        if (const Duration rtt = sender_->base_rtt(); rtt > Duration()) peer_.flow.base_rtt = rtt;
      }
      DropSender();
      receiver_.ReleaseIdleState(now);
      rtt_probe_.reset();
      if (channel_ != nullptr) channel_->Release();
      released_ = true;
    } else {
      last_active_ = now;
    }
  }
}

}  // namespace paceline
