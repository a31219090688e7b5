#include "tests/conformance/fabric_model.h"

#include <algorithm>
#include <array>
#include <bit>

namespace paceline {

FabricModel::FabricModel(const FabricModelConfig& config, const Factory& new_congestion_control)
    : config_(config), random_(config.seed) {
  const int64_t wire = config.segment + config.overhead;
  base_rtt_ = config.one_way * 2 + config.rate.TimeFor(2 * wire);
  port_.link_rate = config.rate;
  port_.base_rtt = base_rtt_;
  port_.segment_bytes = config.segment;
  port_.overhead_bytes = config.overhead;
  port_.control_packet_bytes = 64;
  if (config.core_rate_stated) port_.core_rate = config.core_rate / static_cast<double>(config.hosts);
  core_.rate = config.core_rate;
  core_.scale = std::max(1.0, config.core_rate.gbps() / config.rate.gbps());
  hosts_.resize(config.hosts);
  for (Host& host : hosts_) {
    host.congestion_control = new_congestion_control();
    host.receiver = host.congestion_control->NewReceiver(port_);
    host.uplink.rate = host.downlink.rate = config.rate;
    host.downlink.number = static_cast<uint32_t>(&host - hosts_.data()) + 1;
  }
}

void FabricModel::AddFlow(size_t source, size_t destination, uint64_t bytes, Time start, bool posted) {
  const size_t id = flows_.size();
  Flow& flow = flows_.emplace_back();
  flow.source = source;
  flow.destination = destination;
  flow.to_arrive = bytes;
  hosts_[source].flows.push_back(id);
  ++unfinished_;
  const FlowInfo info{.remote_group = 0, .base_rtt = base_rtt_};
  flow.controller = hosts_[source].congestion_control->NewSender(info, port_, Time());
  if (hosts_[destination].receiver) hosts_[destination].receiver->AddFlow(static_cast<uint32_t>(id), info, Time());
  if (posted && hosts_[destination].receiver) {
    At(start - base_rtt_, [this, id, bytes, destination] {
      hosts_[destination].receiver->OnDemand(static_cast<uint32_t>(id), bytes, Rate::Unlimited(), now_);
      PollReceiver(destination);
    });
  }
  At(start, [this, id, bytes] { Start(id, bytes); });
}

void FabricModel::Start(size_t id, uint64_t bytes) {
  Flow& flow = flows_[id];
  flow.left = bytes;
  flow.controller->OnBacklog(now_, bytes, 0);
  Serve(flow.source);
}

bool FabricModel::Run(Time deadline) {
  while (unfinished_ > 0 && !events_.empty() && events_.top().time <= deadline) {
    const Event event = events_.top();
    events_.pop();
    now_ = std::max(now_, event.time);
    event.run();
  }
  return unfinished_ == 0;
}

Time FabricModel::last_finished() const {
  Time last;
  for (const Flow& flow : flows_) last = std::max(last, flow.finished);
  return last;
}

// When the flow may send its next segment; never when it waits for news.
Time FabricModel::FlowReady(const Flow& flow) const {
  if (flow.left == 0) return Time::Never();
  const Allowance allowance = flow.controller->allowance();
  if (flow.tx_total >= allowance.credit_end) return Time::Never();
  const uint64_t bytes = std::min<uint64_t>(flow.left, config_.segment);
  if (flow.in_flight > 0 && flow.in_flight + bytes > allowance.window_bytes) return Time::Never();
  return allowance.pacing_rate.is_zero() ? Time::Never() : flow.pacer.time();
}

// Sends what `host` may send now, and arranges to be called when it may send again or a controller's timer is due.
void FabricModel::Serve(size_t host_id) {
  Host& host = hosts_[host_id];
  Time wake = Time::Never();
  for (const size_t id : host.flows) {
    Flow& flow = flows_[id];
    if (flow.finished != Time::Never()) continue;
    if (flow.controller->PollTimeout() <= now_) flow.controller->HandleTimeout(now_);
    wake = std::min(wake, flow.controller->PollTimeout());
    const Allowance allowance = flow.controller->allowance();
    Digest(allowance.credit_end ^ allowance.window_bytes);
    Digest(std::bit_cast<uint64_t>(allowance.pacing_rate.bytes_per_second()));
    const bool stuck = flow.left > 0 && flow.tx_total >= allowance.credit_end;
    if (stuck && (flow.tx_total + flow.left > flow.told_end || flow.stuck_at <= now_)) Request(id);
    if (!stuck) flow.stuck_at = Time::Never();
    wake = std::min(wake, flow.stuck_at);
  }
  if (host.uplink.busy.time() <= now_) {
    for (size_t i = 0; i < host.flows.size(); ++i) {
      const size_t id = host.flows[(host.next_flow + i) % host.flows.size()];
      const Time ready = FlowReady(flows_[id]);
      if (ready <= now_) {
        host.next_flow = (host.next_flow + i + 1) % host.flows.size();
        SendSegment(id);
        wake = host.uplink.busy.time();
        break;
      }
      wake = std::min(wake, ready);
    }
  } else {
    wake = std::min(wake, host.uplink.busy.time());
  }
  WakeAt(hosts_[host_id].sender_wake, wake, [this, host_id] { Serve(host_id); });
}

// One pending wake-up per owner, the earliest asked for: `pending` is when; an event that is not that one does nothing.
void FabricModel::WakeAt(Time& pending, Time wake, std::function<void()> run) {
  wake = wake.is_never() ? wake : std::max(wake, now_ + Duration::Nanos(1));
  if (wake >= pending) return;
  pending = wake;
  At(wake, [&pending, wake, run = std::move(run)] {
    if (pending != wake) return;
    pending = Time::Never();
    run();
  });
}

void FabricModel::SendSegment(size_t id) {
  Flow& flow = flows_[id];
  Host& host = hosts_[flow.source];
  Packet packet;
  packet.flow = id;
  packet.bytes = std::min<uint64_t>(flow.left, config_.segment);
  packet.sent = now_;
  flow.left -= packet.bytes;
  flow.tx_total += packet.bytes;
  flow.in_flight += packet.bytes;
  flow.told_end = flow.tx_total + flow.left;
  packet.tx_total = flow.tx_total;
  packet.lost_total = flow.lost_total;
  packet.backlog = flow.left;
  packet.cap = flow.controller->cap();
  ++data_packets_;
  const auto wire = static_cast<int64_t>(packet.bytes + config_.overhead);
  host.uplink.busy.RaiseTo(now_);
  host.uplink.busy.Advance(config_.rate.NanosFor(wire));
  flow.pacer.RaiseTo(now_);
  flow.pacer.Advance(flow.controller->allowance().pacing_rate.NanosFor(wire));
  flow.controller->OnSent(now_, flow.tx_total, flow.in_flight);
  if (flow.left == 0) flow.controller->OnBacklog(now_, 0, flow.tx_total);
  const Duration offset = now_ - Time();
  const bool dark = offset >= config_.blackout_from && offset < config_.blackout_until;
  if (dark || random_.Chance(config_.data_loss)) {
    Lose(packet);
    return;
  }
  At(host.uplink.busy.time() + config_.one_way, [this, packet] {
    if (core_.rate.is_zero()) {
      Enqueue(hosts_[flows_[packet.flow].destination].downlink, packet, true);
    } else {
      Enqueue(core_, packet, false);
    }
  });
}

void FabricModel::Request(size_t id) {
  Flow& flow = flows_[id];
  flow.told_end = flow.tx_total + flow.left;
  flow.stuck_at = now_ + base_rtt_ * 4;
  At(now_ + config_.one_way,
     [this, id, tx = flow.tx_total, lost = flow.lost_total, end = flow.told_end, cap = flow.controller->cap()] {
       const size_t host = flows_[id].destination;
       if (!hosts_[host].receiver) return;
       ArrivalSample sample;
       sample.now = now_;
       sample.tx_total = tx;
       sample.lost_total = lost;
       hosts_[host].receiver->OnArrival(static_cast<uint32_t>(id), sample);
       hosts_[host].receiver->OnDemand(static_cast<uint32_t>(id), end, cap, now_);
       PollReceiver(host);
     });
}

void FabricModel::Enqueue(Link& link, const Packet& packet, bool last_hop) {
  const uint64_t wire = packet.bytes + config_.overhead;
  if (static_cast<double>(link.queued + wire) > static_cast<double>(config_.queue_bytes) * link.scale) {
    ++drops_;
    Lose(packet);
    return;
  }
  link.queued += wire;
  if (last_hop) downlink_queue_max_ = std::max(downlink_queue_max_, link.queued);
  link.busy.RaiseTo(now_);
  link.busy.Advance(link.rate.NanosFor(static_cast<int64_t>(wire)));
  At(link.busy.time(), [this, &link, packet, wire, last_hop] {
    link.queued -= wire;
    link.sent_bytes += static_cast<uint32_t>(wire);
    Packet out = packet;
    out.hop[out.hops++] = {.link = link.number,
                           .queue_bytes = static_cast<uint32_t>(link.queued),
                           .sent_bytes = link.sent_bytes,
                           .time_nanos = static_cast<uint32_t>(now_.nanos()),
                           .rate = link.rate};
    const double span = static_cast<double>(config_.ecn_max_bytes - config_.ecn_min_bytes);
    const double over = static_cast<double>(link.queued) / link.scale - static_cast<double>(config_.ecn_min_bytes);
    if (over > 0 && random_.Chance(over / span)) out.marked = true;
    if (last_hop) {
      Arrive(out);
    } else {
      Enqueue(hosts_[flows_[packet.flow].destination].downlink, out, true);
    }
  });
}

void FabricModel::Arrive(const Packet& packet) {
  Flow& flow = flows_[packet.flow];
  flow.to_arrive -= packet.bytes;
  const auto id = static_cast<uint32_t>(packet.flow);
  if (ReceiverController* receiver = hosts_[flow.destination].receiver.get()) {
    ArrivalSample sample;
    sample.now = now_;
    sample.bytes = packet.bytes;
    sample.packets = 1;
    sample.marked_packets = packet.marked ? 1 : 0;
    sample.tx_total = packet.tx_total;
    sample.lost_total = packet.lost_total;
    sample.relative_delay_nanos = (now_ - packet.sent).nanos() + 123'456;
    receiver->OnArrival(id, sample);
    receiver->OnDemand(id, packet.tx_total + packet.backlog, packet.cap, now_);
    PollReceiver(flow.destination);
  }
  At(now_ + config_.one_way, [this, packet] {
    Flow& sender = flows_[packet.flow];
    sender.in_flight -= packet.bytes;
    AckSample sample;
    sample.now = now_;
    sample.acked_bytes = packet.bytes;
    sample.acked_packets = 1;
    sample.marked_bytes = packet.marked ? packet.bytes : 0;
    sample.marked_packets = packet.marked ? 1 : 0;
    sample.rtt = now_ - packet.sent;
    sample.in_flight_bytes = sender.in_flight;
    sample.backlogged = sender.left > 0;
    if (sender.controller->wants_telemetry()) sample.hops = std::span(packet.hop).first(packet.hops);
    sender.controller->OnAck(sample);
    if (sender.to_arrive == 0 && sender.in_flight == 0 && sender.finished.is_never()) {
      sender.finished = now_;
      --unfinished_;
    }
    Serve(sender.source);
  });
}

void FabricModel::Lose(const Packet& packet) {
  At(now_ + base_rtt_, [this, packet] {
    Flow& flow = flows_[packet.flow];
    flow.in_flight -= packet.bytes;
    flow.lost_total += packet.bytes;
    const bool was_empty = flow.left == 0;
    flow.left += packet.bytes;
    LossSample sample;
    sample.now = now_;
    sample.lost_bytes = packet.bytes;
    sample.lost_packets = 1;
    sample.in_flight_bytes = flow.in_flight;
    flow.controller->OnLoss(sample);
    if (was_empty) flow.controller->OnBacklog(now_, flow.left, flow.tx_total);
    Serve(flow.source);
  });
}

void FabricModel::PollReceiver(size_t host_id) {
  Host& host = hosts_[host_id];
  std::array<Grant, 4> grants;
  for (;;) {
    const size_t count = host.receiver->PollGrants(now_, grants);
    for (size_t i = 0; i < count; ++i) {
      const Grant grant = grants[i];
      Digest(grant.credit_end);
      Digest(std::bit_cast<uint64_t>(grant.rate.bytes_per_second()));
      if (random_.Chance(config_.grant_loss)) continue;
      At(now_ + config_.one_way, [this, grant] {
        flows_[grant.flow].controller->OnGrant({now_, grant.credit_end, grant.rate});
        Serve(flows_[grant.flow].source);
      });
    }
    if (count < grants.size()) break;
  }
  WakeAt(host.receiver_wake, host.receiver->PollTimeout(), [this, host_id] { PollReceiver(host_id); });
}

}  // namespace paceline
