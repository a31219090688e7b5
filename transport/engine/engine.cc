#include "transport/engine/engine.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

// Bounds on one pass. They are small because the caller reads the clock once per pass: what leaves at the end of a long
// pass would carry the time of its beginning, and the peer would take the difference for a queue in the network. A
// burst of 46 segments keeps a kernel socket busy for about 30 us.
constexpr size_t kReceiveSegments = 64;
constexpr int kReceiveBursts = 4;
constexpr int kSendBursts = 1;
constexpr uint32_t kLeastBurst = 16;
// So few segments leave at once that what waits behind the data among them loses nothing: replies first.
constexpr size_t kFewSegments = 8;
// A port that costs a system call to look at, and has not been used for so long while another has, is looked at only
// now and then: peers of this host, which share memory, do not wait for the network's silence in every pass.
constexpr Duration kUnused = Duration::Millis(1);
constexpr Duration kLookInterval = Duration::Micros(5);
// So long from one pass to the next: the process did not run, or slept.
constexpr Duration kPause = Duration::Micros(50);

// Data packets keep their order, and so do control packets.
void PutControlLast(std::span<TxSegment> segments) {
  const auto is_data = [](const TxSegment& segment) { return !segment.control; };
  if (std::is_partitioned(segments.begin(), segments.end(), is_data)) return;
  std::array<TxSegment, kFewSegments> control;
  size_t data = 0, controls = 0;
  for (const TxSegment& segment : segments) {
    (segment.control ? control[controls++] : segments[data++]) = segment;
  }
  std::copy_n(control.begin(), controls, segments.begin() + static_cast<ptrdiff_t>(data));
}
}  // namespace

// What the engine keeps of one port.
//
// `held` are packets that a lane refused although its room() had promised to take them (a kernel whose buffers ran out
// half way). The core's pointers die with its next call, so header and payload are copied, which is rare, and they go
// first next time. A *write* cannot be copied (the card reads registered memory), and its buffer may be the user's
// again by then: it is dropped, which to the core is a loss like any other.
struct Engine::PortState {
  uint32_t change_count = 0;
  bool costly_receive = false;
  bool guesses = false;            // it may receive payload in places
  bool sends_at_once = true;       // what it is given, none of it waits until it is due
  Time last_used = Time::Never();  // when something left or arrived through it
  Time next_look;                  // of a port at rest
  // Asked of the core at once; and while some of its connections have smaller packets than the port.
  size_t burst_segments = TxBurst::kSegments, narrow_segments = TxBurst::kSegments;
  bool more = false;  // the pass ended at a bound, not for want of work
  std::array<RxSegment, kReceiveSegments> received;
  TxBurst burst;
  std::vector<TxSegment> held;
  std::vector<std::vector<uint8_t>> held_bytes;
  size_t held_next = 0;

  void Hold(std::span<const TxSegment> rest) {
    held.clear();
    held_next = 0;
    if (held_bytes.size() < rest.size()) held_bytes.resize(rest.size());
    for (const TxSegment& segment : rest) {
      // What only a card can read cannot be kept, should its owner have it back: it is lost, and comes again.
      if (segment.kind != SegmentKind::kPacket || segment.on_device) continue;
      std::vector<uint8_t>& bytes = held_bytes[held.size()];
      bytes.assign(segment.header, segment.header + segment.header_bytes);
      if (segment.payload != nullptr) {
        bytes.insert(bytes.end(), segment.payload, segment.payload + segment.payload_bytes);
      }
      TxSegment copy = segment;
      copy.header = bytes.data();
      copy.payload_stays = false;
      if (segment.payload != nullptr) copy.payload = bytes.data() + segment.header_bytes;
      held.push_back(copy);
    }
  }
  std::span<const TxSegment> HeldRest() const { return std::span(held).subspan(held_next); }
};

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options,
                                                       std::vector<std::unique_ptr<Lane>> lanes) {
  if (lanes.empty()) return absl::InvalidArgumentError("an engine needs at least one lane");
  if (lanes.size() > limits::kMaxPorts) {
    return absl::InvalidArgumentError(
        absl::StrCat("an engine drives at most ", limits::kMaxPorts, " lanes; ", lanes.size(), " were given"));
  }
  auto congestion_control = CreateCongestionControl(options.endpoint.congestion_control,
                                                    options.congestion_control_parameters, options.endpoint.seed);
  if (!congestion_control.ok()) return congestion_control.status();
  for (const auto& lane : lanes) {
    if (!FindCongestionControl(options.endpoint.congestion_control)->needs_telemetry) break;
    if (lane->capabilities().telemetry) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", options.endpoint.congestion_control,
                                                   "' needs in-band telemetry of the switches, which lane ",
                                                   std::string(lane->name()), " does not bring"));
  }
  return std::unique_ptr<Engine>(new Engine(options, std::move(lanes), *std::move(congestion_control)));
}

Engine::Engine(const EngineOptions& options, std::vector<std::unique_ptr<Lane>> lanes,
               std::unique_ptr<CongestionControl> congestion_control)
    : lanes_(std::move(lanes)),
      replies_first_(options.replies_first),
      device_copier_(options.device_copier),
      request_router_(options.request_router) {
  std::vector<PortDescription> descriptions;
  for (const auto& lane : lanes_) {
    ports_.push_back(std::make_unique<PortState>());
    ports_.back()->change_count = lane->status().change_count;
    ports_.back()->costly_receive = lane->capabilities().costly_receive;
    ports_.back()->guesses = lane->capabilities().least_guessed_bytes > 0;
    ports_.back()->sends_at_once = lane->capabilities().send_ahead == Duration();
    const LaneCapabilities& can = lane->capabilities();
    const uint32_t packet = can.path_may_be_narrower ? kUsualPacketBytes : can.max_packet_bytes;
    ports_.back()->burst_segments = std::max(can.burst_segments, kLeastBurst);
    ports_.back()->narrow_segments = std::max({can.burst_segments, can.BurstOf(packet), kLeastBurst});
    descriptions.push_back({lane->capabilities(), lane->address()});
  }
  endpoint_ = std::make_unique<Endpoint>(options.endpoint, std::move(congestion_control),
                                         static_cast<EndpointEnvironment*>(this), descriptions);
}

Engine::~Engine() = default;

Time Engine::Poll(Time now) {
  busy_ = false;
  blocked_ = false;
  const auto ports = static_cast<uint32_t>(lanes_.size());
  for (uint32_t port = 0; port < ports; ++port) {
    ports_[port]->more = false;
    CheckStatus(port, now);
  }
  // What was posted since the last pass leaves before anything else is looked at: an answer waits neither for an empty
  // receive call nor for what the transport itself makes of the last arrivals.
  if (++first_port_ >= ports) first_port_ = 0;
  SendAll(now);
  bool more_to_send = std::exchange(unfinished_, false);
  if (more_to_send) endpoint_->FinishSegments(now);
  // After a pause of the process, what waits in the lanes is news of the very packets that a timer would take for lost.
  const bool paused = now - std::exchange(last_pass_, now) > kPause;
  if (!paused) more_to_send |= HandleTimeouts(now);
  const bool sent = std::exchange(busy_, false);
  for (uint32_t port = 0; port < ports; ++port) {
    if (!Rests(port, now)) ReceiveAll(port, now);
  }
  const bool received = busy_;
  busy_ |= sent;
  if (received && replies_first_ && !paused) {
    unfinished_ = true;
    return now;
  }
  if (received) endpoint_->FinishSegments(now);
  if (received || paused) more_to_send |= HandleTimeouts(now);
  if (received || more_to_send) SendAll(now);
  return NextPass(now, received || paused || more_to_send);
}

Time Engine::Transmit(Time now) {
  busy_ = false;
  blocked_ = false;
  if (std::exchange(unfinished_, false)) endpoint_->FinishSegments(now);
  SendAll(now);
  return NextPass(now, true);
}

Time Engine::NextPass(Time now, bool changed) {
  const bool more = std::any_of(ports_.begin(), ports_.end(), [](const auto& port) { return port->more; });
  if (changed) timeout_ = endpoint_->PollTimeout();
  return more ? now : std::max(now, timeout_);
}

bool Engine::HandleTimeouts(Time now) {
  timeout_ = endpoint_->PollTimeout();
  if (timeout_ > now) return false;
  endpoint_->HandleTimeout(now);
  return true;
}

void Engine::CheckStatus(uint32_t port, Time now) {
  const LaneStatus status = lanes_[port]->status();
  if (status.change_count == ports_[port]->change_count) return;
  ports_[port]->change_count = status.change_count;
  endpoint_->HandlePortStatus(port, status.up, now);
}

bool Engine::Rests(uint32_t port, Time now) {
  PortState& state = *ports_[port];
  if (!state.costly_receive || WasUsed(state, now)) return false;
  const auto was_used = [now](const auto& other) { return WasUsed(*other, now); };
  if (std::none_of(ports_.begin(), ports_.end(), was_used)) return false;
  if (now < state.next_look) return true;
  state.next_look = now + kLookInterval;
  return false;
}

bool Engine::WasUsed(const PortState& port, Time now) {
  return !port.last_used.is_never() && now - port.last_used < kUnused;
}

void Engine::ReceiveAll(uint32_t port, Time now) {
  PortState& state = *ports_[port];
  for (int burst = 0; burst < kReceiveBursts; ++burst) {
    if (state.guesses) lanes_[port]->GuessPlacement(endpoint_->GuessPlacement(port));
    const size_t count = lanes_[port]->Receive(state.received, now);
    if (count == 0) return;
    busy_ = true;
    state.last_used = now;
    endpoint_->TakeSegments(port, std::span(state.received).first(count), now);
    if (count < state.received.size()) return;
    endpoint_->FinishSegments(now);
  }
  state.more = true;
}

void Engine::SendAll(Time now) {
  const auto ports = static_cast<uint32_t>(lanes_.size());
  for (uint32_t port = first_port_; port < ports; ++port) SendAll(port, now);
  for (uint32_t port = 0; port < first_port_; ++port) SendAll(port, now);
}

void Engine::SendAll(uint32_t port, Time now) {
  Lane& lane = *lanes_[port];
  PortState& state = *ports_[port];
  if (state.held_next < state.held.size()) {
    const size_t taken = lane.Send(state.HeldRest());
    state.held_next += taken;
    busy_ |= taken > 0;
    if (state.held_next < state.held.size()) {
      blocked_ = true;
      return;
    }
  }
  for (int burst = 0; burst < kSendBursts; ++burst) {
    if (!endpoint_->may_transmit()) return;
    const size_t at_once = endpoint_->has_narrow_paths() ? state.narrow_segments : state.burst_segments;
    const size_t room = std::min({lane.room(), TxBurst::kSegments, at_once});
    if (room == 0) {
      blocked_ = true;
      return;
    }
    const size_t count = endpoint_->PollTransmit(port, state.burst, room, now);
    if (count == 0) return;
    busy_ = true;
    state.last_used = now;
    const std::span<TxSegment> segments = std::span(state.burst.segments).first(count);
    if (replies_first_ && state.sends_at_once && count <= kFewSegments) PutControlLast(segments);
    const size_t taken = lane.Send(segments);
    if (taken < count) {
      state.Hold(segments.subspan(taken));
      blocked_ = true;
      return;
    }
  }
  state.more = true;
}

uint32_t Engine::OpenPeer(uint32_t port, const LaneAddress& address) { return lanes_[port]->OpenPeer(address); }

void Engine::ClosePeer(uint32_t port, uint32_t peer) {
  // Its number may name another address soon: what is still held for it must not go there.
  PortState& state = *ports_[port];
  state.held.erase(std::remove_if(state.held.begin() + static_cast<std::ptrdiff_t>(state.held_next), state.held.end(),
                                  [peer](const TxSegment& segment) { return segment.peer == peer; }),
                   state.held.end());
  lanes_[port]->ClosePeer(peer);
}

size_t Engine::RoomTo(uint32_t port, uint32_t peer) { return lanes_[port]->RoomTo(peer); }

uint64_t Engine::RegisterMemory(uint32_t port, const LaneMemory& memory) {
  return lanes_[port]->RegisterMemory(memory);
}

void Engine::DeregisterMemory(uint32_t port, uint64_t key) { lanes_[port]->DeregisterMemory(key); }

bool Engine::LendMemory(uint32_t port, const LaneMemory& memory) { return lanes_[port]->LendMemory(memory); }

void Engine::ReturnMemory(uint32_t port, const LaneMemory& memory) { lanes_[port]->ReturnMemory(memory); }

bool Engine::ReadsFromDevice(uint32_t port, const uint8_t* payload, size_t bytes) const {
  return lanes_[port]->ReadsFromDevice(payload, bytes);
}

void Engine::ResetPath(uint32_t port, uint32_t peer, uint32_t connection, uint16_t entropy) {
  lanes_[port]->ResetPath(peer, connection, entropy);
}

void Engine::EndWrites(uint32_t port, uint32_t peer, uint32_t connection) { lanes_[port]->EndWrites(peer, connection); }

void Engine::FenceWrites(uint32_t port, ConnectionId connection) { lanes_[port]->FenceWrites(connection); }

PassedOn Engine::PassOn(const ConnectionRequest& request, Time now) {
  return request_router_ == nullptr ? PassedOn::kNo : request_router_->PassOn(request, now);
}

bool Engine::CopyFromDevice(int device, void* to, const void* from, size_t bytes) {
  return device_copier_ != nullptr && device_copier_->FromDevice(device, to, from, bytes);
}

bool Engine::CopyToDevice(int device, void* to, const void* from, size_t bytes) {
  return device_copier_ != nullptr && device_copier_->ToDevice(device, to, from, bytes);
}

}  // namespace paceline
