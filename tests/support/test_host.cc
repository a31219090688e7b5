#include "tests/support/test_host.h"

#include <algorithm>
#include <array>
#include <utility>

namespace paceline::support {
namespace {

// A poll that still finds work after so many rounds has a timer that is always due.
constexpr int kMaxRounds = 2000;

}  // namespace

TestHost::TestHost(const EndpointOptions& options, std::unique_ptr<CongestionControl> congestion_control,
                   std::vector<Lane*> lanes, VirtualNetwork* network)
    : network_(network),
      lanes_(std::move(lanes)),
      observation_(std::make_shared<ControlObservation>()),
      burst_(std::make_unique<TxBurst>()) {
  std::vector<PortDescription> ports;
  for (Lane* lane : lanes_) {
    ports.push_back({lane->capabilities(), lane->address()});
    lane_changes_.push_back(lane->status().change_count);
  }
  endpoint_ = std::make_unique<Endpoint>(options, Observe(std::move(congestion_control), observation_),
                                         static_cast<EndpointEnvironment*>(this), ports);
  network_->AttachHost(this);
}

TestHost::~TestHost() = default;

bool TestHost::Receive(uint32_t port, Time now) {
  std::array<RxSegment, 32> segments;
  if (lanes_[port]->capabilities().least_guessed_bytes > 0) {
    lanes_[port]->GuessPlacement(endpoint_->GuessPlacement(port));
  }
  const size_t count = lanes_[port]->Receive(segments, now);
  if (count == 0) return false;
  endpoint_->HandleSegments(port, std::span(segments).first(count), now);
  return true;
}

bool TestHost::Transmit(uint32_t port, Time now) {
  const size_t room = std::min(lanes_[port]->room(), TxBurst::kSegments);
  if (room == 0 || !endpoint_->may_transmit()) return false;
  const size_t count = endpoint_->PollTransmit(port, *burst_, room, now);
  if (count > room) violations_.push_back("PollTransmit gave more segments than there was room");
  if (count == 0) return false;
  lanes_[port]->Send(std::span(burst_->segments).first(count));
  return true;
}

bool TestHost::TakeEvents(Time now) {
  bool any = false;
  std::array<ConnectionEvent, 16> polled;
  while (const size_t count = endpoint_->PollConnectionEvents(polled)) {
    any = true;
    for (const ConnectionEvent& event : std::span(polled).first(count)) {
      if (event.kind == ConnectionEventKind::kRequest && accept_requests) endpoint_->Accept(event.connection, now);
      if (on_event) {
        on_event(event);
      } else {
        events.push_back(event);
      }
    }
  }
  if (!poll_completions) return any;
  std::array<Completion, 16> completed;
  while (const size_t count = endpoint_->PollCompletions(completed)) {
    any = true;
    for (const Completion& completion : std::span(completed).first(count)) {
      if (on_completion) {
        on_completion(completion);
      } else {
        completions.push_back(completion);
      }
    }
  }
  return any;
}

Time TestHost::Poll(Time network_now) {
  if (frozen_) return Time::Never();  // what arrives meanwhile stays in the lane
  if (stalled()) return stalled_until_;
  const Time next = PollByOwnClock(network_now + ahead_);
  return next.is_never() ? next : next - ahead_;
}

Time TestHost::PollByOwnClock(Time now) {
  const auto ports = static_cast<uint32_t>(lanes_.size());
  for (uint32_t port = 0; port < ports; ++port) {
    const LaneStatus status = lanes_[port]->status();
    if (status.change_count == lane_changes_[port]) continue;
    lane_changes_[port] = status.change_count;
    endpoint_->HandlePortStatus(port, status.up, now);
  }
  for (int round = 0;; ++round) {
    bool moved = false;
    for (uint32_t port = 0; port < ports; ++port) moved |= Receive(port, now);
    const bool due = endpoint_->PollTimeout() <= now;
    if (due) endpoint_->HandleTimeout(now);
    first_port_ = (first_port_ + 1) % ports;  // as the engine does
    for (uint32_t i = 0; i < ports; ++i) moved |= Transmit((first_port_ + i) % ports, now);
    moved |= TakeEvents(now);
    if (!moved && endpoint_->PollTimeout() > now) return endpoint_->PollTimeout();
    if (round == kMaxRounds) {
      if (violations_.size() < 20)
        violations_.push_back(moved ? "the endpoint never runs dry" : "a timer is always due");
      return now + Duration::Micros(1);
    }
  }
}

std::vector<std::string> TestHost::Violations() const {
  std::vector<std::string> all = violations_;
  all.insert(all.end(), observation_->violations.begin(), observation_->violations.end());
  return all;
}

}  // namespace paceline::support
