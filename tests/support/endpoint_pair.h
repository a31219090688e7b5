// Two endpoints without lanes: what one wants to send the other handles at once. For measuring what the core and a
// controller cost; nothing is lost, and time passes only in steps.
//
// Thread rule: one thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "cc/registry.h"
#include "tests/support/test_congestion_control.h"
#include "transport/core/endpoint.h"

namespace paceline::support {

class NoLanes final : public EndpointEnvironment {
 public:
  uint32_t OpenPeer(uint32_t, const LaneAddress& address) override { return 1 + address.bytes[0]; }
  void ClosePeer(uint32_t, uint32_t) override {}
  uint64_t RegisterMemory(uint32_t, const LaneMemory&) override { return 0; }
  void DeregisterMemory(uint32_t, uint64_t) override {}
};

inline LaneCapabilities PairCapabilities(uint32_t max_packet_bytes, uint32_t burst_segments) {
  LaneCapabilities capabilities;
  capabilities.max_packet_bytes = max_packet_bytes;
  capabilities.entropies = 64;
  capabilities.link_rate = Rate::Gbps(100);
  capabilities.base_rtt = Duration::Micros(10);
  capabilities.burst_segments = burst_segments;
  return capabilities;
}

class EndpointPair {
 public:
  // `algorithm`: as in the registry; without one, a fixed window of the tests. `checked`: payload has checksums.
  explicit EndpointPair(const char* algorithm = nullptr, uint32_t max_packet_bytes = 4096 + 96, bool checked = true,
                        uint32_t burst_segments = 16)
      : EndpointPair(algorithm, PairCapabilities(max_packet_bytes, burst_segments), checked) {}
  EndpointPair(const char* algorithm, const LaneCapabilities& capabilities, bool checked)
      : EndpointPair([algorithm](uint64_t seed) { return NewControl(algorithm, seed); }, capabilities, checked) {}
  // `control`: makes each one's, with a seed.
  EndpointPair(const std::function<std::unique_ptr<CongestionControl>(uint64_t)>& control,
               const LaneCapabilities& capabilities, bool checked)
      : checked_(checked), capabilities_(capabilities), a_(New(control(1), 1)), b_(New(control(2), 2)) {}

  // `host`: which of the addresses of the other one, each of which is a peer to the lane.
  std::pair<ConnectionId, ConnectionId> Connect(uint8_t host = 0) {
    LaneAddress address{.size = 1};
    address.bytes[0] = host;
    const ConnectionId a = a_->ReserveConnection();
    const ConnectionId b = b_->ReserveConnection();
    a_->Establish(a, {.peer_connection = b, .addresses = {address}}, now_);
    b_->Establish(b, {.peer_connection = a, .addresses = {address}}, now_);
    return {a, b};
  }
  Endpoint& a() { return *a_; }
  Endpoint& b() { return *b_; }
  Time now() const { return now_; }
  void Advance(Duration time) {
    now_ = now_ + time;
    Step();
  }
  // One pass of both; returns the packets moved.
  size_t Step(Duration time = Duration::Nanos(200)) {
    now_ = now_ + time;
    const size_t moved = Move(*a_, *b_);
    of_b_ = Move(*b_, *a_);
    return moved + of_b_;
  }
  // What the second sent in the last pass.
  std::span<const TxSegment> last_of_b() const { return std::span(burst_.segments).first(of_b_); }

 private:
  static std::unique_ptr<CongestionControl> NewControl(const char* algorithm, uint64_t seed) {
    return algorithm == nullptr ? NewTestCongestionControl(TestControl::kWindow, 256 * 1024)
                                : CreateCongestionControl(algorithm, {}, seed).value();
  }
  std::unique_ptr<Endpoint> New(std::unique_ptr<CongestionControl> control, uint64_t seed) {
    EndpointOptions options;
    options.seed = seed;
    options.payload_checksum = checked_;
    const PortDescription port{capabilities_, LaneAddress{}};
    return std::make_unique<Endpoint>(options, std::move(control), &environment_, std::span(&port, 1));
  }
  size_t Move(Endpoint& from, Endpoint& to) {
    if (from.PollTimeout() <= now_) from.HandleTimeout(now_);
    const size_t count = from.PollTransmit(0, burst_, TxBurst::kSegments, now_);
    for (size_t i = 0; i < count; ++i) {
      const TxSegment& sent = burst_.segments[i];
      RxSegment& got = arrived_[i];
      got = RxSegment{};
      got.data = const_cast<uint8_t*>(sent.header);  // it stays until the other one sends
      got.data_bytes = sent.header_bytes;
      if (sent.payload != nullptr && sent.payload_bytes > 0) {
        got.payload = const_cast<uint8_t*>(static_cast<const uint8_t*>(sent.payload));
        got.payload_bytes = sent.payload_bytes;
      } else {
        got.phantom_bytes = sent.payload_bytes;
      }
      got.source = &address_;
      got.received_at = now_;
    }
    if (count > 0) to.HandleSegments(0, std::span(arrived_).first(count), now_);
    return count;
  }

  const bool checked_;
  const LaneCapabilities capabilities_;
  NoLanes environment_;
  const LaneAddress address_{.size = 1};
  Time now_ = Time::FromNanos(1'000'000);
  std::unique_ptr<Endpoint> a_;
  std::unique_ptr<Endpoint> b_;
  TxBurst burst_;
  size_t of_b_ = 0;
  std::array<RxSegment, TxBurst::kSegments> arrived_;
};

}  // namespace paceline::support
