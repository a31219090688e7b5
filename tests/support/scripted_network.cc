#include "tests/support/scripted_network.h"

#include <algorithm>
#include <utility>

namespace paceline::support {

uint32_t ScriptedNetwork::AddPort(Receiver* receiver) {
  ports_.push_back(Port{.receiver = receiver});
  return static_cast<uint32_t>(ports_.size() - 1);
}

void ScriptedNetwork::SetPortUp(uint32_t port, bool up) {
  if (ports_[port].up == up) return;
  ports_[port].up = up;
  ++ports_[port].changes;
}

Duration ScriptedNetwork::SkewOf(uint16_t entropy) const {
  if (options_.path_skew == Duration()) return Duration();
  // Spread by a multiplicative hash, so that neighbouring entropies differ.
  const uint32_t mixed = (static_cast<uint32_t>(entropy) * 2654435761u) >> 16;
  return Duration::Nanos(options_.path_skew.nanos() * static_cast<int64_t>(mixed) / 65536);
}

void ScriptedNetwork::Send(NetworkPacket packet) {
  packet.index = sent_++;
  packet.sent_at = now_;
  if (capturing_) captured_.push_back(packet);
  Port& source = ports_[packet.from];
  const Time start = std::max(now_, source.free_at);
  source.free_at = start + options_.link_rate.TimeFor(packet.header_bytes + packet.payload_bytes);
  const uint32_t payload = packet.payload_bytes;
  Fate fate;
  if (hook_) hook_(packet, fate);
  if (fate.drop || !source.up) {
    ++dropped_;
    payload_lost_ += payload;
    return;
  }
  if (packet.trimmed) payload_lost_ += payload;
  Time at = source.free_at + options_.latency + SkewOf(packet.entropy) + fate.extra_delay;
  Time& last = last_arrival_[{packet.from, packet.to, packet.entropy, packet.way}];
  if (!fate.overtake) at = last = std::max(at, last);
  for (uint32_t copy = 0; copy < fate.copies; ++copy) Schedule(at + fate.copy_spacing * copy, packet);
}

void ScriptedNetwork::Inject(NetworkPacket packet, Duration delay) { Schedule(now_ + delay, std::move(packet)); }

void ScriptedNetwork::Schedule(Time at, NetworkPacket packet) {
  queue_.push(Arrival{.at = at, .order = order_++, .packet = std::make_shared<NetworkPacket>(std::move(packet))});
}

bool ScriptedNetwork::PortHasRoom(uint32_t port) {
  Port& source = ports_[port];
  source.wanted_room = source.free_at > now_ + options_.port_backlog;
  return !source.wanted_room;
}

Time ScriptedNetwork::NextEvent() const {
  Time next = queue_.empty() ? Time::Never() : queue_.top().at;
  for (const Port& port : ports_) {
    if (port.wanted_room) next = std::min(next, std::max(now_, port.free_at - options_.port_backlog));
  }
  return next;
}

bool ScriptedNetwork::Run(Time deadline, const std::function<bool()>& done) {
  while (true) {
    Time next = Time::Never();
    for (Polled* host : hosts_) next = std::min(next, host->Poll(now_));
    if (done()) return true;
    if (now_ >= deadline) return false;
    next = std::max({std::min(next, NextEvent()), now_ + options_.poll_interval, now_ + Duration::Nanos(1)});
    AdvanceTo(std::min(next, deadline));
  }
}

void ScriptedNetwork::AdvanceTo(Time to) {
  while (!queue_.empty() && queue_.top().at <= to) {
    Arrival arrival = queue_.top();
    queue_.pop();
    now_ = std::max(now_, arrival.at);
    if (arrival.packet->to >= ports_.size()) continue;
    Port& port = ports_[arrival.packet->to];
    if (port.receiver == nullptr || !port.up) {
      ++dropped_;
      payload_lost_ += arrival.packet->payload_bytes;
      continue;
    }
    port.receiver->Deliver(std::move(*arrival.packet));
  }
  now_ = std::max(now_, to);
  for (Port& port : ports_) {
    if (port.wanted_room && port.free_at <= now_ + options_.port_backlog)
      port.wanted_room = false;  // told by the next poll
  }
}

void ScriptedNetwork::NoteViolation(std::string what) { violations_.push_back(std::move(what)); }

}  // namespace paceline::support
