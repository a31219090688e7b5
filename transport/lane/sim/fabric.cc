#include "transport/lane/sim/fabric.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/lane/sim/sim_lane.h"

namespace paceline::sim {
namespace {

constexpr Picos kFirstSampleInterval = 1'000'000;  // 1 us

absl::Status Validate(const FabricConfig& config) {
  const uint64_t full = uint64_t{config.mtu_bytes} + config.header_bytes;
  if (config.mtu_bytes < 64 || config.mtu_bytes > 65536) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.mtu_bytes = ", config.mtu_bytes, " must be 64 to 65536"));
  }
  if (config.header_bytes < 1 || config.header_bytes > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric.header_bytes = ", config.header_bytes, " must be 1 to 4096"));
  }
  if (config.queue_bytes < full || config.queue_bytes > (1u << 30)) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.queue_bytes = ", config.queue_bytes,
                                                   " must hold at least one packet (", full, ") and at most 2^30"));
  }
  if (config.ecn_max_bytes != 0 && config.ecn_max_bytes < config.ecn_min_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.ecn_max_bytes = ", config.ecn_max_bytes,
                                                   " must be at least fabric.ecn_min_bytes = ", config.ecn_min_bytes,
                                                   " (or 0: no marking)"));
  }
  if (!(config.ecn_max_probability > 0 && config.ecn_max_probability <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric.ecn_max_probability = ", config.ecn_max_probability, " must be above 0 and at most 1"));
  }
  if (config.entropies < 1 || config.entropies > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("paths.entropies = ", config.entropies, " must be 1 to 65535"));
  }
  if (config.adaptive_routing &&
      (config.topology.kind == TopologyKind::kGraph || config.topology.kind == TopologyKind::kDragonfly)) {
    return absl::InvalidArgumentError(
        "fabric.adaptive_routing goes with trees: in a dragonfly or a topology from a file not every uplink leads "
        "there");
  }
  if (config.reroute_delay < 0) {
    return absl::InvalidArgumentError(absl::StrCat("fabric.reroute_us = ", PicosToMicros(config.reroute_delay),
                                                   " must be at least 0 (0: routing never changes)"));
  }
  if (config.nic_queue_packets < 1) return absl::InvalidArgumentError("a NIC queues at least one packet");
  return absl::OkStatus();
}

absl::Status CheckBuffers(const FabricConfig& config, const Topology& topology) {
  return SwitchBuffers::Check(config.buffers, topology, config.queue_bytes, config.mtu_bytes + config.header_bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> Fabric::Create(const FabricConfig& config) {
  if (absl::Status status = Validate(config); !status.ok()) return status;
  absl::StatusOr<Topology> topology = Topology::Create(config.topology);
  if (!topology.ok()) return topology.status();
  if (absl::Status status = CheckBuffers(config, *topology); !status.ok()) return status;
  Random random(config.seed);
  const uint64_t route_salt = random.Next();
  absl::StatusOr<FaultPlan> faults = FaultPlan::Create(config.faults, *topology, random);
  if (!faults.ok()) return faults.status();
  return std::unique_ptr<Fabric>(new Fabric(config, *std::move(topology), *std::move(faults), route_salt));
}

absl::Status Fabric::Check(const FabricConfig& config) {
  if (absl::Status status = Validate(config); !status.ok()) return status;
  absl::StatusOr<Topology> topology = Topology::Create(config.topology);
  if (!topology.ok()) return topology.status();
  if (absl::Status status = CheckBuffers(config, *topology); !status.ok()) return status;
  Random random(config.seed);
  return FaultPlan::Create(config.faults, *topology, random).status();
}

Fabric::Fabric(const FabricConfig& config, Topology topology, FaultPlan faults, uint64_t route_salt)
    : config_(config),
      topology_(std::move(topology)),
      faults_(std::move(faults)),
      withdrawals_(topology_, config.reroute_delay),
      route_salt_(route_salt),
      full_wire_bytes_(config.mtu_bytes + config.header_bytes),
      nics_(topology_.nics()),
      pool_(std::max(config.mtu_bytes + config.max_header_bytes, config.max_control_bytes)),
      buffers_(config.buffers, topology_, config.queue_bytes, full_wire_bytes_),
      hosts_(config.topology.hosts),
      marking_random_(config.seed ^ 0x6d61726b696e67),
      fault_random_(config.seed ^ 0x6661756c7473),
      series_(kFirstSampleInterval, static_cast<uint32_t>(topology_.links().size())) {
  const size_t count = topology_.links().size();
  queue_max_.resize(count);
  sent_bytes_.resize(count);
  sent_wraps_.resize(count);
  ports_.resize(count);
  timing_.resize(count);
  if (!faults_.empty()) damage_.resize(count);
  if (buffers_.lossless()) paused_since_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    ports_[i].to_node = topology_.links()[i].to;
    SetTiming(i, 1);
  }
  queue_statistics_.Start(count, buffers_.longest_queue_bytes());
  for (uint32_t nic = 0; nic < nics_; ++nic) {
    owned_lanes_.push_back(std::make_unique<SimLane>(*this, nic));
    lanes_.push_back(owned_lanes_.back().get());
  }
  for (Picos at : faults_.changes()) queue_.PushAt(at, kDamage, 0, kNoPacket);
}

Fabric::~Fabric() = default;

SimLane& Fabric::lane(uint32_t host, uint32_t nic) { return *lanes_[host * config_.topology.nics_per_host + nic]; }

std::unique_ptr<SimLane> Fabric::TakeLane(uint32_t host, uint32_t nic) {
  return std::move(owned_lanes_[host * config_.topology.nics_per_host + nic]);
}

void Fabric::SetTiming(uint32_t index, double fraction) {
  const LinkInfo& link = topology_.links()[index];
  Port& port = ports_[index];
  LinkTiming& timing = timing_[index];
  timing.delay = link.delay;
  timing.bits_per_second = link.bits_per_second;
  if (fraction < 1) {
    // A damaged link has times of its own: no lines for it.
    timing.bits_per_second =
        std::max<uint64_t>(1000, static_cast<uint64_t>(static_cast<double>(link.bits_per_second) * fraction));
    port.arrive_full = port.arrive_header = port.free_full = port.free_header = EventQueue::kNoLine;
    return;
  }
  const Picos full = SerialisationPicos(full_wire_bytes_, timing.bits_per_second);
  const Picos header = SerialisationPicos(config_.header_bytes, timing.bits_per_second);
  port.arrive_full = queue_.AddLine(full + timing.delay);
  port.arrive_header = queue_.AddLine(header + timing.delay);
  port.free_full = queue_.AddLine(full);
  port.free_header = queue_.AddLine(header);
  // A packet's two events are pushed together: all lines or none.
  if (port.arrive_full == EventQueue::kNoLine || port.free_full == EventQueue::kNoLine) {
    port.arrive_full = port.free_full = EventQueue::kNoLine;
  }
  if (port.arrive_header == EventQueue::kNoLine || port.free_header == EventQueue::kNoLine) {
    port.arrive_header = port.free_header = EventQueue::kNoLine;
  }
}

void Fabric::Run(Time deadline) {
  stopped_ = false;
  const Picos until = ToPicos(deadline);
  ++run_;
  if (until != kNeverPicos) queue_.PushAt(std::max(until, queue_.now()), kDeadline, 0, run_);
  if (!sampling_) {
    sampling_ = true;
    queue_.PushAt(queue_.now() + series_.interval(), kSample, 0, kNoPacket);
  }
  while (!stopped_ && !queue_.empty()) Dispatch(queue_.Pop());
}

void Fabric::Dispatch(const Event& event) {
  ++counters_.events;
  switch (event.kind()) {
    case kArrive:
      return HandleArrive(event.index(), event.packet);
    case kArriveLate:
      return Forward(event.index(), event.packet);
    case kPortFree:
      return HandlePortFree(event.index());
    case kHostTimer:
      return HandleHostTimer(event.index(), event.time);
    case kSample:
      return HandleSample();
    case kDamage:
      return HandleDamage();
    case kReroute:
      return withdrawals_.Update(queue_.now());
    case kPause:
      return HandlePause(event.index(), event.packet != 0);
    case kDeadline:
      stopped_ = stopped_ || event.packet == run_;  // not that of an earlier run which was stopped before it
      return;
  }
}

void Fabric::HandleArrive(uint32_t port, uint32_t packet) {
  ++counters_.packet_hops;
  if (ports_[port].disturbed && !PassFaults(port, packet)) return;
  Forward(port, packet);
}

void Fabric::Forward(uint32_t port, uint32_t packet) {
  const uint32_t node = ports_[port].to_node;
  const Packet& record = pool_[packet];
  if (node >= nics_) {
    if (buffers_.lossless()) buffers_.SetIngress(packet, port);
    const SwitchInfo& s = topology_.switch_of_node(node);
    uint32_t next = withdrawals_.any() ? withdrawals_.Route(s, record.destination, record.route_hash)
                                       : topology_.Route(s, record.destination, record.route_hash);
    if (config_.adaptive_routing && next >= s.first_up_port) next = ShortestUplink(s, record.destination, next);
    Enqueue(next, packet);
    return;
  }
  ++counters_.delivered_packets;
  if (!record.is(Packet::kTrimmed)) counters_.delivered_payload_bytes += record.payload_bytes;
  lanes_[node]->Deliver(packet, queue_.now());
  NotifyHost(node / config_.topology.nics_per_host);
}

uint32_t Fabric::ShortestUplink(const SwitchInfo& s, uint32_t destination, uint32_t hashed) {
  // A switch knows at once which of its own links are down, and by the routing alone of those beyond.
  const auto is_down = [&](uint32_t port) {
    return (ports_[port].disturbed && damage_[port].down) ||
           (withdrawals_.any() && !withdrawals_.Leads(port, destination));
  };
  uint32_t best = hashed;
  uint64_t least = is_down(hashed) ? UINT64_MAX : ports_[hashed].waiting_bytes(queue_.now());
  uint32_t port = hashed;
  for (uint32_t i = 1; i < s.up_ports && least > 0; ++i) {
    if (++port == s.first_up_port + s.up_ports) port = s.first_up_port;
    const uint64_t bytes = ports_[port].waiting_bytes(queue_.now());
    if (bytes >= least || is_down(port)) continue;
    best = port;
    least = bytes;
  }
  return best;
}

bool Fabric::PassFaults(uint32_t port, uint32_t packet) {
  const LinkDamage& damage = damage_[port];
  if (damage.down || (damage.loss > 0 && fault_random_.Chance(damage.loss))) {
    Drop(packet, counters_.fault_losses);
    return false;
  }
  if (damage.corrupt > 0 && fault_random_.Chance(damage.corrupt)) {
    ++counters_.fault_corruptions;
    const uint32_t bytes = pool_[packet].real_bytes();
    if (!config_.deliver_corrupted || bytes == 0) {
      Drop(packet, counters_.fault_losses);
      return false;
    }
    const uint64_t bit = fault_random_.Below(uint64_t{bytes} * 8);
    pool_.bytes(packet)[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
  if (damage.duplicate > 0 && fault_random_.Chance(damage.duplicate)) {
    ++counters_.fault_duplicates;
    Forward(port, pool_.Clone(packet));
  }
  if (damage.reorder > 0 && fault_random_.Chance(damage.reorder)) {
    ++counters_.fault_reorders;
    const Picos late = 1 + static_cast<Picos>(fault_random_.Below(static_cast<uint64_t>(damage.reorder_delay) + 1));
    queue_.PushAt(queue_.now() + late, kArriveLate, port, packet);
    return false;
  }
  return true;
}

void Fabric::AccountQueue(uint32_t index, Picos until) {
  Port& port = ports_[index];
  if (port.busy_until < until && port.sending_data != 0) {  // paused: what was being sent has left, the rest waits
    if (index >= nics_) queue_statistics_.Add(index, port.occupancy(), port.busy_until - port.last_change);
    port.last_change = port.busy_until;
    port.sending_data = 0;
  }
  const uint32_t bytes = port.occupancy();
  if (bytes != 0 && index >= nics_) queue_statistics_.Add(index, bytes, until - port.last_change);
  port.last_change = queue_.now();
}

void Fabric::Enqueue(uint32_t index, uint32_t packet) {
  Port& port = ports_[index];
  Packet& record = pool_[packet];
  const bool control = record.is(Packet::kControl);
  if (!port.waiting && port.busy_until <= queue_.now() && (control || !port.paused)) {
    AccountQueue(index, port.paused ? queue_.now() : port.busy_until);  // paused, data waits beside an idle line
    StartSending(index, packet);
    port.peak_bytes = std::max(port.peak_bytes, port.sending_data);
    return;
  }
  // A NIC's queues are bounded in packets by SimLane::room.
  const bool bounded = index >= nics_;
  if (!control) {
    if (port.paused) AccountQueue(index, queue_.now());
    const uint32_t bytes = port.occupancy() + record.wire_bytes;
    if (!bounded || HasRoom(index, packet, bytes)) {
      AccountQueue(index, queue_.now());
      port.peak_bytes = std::max(port.peak_bytes, bytes);
      port.data_bytes += record.wire_bytes;
      port.data.Append(pool_, packet);
      if (bounded && buffers_.managed()) {
        Signal(buffers_.Take(index, packet, record.wire_bytes), buffers_.lossless() ? buffers_.ingress_of(packet) : 0);
      }
      if (port.paused) return;
      return AwaitPortFree(index);
    }
    if (!config_.trimming || record.payload_bytes == 0) return Drop(packet, counters_.drops);
    record.set(Packet::kTrimmed);
    record.set(Packet::kControl);
    record.wire_bytes = config_.header_bytes;
    ++counters_.trims;
  }
  if (bounded && port.control_bytes + record.wire_bytes > config_.queue_bytes) {
    if (!record.is(Packet::kTrimmed)) return Drop(packet, counters_.control_drops);
    --counters_.trims;  // a header that gets no further makes its packet a dropped one
    return Drop(packet, counters_.drops);
  }
  port.control_bytes += record.wire_bytes;
  port.control.Append(pool_, packet);
  AwaitPortFree(index);
}

void Fabric::AwaitPortFree(uint32_t index) {
  Port& port = ports_[index];
  if (port.waiting) return;
  port.waiting = true;
  queue_.PushAt(std::max(port.busy_until, queue_.now()), kPortFree, index, kNoPacket);
}

inline bool Fabric::HasRoom(uint32_t index, uint32_t packet, uint32_t queue_bytes) const {
  if (!buffers_.managed()) return queue_bytes <= config_.queue_bytes;
  return buffers_.HasRoom(index, packet, ports_[index].data_bytes, pool_[packet].wire_bytes);
}

// A switch tells the sender of a link.
void Fabric::Signal(SwitchBuffers::Signal signal, uint32_t link) {
  if (signal == SwitchBuffers::Signal::kNone) return;
  const bool pause = signal == SwitchBuffers::Signal::kPause;
  counters_.pfc_pauses += pause ? 1 : 0;
  queue_.PushAt(queue_.now() + topology_.links()[topology_.links()[link].reverse].delay, kPause, link, pause ? 1 : 0);
}

void Fabric::HandlePause(uint32_t link, bool pause) {
  Port& port = ports_[link];
  port.paused = pause;
  if (pause) {
    paused_since_[link] = queue_.now();
    return;
  }
  paused_ += queue_.now() - paused_since_[link];
  AccountQueue(link, queue_.now());
  if (port.data.empty() || port.waiting) return;
  port.waiting = true;
  queue_.PushAt(std::max(port.busy_until, queue_.now()), kPortFree, link, kNoPacket);
}

Picos Fabric::PausedPicos() const {
  Picos total = paused_;
  for (uint32_t link = 0; link < paused_since_.size(); ++link) {
    if (ports_[link].paused) total += queue_.now() - paused_since_[link];
  }
  return total;
}

void Fabric::HandlePortFree(uint32_t index) {
  Port& port = ports_[index];
  AccountQueue(index, queue_.now());
  if (port.control.empty() && (port.paused || port.data.empty())) {
    port.waiting = false;  // until the pause ends
    port.sending_data = 0;
    return;
  }
  uint32_t packet;
  if (!port.control.empty()) {
    packet = port.control.TakeFront(pool_);
    port.control_bytes -= pool_[packet].wire_bytes;
  } else {
    packet = port.data.TakeFront(pool_);
    Packet& record = pool_[packet];
    port.data_bytes -= record.wire_bytes;
    if (buffers_.managed() && index >= nics_) {
      Signal(buffers_.Release(index, packet, record.wire_bytes), buffers_.lossless() ? buffers_.ingress_of(packet) : 0);
    }
    if (port.data_bytes > config_.ecn_min_bytes && config_.ecn_max_bytes != 0 && index >= nics_ &&
        record.is(Packet::kEcnCapable) &&
        (port.data_bytes >= config_.ecn_max_bytes || MarksAtRandom(port.data_bytes - config_.ecn_min_bytes))) {
      counters_.ecn_marks += record.is(Packet::kMarked) ? 0 : 1;
      record.set(Packet::kMarked);
    }
  }
  port.waiting = !port.control.empty() || (!port.data.empty() && !port.paused);
  StartSending(index, packet);
  port.peak_bytes = std::max(port.peak_bytes, port.occupancy());
  if (index < nics_ && lanes_[index]->OnDequeued()) NotifyHost(index / config_.topology.nics_per_host);
}

// `above`: bytes in the queue beyond ecn_min_bytes.
bool Fabric::MarksAtRandom(uint32_t above) {
  if (marking_random_.Below(config_.ecn_max_bytes - config_.ecn_min_bytes) >= above) return false;
  return config_.ecn_max_probability >= 1 || marking_random_.Chance(config_.ecn_max_probability);
}

void Fabric::StartSending(uint32_t index, uint32_t packet) {
  Port& port = ports_[index];
  const Packet& record = pool_[packet];
  port.sent_bytes += record.wire_bytes;
  if (port.sent_bytes < record.wire_bytes) [[unlikely]]
    ++sent_wraps_[index];
  port.sending_data = record.is(Packet::kControl) ? 0 : record.wire_bytes;
  if (record.is(Packet::kTelemetry)) [[unlikely]]
    WriteTelemetry(index, packet);
  uint8_t arrive = EventQueue::kNoLine, free = EventQueue::kNoLine;
  if (record.wire_bytes == full_wire_bytes_) {
    arrive = port.arrive_full;
    free = port.free_full;
  } else if (record.wire_bytes == config_.header_bytes) {
    arrive = port.arrive_header;
    free = port.free_header;
  }
  if (arrive != EventQueue::kNoLine) [[likely]] {
    port.busy_until = queue_.now() + queue_.line_delay(free);
    queue_.PushLine(arrive, kArrive, index, packet);
    if (port.waiting) queue_.PushLine(free, kPortFree, index, kNoPacket);
    return;
  }
  const LinkTiming& timing = timing_[index];
  port.busy_until = queue_.now() + SerialisationPicos(record.wire_bytes, timing.bits_per_second);
  queue_.PushAt(port.busy_until + timing.delay, kArrive, index, packet);
  if (port.waiting) queue_.PushAt(port.busy_until, kPortFree, index, kNoPacket);
}

void Fabric::WriteTelemetry(uint32_t index, uint32_t packet) {
  if (index < nics_) return;
  const Port& port = ports_[index];
  pool_.trail(packet).Add({.link = index,
                           .queue_bytes = port.data_bytes,
                           .sent_bytes = port.sent_bytes,
                           .time_nanos = static_cast<uint32_t>(queue_.now() / kPicosPerNano),
                           .rate = Rate::BitsPerSecond(static_cast<double>(timing_[index].bits_per_second))});
}

void Fabric::NotifyHost(uint32_t index) {
  Host& host = hosts_[index];
  if (host.slow_by == 0) [[likely]]
    return PollHost(index);
  RequestPoll(index, now());
}

void Fabric::PollHost(uint32_t index) {
  Host& host = hosts_[index];
  if (host.driver == nullptr) return;
  ++counters_.host_polls;
  host.requested = kNeverPicos;
  const Time time = now();
  const Time next = host.driver->Poll(time);
  const Time soonest = time + Duration::Nanos(1);
  host.next_poll = ToPicos(std::max(next, soonest));
  if (host.next_poll != kNeverPicos) host.next_poll += host.slow_by;
  host.next_poll = std::min(host.next_poll, host.requested);
  if (host.next_poll < host.timer) ArmTimer(index, host.next_poll);
}

void Fabric::RequestPoll(uint32_t index, Time at) {
  Host& host = hosts_[index];
  const Picos due = std::max(ToPicos(at), queue_.now()) + host.slow_by;
  host.requested = std::min(host.requested, due);
  host.next_poll = std::min(host.next_poll, due);
  if (due < host.timer) ArmTimer(index, due);
}

void Fabric::ArmTimer(uint32_t index, Picos at) {
  hosts_[index].timer = at;
  if (at != kNeverPicos) queue_.PushAt(at, kHostTimer, index, kNoPacket);
}

void Fabric::HandleHostTimer(uint32_t index, Picos due) {
  Host& host = hosts_[index];
  if (due != host.timer) return;  // an earlier timer was set since
  host.timer = kNeverPicos;
  if (host.next_poll > due) {
    ArmTimer(index, host.next_poll);
  } else {
    PollHost(index);
  }
}

void Fabric::HandleSample() {
  const uint64_t delivered = counters_.delivered_payload_bytes;
  series_.Append(delivered - series_delivered_);
  series_delivered_ = delivered;
  for (uint32_t index = nics_; index < ports_.size(); ++index) {
    Port& port = ports_[index];
    const uint64_t sent = SentBytes(index);
    series_.Set(index, port.peak_bytes, sent - sent_bytes_[index]);
    sent_bytes_[index] = sent;
    queue_max_[index] = std::max(queue_max_[index], port.peak_bytes);
    // What is there now is also the next interval's, unless the last packet has left without an event.
    port.peak_bytes = port.busy_until > queue_.now() ? port.occupancy() : port.data_bytes;
  }
  if (queue_.empty()) {
    sampling_ = false;  // nothing else will happen
  } else {
    queue_.PushAt(queue_.now() + series_.interval(), kSample, 0, kNoPacket);
  }
}

void Fabric::HandleDamage() {
  Picos reroute_at = kNeverPicos;
  for (uint32_t port : faults_.ports()) {
    const LinkDamage before = damage_[port];
    damage_[port] = faults_.DamageAt(port, queue_.now());
    ports_[port].disturbed = damage_[port].disturbs();
    if (damage_[port].emptied && !before.emptied) Empty(port);
    if (damage_[port].fraction != before.fraction) SetTiming(port, damage_[port].fraction);
    if (port < nics_ && damage_[port].host_delay != before.host_delay) {
      const uint32_t nics = config_.topology.nics_per_host;
      Host& host = hosts_[port / nics];
      host.slow_by = 0;
      for (uint32_t nic = port / nics * nics; nic < (port / nics + 1) * nics; ++nic) {
        host.slow_by = std::max(host.slow_by, damage_[nic].host_delay);
      }
    }
    if (damage_[port].down == before.down) continue;
    reroute_at = withdrawals_.OnLinkChange(port, damage_[port].down, queue_.now());
    if (port < nics_) {
      lanes_[port]->OnLinkChange(!damage_[port].down);
      RequestPoll(port / config_.topology.nics_per_host, now());
    }
  }
  if (reroute_at != kNeverPicos) queue_.PushAt(reroute_at, kReroute, 0, kNoPacket);
}

// What waits at a switch port is lost.
void Fabric::Empty(uint32_t index) {
  Port& port = ports_[index];
  AccountQueue(index, queue_.now());
  while (!port.control.empty()) Drop(port.control.TakeFront(pool_), counters_.fault_losses);
  while (!port.data.empty()) {
    const uint32_t packet = port.data.TakeFront(pool_);
    if (buffers_.managed()) {
      Signal(buffers_.Release(index, packet, pool_[packet].wire_bytes),
             buffers_.lossless() ? buffers_.ingress_of(packet) : 0);
    }
    Drop(packet, counters_.fault_losses);
  }
  port.control_bytes = port.data_bytes = 0;
}

uint32_t Fabric::QueueQuantileBytes(uint32_t port, double quantile) const {
  return std::min(queue_statistics_.Quantile(port, quantile, queue_.now()), QueueMaxBytes(port));
}

uint64_t Fabric::SentBytes(uint32_t port) const {
  return (uint64_t{sent_wraps_[port]} << 32) + ports_[port].sent_bytes;
}

Duration Fabric::BaseRtt(uint32_t source_host, uint32_t destination_host) const {
  const uint32_t nics = config_.topology.nics_per_host;
  return ToTime(topology_.LongestWayRtt(source_host * nics, destination_host * nics, full_wire_bytes_,
                                        config_.header_bytes)) -
         Time();
}

Duration Fabric::LongestBaseRtt() const {
  return ToTime(topology_.LongestBaseRtt(full_wire_bytes_, config_.header_bytes)) - Time();
}

}  // namespace paceline::sim
