#include "tools/study/host.h"

#include <algorithm>
#include <array>
#include <utility>

namespace paceline::tools {

// Passes everything on to the NIC and keeps the source of what the last Receive brought. The fabric polls a host for
// every arrival, so that is one packet.
class Host::SourceRecorder : public Lane {
 public:
  SourceRecorder(std::unique_ptr<Lane> lane, std::vector<uint32_t>* sources)
      : lane_(std::move(lane)), sources_(sources) {}

  std::string_view name() const override { return lane_->name(); }
  const LaneCapabilities& capabilities() const override { return lane_->capabilities(); }
  const LaneAddress& address() const override { return lane_->address(); }
  LaneStatus status() const override { return lane_->status(); }
  const LaneCounters& counters() const override { return lane_->counters(); }
  uint32_t OpenPeer(const LaneAddress& address) override { return lane_->OpenPeer(address); }
  void ClosePeer(uint32_t peer) override { lane_->ClosePeer(peer); }
  size_t room() const override { return lane_->room(); }
  size_t Send(std::span<const TxSegment> segments) override { return lane_->Send(segments); }
  size_t Receive(std::span<RxSegment> out, Time now) override {
    const size_t count = lane_->Receive(out, now);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t source = sim::SimLane::NicOf(lane_->OpenPeer(*out[i].source));
      if (sources_->empty() || sources_->back() != source) sources_->push_back(source);
    }
    return count;
  }

 private:
  std::unique_ptr<Lane> lane_;
  std::vector<uint32_t>* const sources_;
};

absl::StatusOr<std::unique_ptr<Host>> Host::Create(const EngineOptions& options,
                                                   std::vector<std::unique_ptr<sim::SimLane>> lanes,
                                                   uint64_t largest_message, FlowEvents* events) {
  std::unique_ptr<Host> host(new Host(events, static_cast<uint32_t>(lanes.size())));
  std::vector<std::unique_ptr<Lane>> recorders;
  for (auto& lane : lanes) recorders.push_back(std::make_unique<SourceRecorder>(std::move(lane), &host->sources_));
  auto engine = Engine::Create(options, std::move(recorders));
  if (!engine.ok()) return engine.status();
  host->engine_ = *std::move(engine);
  host->region_ = host->endpoint().RegisterMemory(nullptr, largest_message, kLocalOnly, MemoryKind::kPhantom);
  return host;
}

void Host::AwaitFirstPacket(uint32_t source_host, ConnectionId connection, uint64_t largest_bytes) {
  if (awaited_.size() <= source_host) awaited_.resize(source_host + 1);
  for (Awaited& awaited : awaited_[source_host]) {
    if (awaited.connection != connection) continue;
    awaited.largest_bytes = std::max(awaited.largest_bytes, largest_bytes);
    return;
  }
  awaited_[source_host].push_back({connection, largest_bytes});
}

Time Host::Prepare() {
  std::stable_sort(scheduled_.begin(), scheduled_.end(),
                   [](const Posting& a, const Posting& b) { return a.due < b.due; });
  std::array<ConnectionEvent, 64> events;  // all connections are established by now; nobody asks how
  while (endpoint().PollConnectionEvents(events) > 0) {
  }
  const Time first = scheduled_.empty() ? Time::Never() : scheduled_[0].due;
  return timers_.empty() ? first : std::min(first, timers_.begin()->first);
}

Time Host::Poll(Time now) {
  constexpr int kMostPasses = 64;  // a bound on what happens in one instant
  Time next = now;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    TellTimers(now);
    bool more = PostDue(now);
    sources_.clear();
    next = engine_->Poll(now);
    more |= PostForUnexpected(now);
    more |= TakeCompletions(now);
    if (!more && next > now) break;
  }
  if (any_ready()) next = std::min(next, now + Duration::Micros(1));  // a post met a bound: try again
  if (next_scheduled_ < scheduled_.size()) next = std::min(next, scheduled_[next_scheduled_].due);
  if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
  return next;
}

void Host::TellTimers(Time now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto [due, timer] = *timers_.begin();
    timers_.erase(timers_.begin());
    events_->OnTimer(timer, due);
  }
}

bool Host::PostDue(Time now) {
  bool posted = false;
  for (std::deque<Posting>* ready : {&ready_receives_, &ready_sends_}) {
    while (!ready->empty() && Post(ready->front(), now)) {
      ready->pop_front();
      posted = true;
    }
  }
  while (next_scheduled_ < scheduled_.size() && scheduled_[next_scheduled_].due <= now) {
    const Posting& posting = scheduled_[next_scheduled_++];
    std::deque<Posting>& ready = Ready(posting);
    if (ready.empty() && Post(posting, now)) {
      posted = true;
    } else {
      ready.push_back(posting);
    }
  }
  return posted;
}

bool Host::Post(const Posting& posting, Time now) {
  PostResult result;
  const LocalBuffer buffer{nullptr, posting.bytes, region_};
  if (posting.send) {
    SendRequest request;
    request.buffer = buffer;
    request.tag = posting.flow;
    request.user_data = posting.flow;
    result = endpoint().PostSend(posting.connection, request, now);
  } else {
    ReceiveRequest request;
    request.buffer = buffer;
    request.tag = posting.flow;
    result = endpoint().PostReceive(posting.connection, request, now);
  }
  if (result == PostResult::kTryAgain) return false;
  if (posting.send) events_->OnStarted(posting.flow, posting.due);
  if (result != PostResult::kOk) {
    if (posting.send) {
      events_->OnSent(posting.flow, false, now);
    } else {
      events_->OnReceived(posting.flow, false, now);
    }
  }
  return true;
}

bool Host::PostForUnexpected(Time now) {
  if (awaited_.empty()) return false;
  const uint64_t unexpected = endpoint().counters().unexpected_messages;
  if (unexpected == unexpected_seen_) return false;
  unexpected_seen_ = unexpected;
  bool posted = false;
  for (const uint32_t nic : sources_) {
    const uint32_t source = nic / nics_;
    if (source >= awaited_.size()) continue;
    for (const Awaited& awaited : awaited_[source]) {
      ReceiveRequest request;
      request.buffer = {nullptr, awaited.largest_bytes, region_};
      request.ignore = ~uint64_t{0};
      for (uint32_t left = endpoint().UnexpectedMessages(awaited.connection); left > 0; --left) {
        posted |= endpoint().PostReceive(awaited.connection, request, now) == PostResult::kOk;
      }
    }
  }
  return posted;
}

bool Host::TakeCompletions(Time now) {
  bool any = false;
  for (size_t count; (count = endpoint().PollCompletions(completions_)) > 0;) {
    any = true;
    for (const Completion& completion : std::span(completions_).first(count)) {
      const bool ok = completion.status == OperationStatus::kOk;
      if (completion.operation == Operation::kSend) {
        events_->OnSent(static_cast<uint32_t>(completion.user_data), ok, now);
      } else if (completion.operation == Operation::kReceive) {
        events_->OnReceived(static_cast<uint32_t>(completion.tag), ok, now);
      }
    }
  }
  return any && any_ready();
}

}  // namespace paceline::tools
