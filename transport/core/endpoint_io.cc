#include <algorithm>
#include <utility>

#include "transport/core/endpoint_impl.h"

namespace paceline {
namespace {

Time ArrivalOf(const RxSegment& segment, const LaneCapabilities& lane, Time now) {
  return lane.rx_timestamps ? std::min(segment.received_at, now) : now;
}

// Padding, of a handshake's packet.
uint32_t BytesBehind(const wire::CommonHeader& header, const RxSegment& segment) {
  return segment.data_bytes - header.header_bytes + (segment.payload == nullptr ? 0 : segment.payload_bytes);
}

// Control packets in the order in which a lane can send most of them together: to one peer behind each other, the
// longer ones first, for only the last of a message may be shorter than the others.
void GroupForLane(std::span<TxSegment> packets) {
  const auto goes_first = [](const TxSegment& a, const TxSegment& b) {
    if (a.peer != b.peer) return a.peer < b.peer;
    if (a.header_bytes != b.header_bytes) return a.header_bytes > b.header_bytes;
    return a.header < b.header;  // as they were made
  };
  if (!std::is_sorted(packets.begin(), packets.end(), goes_first))
    std::sort(packets.begin(), packets.end(), goes_first);
}

}  // namespace

void Endpoint::Impl::TakeSegments(uint32_t port, std::span<const RxSegment> segments, Time now) {
  taking_ = true;
  while (!segments.empty()) {
    size_t taken = 1;
    if (segments.front().guessed) {
      taken = TakeGuessed(port, segments, now);
    } else if (segments.front().kind == SegmentKind::kPacket) {
      taken = HandlePacket(port, segments, now);
      context_.counters.rx_packets += taken;
    } else {
      HandleNotice(port, segments.front(), now);
    }
    segments = segments.subspan(taken);
  }
}

void Endpoint::Impl::HandleNotice(uint32_t port, const RxSegment& segment, Time now) {
  if (segment.kind != SegmentKind::kFenced) ++context_.counters.rx_packets;
  Connection* connection = Find(segment.connection);
  if (connection == nullptr) {
    ++context_.counters.rx_unknown_connection;
    return;
  }
  if (segment.kind == SegmentKind::kWrite) {
    const Time arrived = ArrivalOf(segment, context_.ports[port].capabilities, now);
    connection->HandlePlaced(port, segment.immediate, segment.placed_bytes, arrived, now);
  } else {
    connection->HandleFenceHeld(port);
  }
  Touch(connection);
}

void Endpoint::Impl::HandleRiders(Time now) {
  for (const Riders& riders : riders_) {
    Connection* connection = Find(riders.connection);
    if (connection == nullptr) continue;
    if (!connection->HandleControl(riders.frames, riders.port, riders.arrived, now)) ++context_.counters.rx_malformed;
  }
  riders_.clear();
}

void Endpoint::Impl::FinishSegments(Time now) {
  HandleRiders(now);
  taking_ = false;
  FinishTouched(now);
}

void Endpoint::Impl::FinishTouched(Time now) {
  if (taking_) return;
  while (Connection* connection = touched_.PopFront()) {
    if (connection->open()) connection->FinishBurst(now);
    After(connection, now);
  }
}

size_t Endpoint::Impl::HandlePacket(uint32_t port, std::span<const RxSegment> segments, Time now) {
  const RxSegment& segment = segments.front();
  EndpointCounters& counters = context_.counters;
  const std::span<const uint8_t> packet(segment.data, segment.data_bytes);
  bool bad_checksum = false;
  auto common = wire::ParseCommon(packet, &bad_checksum);
  if (!common.has_value()) {
    ++(bad_checksum ? counters.rx_bad_checksum : counters.rx_malformed);
    return 1;
  }
  // A refusal looks the same in every version: it is how a peer of another version says so.
  if (common->version != wire::kVersion && common->type != wire::PacketType::kRefuse) {
    if (common->type == wire::PacketType::kInit) RefuseVersion(port, packet.subspan(wire::kCommonBytes), segment);
    return 1;
  }
  const auto body = packet.subspan(wire::kCommonBytes, common->header_bytes - wire::kCommonBytes);
  const Time arrived = ArrivalOf(segment, context_.ports[port].capabilities, now);
  switch (common->type) {
    case wire::PacketType::kData:
      return HandleData(port, segments, *common, now);
    case wire::PacketType::kControl: {
      Connection* connection = Find(common->connection);
      if (connection == nullptr) {
        ++counters.rx_unknown_connection;
        return 1;
      }
      std::span<const uint8_t> nothing;
      if (!Open(*connection, packet, *common, nothing)) return 1;
      HandleRiders(now);  // they came first, and this may close what they speak of
      const auto frames = packet.subspan(wire::kCommonBytes, common->header_bytes - wire::kCommonBytes);
      if (!connection->HandleControl(frames, port, arrived, now)) ++counters.rx_malformed;
      Touch(connection);
      return 1;
    }
    case wire::PacketType::kInit:
      HandleInit(port, body, BytesBehind(*common, segment), *segment.source, now);
      return 1;
    case wire::PacketType::kCookie:
      HandleCookie(common->connection, body, BytesBehind(*common, segment), now);
      return 1;
    case wire::PacketType::kAccept:
      HandleAccept(common->connection, body, now);
      return 1;
    case wire::PacketType::kRefuse:
      HandleRefuse(common->connection, body, now);
      return 1;
    case wire::PacketType::kAsk:
      HandleAsk(port, common->connection, body, *segment.source);
      return 1;
    case wire::PacketType::kGone:
      HandleGone(common->connection, body, now);
      return 1;
    case wire::PacketType::kInvalid:
      break;
  }
  ++counters.rx_malformed;
  return 1;
}

size_t Endpoint::Impl::HandleData(uint32_t port, std::span<const RxSegment> segments, wire::CommonHeader& common,
                                  Time now) {
  EndpointCounters& counters = context_.counters;
  const RxSegment& first = segments.front();
  Connection* connection = Find(common.connection);
  if (connection == nullptr) {
    ++counters.rx_unknown_connection;
    return 1;
  }
  SecureChannel* channel = connection->channel();
  if (first.trimmed && channel != nullptr) {  // what is left of it proves nothing
    ++counters.rx_trimmed;
    return 1;
  }
  const std::span<const uint8_t> packet(first.data, first.data_bytes);
  std::span<const uint8_t> payload = packet.subspan(common.header_bytes);
  if (first.payload != nullptr && !payload.empty()) {
    ++counters.rx_malformed;
    return 1;
  }
  if (first.payload != nullptr) payload = {first.payload, first.payload_bytes};
  if (!Open(*connection, packet, common, payload)) return 1;
  const auto header = wire::ParseData(common, packet);
  if (!header.has_value()) {
    ++counters.rx_malformed;
    return 1;
  }
  const LaneCapabilities& lane = context_.ports[port].capabilities;
  const auto fill = [&](Receiver::Arrival& arrival, const RxSegment& segment, std::span<const uint8_t> bytes) {
    arrival.payload = bytes.empty() ? nullptr : bytes.data();
    arrival.payload_bytes = bytes.empty() ? segment.phantom_bytes : static_cast<uint32_t>(bytes.size());
    arrival.marked = segment.congestion_experienced;
    arrival.trimmed = segment.trimmed;
    arrival.arrived = ArrivalOf(segment, lane, now);
    arrival.telemetry = segment.telemetry;
  };
  size_t count = 1;
  run_[0].stamp = wire::StampOf(*header);
  fill(run_[0], first, payload);
  if (channel == nullptr && header->frames.empty()) {
    const auto begin = packet.first(common.header_bytes);
    const size_t most = std::min(segments.size(), run_.size());
    for (; count < most; ++count) {
      const RxSegment& segment = segments[count];
      if (segment.kind != SegmentKind::kPacket || segment.trimmed) break;
      const std::span<const uint8_t> bytes(segment.data, segment.data_bytes);
      if (!wire::ReadStamp(begin, bytes, &run_[count].stamp)) break;
      std::span<const uint8_t> behind = bytes.subspan(begin.size());
      if (segment.payload != nullptr) {
        if (!behind.empty()) break;  // malformed
        behind = {segment.payload, segment.payload_bytes};
      }
      fill(run_[count], segment, behind);
    }
  }
  connection->HandleData(*header, port, std::span(run_).first(count), now);
  if (lane.least_guessed_bytes > 0 && count > 1) {
    const uint64_t end = run_[count - 1].stamp.offset + run_[count - 1].payload_bytes;
    NoteRun(port, connection->id(), *header, common.header_bytes, end);
  }
  if (!header->frames.empty()) {
    riders_.push_back({connection->id(), port, ArrivalOf(first, lane, now), header->frames});
  }
  Touch(connection);
  return count;
}

bool Endpoint::Impl::Open(Connection& connection, std::span<const uint8_t> packet, wire::CommonHeader& common,
                          std::span<const uint8_t>& payload) {
  SecureChannel* channel = connection.channel();
  const bool claims = (common.flags & wire::kProtected) != 0;
  if (channel == nullptr && !claims) return true;
  if (channel == nullptr || !claims) {
    // The peer's first packets may overtake its answer to our request.
    if (connection.state() != Connection::State::kConnecting) ++context_.counters.rx_forged;
    return false;
  }
  if (channel->encrypts() && decrypted_.size() < payload.size()) decrypted_.resize(payload.size());
  switch (channel->Open(packet.first(common.header_bytes), payload, decrypted_.data())) {
    case SecureChannel::Verdict::kGenuine:
      break;
    case SecureChannel::Verdict::kForged:
      ++context_.counters.rx_forged;
      connection.NoteForged();
      return false;
    case SecureChannel::Verdict::kReplayed:
      ++context_.counters.rx_replayed;
      return false;
  }
  common.flags &= static_cast<uint8_t>(~wire::kProtected);
  common.header_bytes = static_cast<uint16_t>(common.header_bytes - SecureChannel::kTrailerBytes);
  if (channel->encrypts()) payload = std::span(decrypted_).first(payload.size());
  return true;
}

void Endpoint::Impl::Seal(Connection& connection, TxBurst& burst, size_t at, size_t count) {
  SecureChannel* channel = connection.channel();
  if (channel == nullptr) return;
  for (size_t i = at; i < at + count; ++i) {
    TxSegment& segment = burst.segments[i];
    if (segment.kind != SegmentKind::kPacket) continue;
    std::span<const uint8_t> payload;
    if (segment.payload != nullptr) payload = {segment.payload, segment.payload_bytes};
    uint8_t* encrypted = nullptr;
    if (channel->encrypts() && !payload.empty()) {
      encrypted = context_.burst_memory.Next();
      context_.burst_memory.Use(payload.size());
    }
    segment.header_bytes =
        static_cast<uint16_t>(channel->Seal(burst.headers[i], segment.header_bytes, payload, encrypted));
    if (encrypted != nullptr) segment.payload = encrypted;
  }
}

size_t Endpoint::Impl::PollTransmit(uint32_t port, TxBurst& burst, size_t room, Time now) {
  room = std::min(room, TxBurst::kSegments);
  if (!reply_peers_.empty()) ReleaseReplyPeers();
  if (any_queue_starved()) FeedStarvedQueues(now);
  context_.burst_memory.BeginBurst();
  size_t filled = 0;
  // Strangers may ask for more than a burst holds, pass after pass.
  const bool others = !control_.empty() || !ready_.empty();
  if (!replies_.empty()) filled += TransmitReplies(port, burst, others ? std::max<size_t>(room / 4, 1) : room);
  // Acknowledgements of connections that have data wait for it, as riders; what found no packet goes behind the data,
  // or with the next burst, but no later.
  if (!control_.empty()) filled += TransmitControl(port, burst, filled, room, now, AckPolicy::kMayWait);
  // What a port that is down took would be lost; another that is up gets it instead.
  if (!context_.ports[port].up &&
      std::any_of(context_.ports.begin(), context_.ports.end(), [](const Port& other) { return other.up; })) {
    return filled;
  }
  constexpr int kMostStalled = 16;  // in a row: the rest has its turn in the next pass
  int stalled = 0;
  for (Connection* connection = ready_.front(); filled < room && connection != nullptr;) {
    const SendState& state = connection->send_state();
    if (state.may_have_more() && !state.may_have_more(port)) {
      connection = ready_.Next(connection);  // only other ports may have something for it
      continue;
    }
    Sender* sender = connection->active_sender();
    const size_t quantum = connection->peer().burst_segments;
    const size_t take =
        sender == nullptr ? 0
                          : std::min({room - filled, quantum + quantum / 4, RoomTo(*connection, port, burst, filled)});
    if (sender != nullptr && take == 0) {
      connection = ready_.Next(connection);  // its turn comes when the peer takes more
      continue;
    }
    Connection* next = ready_.Next(connection);
    connection->ready_link.Unlink();
    if (sender == nullptr) {  // it has ended
      connection = next;
      continue;
    }
    const size_t more = sender->Fill(port, burst, filled, take, now);
    Seal(*connection, burst, filled, more);
    filled += more;
    // What this port cannot send now, another may: it stays ready, but this port does not try again at once.
    stalled = more == 0 && state.may_have_more(port) ? stalled + 1 : 0;
    After(connection, now);
    if (stalled == kMostStalled) break;
    connection = next != nullptr ? next : stalled == 0 ? ready_.front() : nullptr;
  }
  if (!control_.empty()) filled += TransmitControl(port, burst, filled, room, now, AckPolicy::kNow);
  return filled;
}

// What the peer of this connection takes beside what the burst has for it already.
size_t Endpoint::Impl::RoomTo(const Connection& connection, uint32_t port, const TxBurst& burst, size_t filled) const {
  const uint32_t peer = connection.peer().routes.handle[port];
  const size_t room = context_.environment->RoomTo(port, peer);
  if (room > TxBurst::kSegments) return room;
  const auto begin = burst.segments.begin();
  const auto taken =
      static_cast<size_t>(std::count_if(begin, begin + static_cast<std::ptrdiff_t>(filled),
                                        [peer](const TxSegment& segment) { return segment.peer == peer; }));
  return room - std::min(room, taken);
}

size_t Endpoint::Impl::TransmitReplies(uint32_t port, TxBurst& burst, size_t room) {
  size_t filled = 0;
  for (auto next = replies_.begin(); filled < room && next != replies_.end();) {
    const Reply& reply = *next;
    uint32_t peer = 0;
    if (reply.connection != kNoConnection) {
      Connection* connection = Find(reply.connection);
      if (connection == nullptr || connection->peer().remote_ports == 0) {
        next = replies_.erase(next);
        continue;
      }
      if (connection->control_port() != port) {
        ++next;
        continue;
      }
      peer = connection->peer().routes.handle[port];
    } else {
      if (reply.port != port) {
        ++next;
        continue;
      }
      peer = context_.environment->OpenPeer(port, reply.address);
      if (peer == 0) {
        next = replies_.erase(next);
        continue;
      }
      reply_peers_.emplace_back(port, peer);
    }
    PutHandshake(burst, filled, peer, std::span(reply.bytes).first(reply.size), reply.padded_bytes);
    burst.segments[filled].expendable = reply.connection == kNoConnection;
    if (reply.path == AnswerPath::kOther) burst.segments[filled].entropy = NextControlEntropy(port);
    ++filled;
    next = replies_.erase(next);
  }
  return filled;
}

void Endpoint::Impl::SetControl(TxBurst& burst, size_t at, uint32_t peer, size_t size) {
  TxSegment& segment = burst.segments[at];
  segment = TxSegment{};
  segment.control = true;
  segment.peer = peer;
  segment.header = burst.headers[at].data();
  segment.header_bytes = static_cast<uint16_t>(size);
  ++context_.counters.tx_packets;
}

void Endpoint::Impl::PutHandshake(TxBurst& burst, size_t at, uint32_t peer, std::span<const uint8_t> packet,
                                  size_t padded_bytes) {
  std::copy(packet.begin(), packet.end(), burst.headers[at].begin());
  SetControl(burst, at, peer, packet.size());
  if (padded_bytes <= packet.size()) return;
  burst.segments[at].payload = context_.padding.data();
  burst.segments[at].payload_bytes =
      static_cast<uint32_t>(std::min(padded_bytes - packet.size(), context_.padding.size()));
}

size_t Endpoint::Impl::TransmitControl(uint32_t port, TxBurst& burst, size_t at, size_t room, Time now,
                                       AckPolicy acks) {
  // Each single frame fits into the least; what finds no room goes in the next packet.
  const size_t most = std::clamp(context_.ports[port].capabilities.max_packet_bytes, limits::kLeastPacketBytes,
                                 limits::kMaxControlBytes) -
                      context_.trailer_bytes;
  size_t filled = 0;
  // One path for all where the lane sends packets together: it hands over those to one peer in few calls then, of
  // however many connections. (On a lane that sends each by itself they spread as data does.)
  const bool together = context_.ports[port].sends_bursts();
  bool chosen = false;
  uint16_t entropy = 0;
  for (Connection* connection = control_.front(); connection != nullptr && at + filled < room;) {
    Connection* next = control_.Next(connection);
    if (connection->state() == Connection::State::kConnecting) {
      filled += TransmitRequest(connection, port, burst, at + filled, room, now);
    } else if (connection->control_port() == port && !(acks == AckPolicy::kMayWait && connection->LetAckWait(now))) {
      connection->control_link.Unlink();
      const uint32_t passes = connection->PayloadBytes(port) + context_.data_header_bytes();
      const std::span<uint8_t> packet =
          std::span(burst.headers[at + filled])
              .first(std::min<size_t>(most, std::max(passes, limits::kLeastPacketBytes) - context_.trailer_bytes));
      const bool asks = connection->ask_due();
      const std::optional<uint16_t> proven = connection->ProvenPathForControl(port);
      const size_t size = asks ? BuildAsk(*connection, packet) : connection->BuildControl(packet, now);
      if (size > 0) {
        SetControl(burst, at + filled, connection->peer().routes.handle[port], size);
        if (!asks) {  // who answers a question may not have our keys any more, and answers to where it came from
          if (!std::exchange(chosen, together)) entropy = NextControlEntropy(port);
          burst.segments[at + filled].entropy = proven.value_or(entropy);
          Seal(*connection, burst, at + filled, 1);
        }
        ++filled;
      }
      After(connection, now);
    }
    connection = next;
  }
  if (together && filled > 1) GroupForLane(std::span(burst.segments).subspan(at, filled));
  return filled;
}

uint16_t Endpoint::Impl::NextControlEntropy(uint32_t port) {
  const uint32_t entropies = std::max(1u, context_.ports[port].capabilities.entropies);
  control_entropy_ = control_entropy_ + 1 >= entropies ? 0 : control_entropy_ + 1;
  return static_cast<uint16_t>(control_entropy_);
}

size_t Endpoint::Impl::TransmitRequest(Connection* connection, uint32_t port, TxBurst& burst, size_t at, size_t room,
                                       Time now) {
  if (!connection->RequestDue(now) || !connection->PrepareRequest(now)) {
    connection->control_link.Unlink();
    After(connection, now);
    return 0;
  }
  // Stays until its port is asked.
  const uint32_t wanted = connection->RequestPair().local;
  if (wanted != port && context_.ports[wanted].up) return 0;
  LaneAddress address;
  std::array<uint8_t, limits::kMaxControlBytes> request;
  const size_t size = BuildRequest(*connection, port, request, &address);
  const uint32_t peer = context_.environment->OpenPeer(port, address);
  size_t filled = 0;
  PathMtuSearch& search = *connection->handshake().search;
  if (peer != 0) {  // else it cannot be reached any more, or not through this port
    reply_peers_.emplace_back(port, peer);
    const uint16_t entropy = connection->asks_by_other_path() ? NextControlEntropy(port) : uint16_t{0};
    const auto put = [&](size_t padded_bytes) {
      PutHandshake(burst, at + filled, peer, std::span(request).first(size), padded_bytes);
      burst.segments[at + filled++].entropy = entropy;
    };
    if (search.done()) {
      put(size);
    } else {
      for (; search.next() != 0 && at + filled < room; search.Next()) put(search.next());
      if (search.next() != 0) return filled;
    }
  }
  connection->control_link.Unlink();
  connection->AwaitAnswer(now);
  After(connection, now);
  return filled;
}

Time Endpoint::Impl::PollTimeout() {
  if (context_.device_copies.any_failed()) return Time();
  SetTimers();
  Time next = timers_.next();
  for (const Port& port : context_.ports) {
    if (port.receiver != nullptr) next = std::min(next, port.receiver->PollTimeout());
  }
  return next;
}

void Endpoint::Impl::SetTimers() {
  while (Connection* connection = retime_.PopFront()) {
    timers_.Schedule(connection->id() & kSlotMask, connection->PollTimeout());
  }
}

// Not where they failed: a burst that is being filled may hold other segments of the same connection.
void Endpoint::Impl::EndFailedCopies(Time now) {
  for (const ConnectionId id : context_.device_copies.TakeFailed()) {
    Connection* connection = Find(id);
    if (connection == nullptr) continue;
    connection->Finish(CloseReason::kLocal, OperationStatus::kConnectionClosed, true,
                       "a copy from or to memory of a GPU failed", now);
    After(connection, now);
  }
}

void Endpoint::Impl::HandleTimeout(Time now) {
  EndFailedCopies(now);
  SetTimers();
  uint32_t slot;
  while (timers_.PopDue(now, &slot)) {
    Connection* connection = slots_[slot].connection.get();
    if (connection == nullptr) continue;
    if (connection->PollTimeout() <= now) connection->HandleTimeout(now);
    After(connection, now);
  }
  std::array<Grant, 32> grants;
  for (Port& port : context_.ports) {
    if (port.receiver == nullptr || port.receiver->PollTimeout() > now) continue;
    size_t n;
    do {
      n = port.receiver->PollGrants(now, grants);
      for (size_t i = 0; i < n; ++i) {
        Connection* connection = port.flow_owner[grants[i].flow];
        if (connection == nullptr) continue;
        Receiver& receiver = connection->receiver();
        receiver.OnGrant(port.index, grants[i]);
        if (receiver.control_pending() && !connection->control_link.linked()) control_.PushBack(connection);
      }
    } while (n == grants.size());
  }
}

void Endpoint::Impl::HandlePortStatus(uint32_t port, bool up, Time now) {
  if (context_.ports[port].up == up) return;
  context_.ports[port].up = up;
  ++context_.counters.port_changes;
  for (Slot& slot : slots_) {
    Connection* connection = slot.connection.get();
    if (connection == nullptr || !connection->open()) continue;
    connection->receiver().OnPortChange(now);
    Sender* sender = connection->active_sender();
    if (sender == nullptr) continue;
    sender->OnPortChange(now);
    After(connection, now);
  }
}

void Endpoint::Impl::After(Connection* connection, Time now) {
  if (!context_.rekeyed.empty()) TellKeysAgain(now);
  if (connection->has_event()) TakeEvent(connection);
  if (connection->state() == Connection::State::kFinished) {
    Free(connection, now);
    return;
  }
  Enlist(connection, now);
  if (connection->state() == Connection::State::kConnecting) {
    // A request that is due waits for a port to take it, not for time: then only the end of patience is a deadline.
    const Time deadline = connection->PollTimeout();
    timers_.Schedule(connection->id() & kSlotMask, deadline > now ? deadline : connection->give_up_at());
  } else if (!connection->retime_link.linked()) {
    retime_.PushBack(connection);
  }
}

void Endpoint::Impl::TakeEvent(Connection* connection) {
  events_.push_back(connection->TakeEvent());
  const ConnectionEventKind kind = events_.back().kind;
  if (kind == ConnectionEventKind::kClosed || kind == ConnectionEventKind::kEstablished) {
    if (connection->is_server() && pending_requests_ > 0 && !settled(connection)) --pending_requests_;
    SetSettled(connection);
  }
}

void Endpoint::Impl::Enlist(Connection* connection, Time now) {
  switch (connection->state()) {
    case Connection::State::kConnecting:
      if (connection->RequestDue(now) && !connection->control_link.linked()) control_.PushBack(connection);
      break;
    case Connection::State::kEstablished:
    case Connection::State::kClosing:
      if (connection->send_state().may_have_more() && !connection->ready_link.linked()) ready_.PushBack(connection);
      [[fallthrough]];
    case Connection::State::kLingering:
      if (connection->control_due(now) && !connection->control_link.linked()) control_.PushBack(connection);
      break;
    case Connection::State::kReserved:
    case Connection::State::kRequested:
    case Connection::State::kFinished:
      break;
  }
}

void Endpoint::Impl::Touch(Connection* connection) {
  if (!connection->touched_link.linked()) touched_.PushBack(connection);
}

void Endpoint::Impl::Free(Connection* connection, Time now) {
  const uint32_t slot = connection->id() & kSlotMask;
  if (connection->is_server()) {
    const auto request = std::make_pair(connection->nonce(), connection->peer().peer_connection);
    spent_requests_.emplace_back(request, now + CookieJar::kLife);
  }
  slots_[slot].connection.reset();
  slots_[slot].settled = false;
  free_slots_.push_back(slot);
  --live_;
}

uint32_t Endpoint::Impl::UnexpectedMessages(ConnectionId id) const {
  const Connection* connection = Find(id);
  return connection == nullptr ? 0 : connection->receiver().waiting_sends();
}

size_t Endpoint::Impl::MemoryOf(ConnectionId id) const {
  const Connection* connection = Find(id);
  return connection == nullptr ? 0 : sizeof(Slot) + connection->memory_bytes();
}

}  // namespace paceline
