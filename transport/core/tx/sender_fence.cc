// Fences of the sending half: how writes by remote placement are found lost whose path is dead for good.
//
// A copy of a write may land as long as the peer's card takes it. So the peer is asked, by whatever port still leads to
// it, to refuse what was written to that port of its (our own card stops sending first), and says which of these writes
// had arrived: the others never will, and are sent again. A port that had to be fenced is tried with a packet before it
// is written through again.
#include <algorithm>
#include <bit>

#include "transport/base/sequence.h"
#include "transport/core/tx/sender.h"

namespace paceline {
namespace {

// A write is overdue when something sent so many time-outs later has arrived.
constexpr int64_t kTimeoutsOverdue = 4;
constexpr Duration kLongestPatience = Duration::Seconds(1);
constexpr uint32_t kMostDoublings = 12;

}  // namespace

bool Sender::Fencing(uint32_t remote_port) const { return fences_ != nullptr && (*fences_)[remote_port].pending; }

bool Sender::AwaitsFence(const Outstanding& entry) const {
  return entry.state == Outstanding::State::kOutstanding && entry.written && Fencing(entry.remote_port);
}

// Never while a burst is being filled: what stands in it would be written after the lane has ended its writes.
void Sender::BeginFence(uint32_t remote_port, Time now) {
  if (!peer_->fences || Fencing(remote_port)) return;
  if (fences_ == nullptr) fences_ = std::make_unique<std::array<Fence, limits::kMaxPorts>>();
  (*fences_)[remote_port] = {.end = outstanding_.end(), .since = now, .pending = true};
  for (const Port& port : context_->ports) {
    if (!peer_->reaches(port.index) || peer_->routes.remote_of[port.index] != remote_port) continue;
    context_->environment->EndWrites(port.index, peer_->routes.handle[port.index], peer_->peer_connection);
  }
  ++context_->counters.fences_asked;
  state_->fence_pending |= static_cast<uint8_t>(1u << remote_port);
  fence_tries_ = 0;
  fence_at_ = now + ProbeDelay(peer_->LocalOf(remote_port));
}

// The port has had its answer, or needs none any more.
void Sender::EndFence(uint32_t remote_port, Time now) {
  (*fences_)[remote_port].pending = false;
  for (const Port& port : context_->ports) {
    const bool leads_there = peer_->reaches(port.index) && peer_->routes.remote_of[port.index] == remote_port;
    if (leads_there) health_.OnSilence(port.index, Rtt(port.index).smoothed(), now);
  }
  const auto is_pending = [](const Fence& fence) { return fence.pending; };
  if (std::none_of(fences_->begin(), fences_->end(), is_pending)) fence_at_ = Time::Never();
  state_->ready_ports = AllPorts();
}

// The first packet that waits for the answer of this port, or the end of all.
uint64_t Sender::FirstFenced(uint32_t remote_port) const {
  uint64_t psn = outstanding_.begin();
  while (psn < outstanding_.end() &&
         !(outstanding_[psn].remote_port == remote_port && AwaitsFence(outstanding_[psn]))) {
    ++psn;
  }
  return psn;
}

bool Sender::PollFence(wire::FenceFrame* frame, Time now) {
  while (state_->fence_pending != 0) {
    const auto port = static_cast<uint8_t>(std::countr_zero(state_->fence_pending));
    state_->fence_pending &= static_cast<uint8_t>(state_->fence_pending - 1);
    const uint64_t first = FirstFenced(port);
    if (first < outstanding_.end()) {
      *frame = {.port = port,
                .end = static_cast<uint32_t>((*fences_)[port].end),
                .from = static_cast<uint32_t>(first & ~uint64_t{63})};
      return true;
    }
    if (Fencing(port)) EndFence(port, now);
  }
  return false;
}

void Sender::HandleFenced(const wire::FencedFrame& frame, Time now) {
  if (frame.port >= peer_->remote_ports || fences_ == nullptr) return;
  // What the peer says of writes that our own card may still be sending does not count.
  const uint64_t asked = (*fences_)[frame.port].end;
  const uint64_t end = Unwrap(frame.end, asked);
  const uint64_t from = Unwrap(frame.from, asked);
  const uint64_t told = std::min({end, asked, from + frame.words * uint64_t{64}});
  AckTotals& totals = context_->ack_totals;
  totals.Reset();
  told_from_ = from;
  for (uint64_t psn = std::max(from, outstanding_.begin()); psn < told; ++psn) {
    const Outstanding& entry = outstanding_[psn];
    if (entry.state != Outstanding::State::kOutstanding || !entry.written || entry.remote_port != frame.port) continue;
    totals.progress = true;
    if (frame.arrived[(psn - from) / 64] >> ((psn - from) % 64) & 1) {
      unacked_.Clear(psn);
      OnPacketsAcked(psn, psn + 1, false, totals, now);
    } else {
      OnPacketLost(psn, LossCause::kFenced, now);
    }
  }
  if (Fencing(frame.port) && end >= asked) {
    if (FirstFenced(frame.port) == outstanding_.end()) {
      EndFence(frame.port, now);
    } else if (totals.progress) {  // more than one answer tells
      state_->fence_pending |= static_cast<uint8_t>(1u << frame.port);
    }
  }
  TakeNews(totals, now);
}

void Sender::HandleFenceTimeout(Time now) {
  ++fence_tries_;
  for (uint32_t port = 0; port < limits::kMaxPorts; ++port) {
    if (!Fencing(port)) continue;
    state_->fence_pending |= static_cast<uint8_t>(1u << port);
    Fence& fence = (*fences_)[port];
    const bool long_ago = now - fence.since >= context_->options.peer_timeout;
    if (++fence.tries >= kTimeoutsBeforeDead && long_ago) end_of_way_ = kSilentWrites;
  }
  fence_at_ = now + std::min(ProbeDelay(peer_->first_port()) * (int64_t{1} << std::min(fence_tries_, kMostDoublings)),
                             kLongestPatience);
}

// Something came back, but not of the oldest write, for long.
void Sender::FenceIfOverdue(Time now) {
  if (last_write_on_path_.empty()) return;
  uint64_t psn = outstanding_.begin();
  const auto is_under_way = [](const Outstanding& entry) {
    return entry.state == Outstanding::State::kOutstanding && entry.written;
  };
  while (psn < outstanding_.end() && !is_under_way(outstanding_[psn])) ++psn;
  if (psn == outstanding_.end()) return;
  const Outstanding& oldest = outstanding_[psn];
  const auto by_news = [](const ClassRecovery& a, const ClassRecovery& b) {
    return a.newest_arrived_sent_at() < b.newest_arrived_sent_at();
  };
  const ClassRecovery& newest = *std::max_element(recovery_.begin(), recovery_.end(), by_news);
  const Duration timeout = Recovery(oldest.local_port, oldest.traffic_class).Timeout(Limits());
  if (newest.newest_arrived_sent_at() - oldest.sent_at >= timeout * kTimeoutsOverdue) {
    BeginFence(oldest.remote_port, now);
  }
}

// Every port with writes on their way for which `condition` holds.
template <typename Condition>
void Sender::FenceIf(const Condition& condition, Time now) {
  for (uint64_t psn = outstanding_.begin(); psn < outstanding_.end(); ++psn) {
    const Outstanding& entry = outstanding_[psn];
    const bool under_way = entry.state == Outstanding::State::kOutstanding && entry.written;
    if (under_way && condition(entry)) BeginFence(entry.remote_port, now);
  }
}

void Sender::FenceAll(Time now) {
  FenceIf([](const Outstanding&) { return true; }, now);
}

void Sender::OnPortChange(Time now) {
  state_->ready_ports = AllPorts();
  FenceIf([this](const Outstanding& entry) { return !context_->ports[entry.local_port].up; }, now);
}

// ---- a port that had to be fenced

bool Sender::AwaitsTrial(uint32_t port) const {
  if (!health_.IsSuspect(port)) return false;
  return std::any_of(context_->ports.begin(), context_->ports.end(), [this, port](const Port& other) {
    return other.index != port && other.up && Eligible(other.index) && !health_.IsSuspect(other.index) &&
           !Fencing(peer_->routes.remote_of[other.index]);
  });
}

size_t Sender::EmitTrial(uint32_t port, TxBurst& burst, size_t at, Time now) {
  if (!AwaitsTrial(port) || health_.Rests(port, now) || (trials_ >> port & 1) != 0) return 0;
  if (!RoomFor(outstanding_.begin())) return 0;
  trials_ |= static_cast<uint8_t>(1u << port);
  Emit(ProbeOf(port, TrafficClass::kBulk, PayloadBytes(port)), burst, at, now);
  return 1;
}

}  // namespace paceline
