// Test double: a host that sends phantom packets to a list of peers in turn with a fixed number outstanding, and
// answers each packet that it gets with a control packet. No protocol, no recovery: it shows what the fabric does by
// itself.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "transport/lane/sim/fabric.h"
#include "transport/lane/sim/sim_lane.h"

namespace paceline::sim {

class WindowHost : public HostDriver {
 public:
  WindowHost(Fabric& fabric, uint32_t host, std::vector<uint32_t> peers, uint64_t packets, uint32_t window)
      : lane_(fabric.lane(host)),
        peers_(std::move(peers)),
        left_(packets),
        window_(window),
        payload_(fabric.config().mtu_bytes),
        entropies_(fabric.config().entropies) {
    fabric.SetDriver(host, this);
    fabric.RequestPoll(host, Time());
  }

  Time Poll(Time now) override {
    std::array<RxSegment, 16> in;
    for (size_t n = lane_.Receive(in, now); n > 0; n = lane_.Receive(in, now)) {
      for (size_t i = 0; i < n; ++i) {
        if (in[i].phantom_bytes > 0) {
          ++received_;
          last_received_ = in[i].received_at;
          marked_ += in[i].congestion_experienced ? 1 : 0;
          replies_.push_back(lane_.OpenPeer(*in[i].source));
        } else if (in[i].trimmed) {
          ++cut_;
        } else {
          ++acknowledged_;
          last_acknowledged_ = in[i].received_at;
          --outstanding_;
        }
      }
    }
    while (lane_.room() > 0 && (!replies_.empty() || (left_ > 0 && outstanding_ < window_))) {
      TxSegment segment;
      segment.header = header_.data();
      segment.header_bytes = static_cast<uint16_t>(header_.size());
      segment.entropy = static_cast<uint16_t>(next_entropy_++ % entropies_);
      if (!replies_.empty()) {
        segment.control = true;
        segment.peer = replies_.back();
        replies_.pop_back();
      } else {
        segment.peer = SimLane::PeerOf(peers_[next_peer_++ % peers_.size()]);
        segment.payload_bytes = payload_;
        segment.ecn_capable = true;
        ++outstanding_;
        --left_;
      }
      lane_.Send({&segment, 1});
    }
    return Time::Never();
  }

  uint64_t received() const { return received_; }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t cut() const { return cut_; }
  uint64_t marked() const { return marked_; }
  Time last_received() const { return last_received_; }
  Time last_acknowledged() const { return last_acknowledged_; }

 private:
  SimLane& lane_;
  const std::vector<uint32_t> peers_;
  uint64_t left_;
  const uint32_t window_;
  const uint32_t payload_;
  const uint32_t entropies_;
  std::array<uint8_t, 48> header_{};
  std::vector<uint32_t> replies_;
  uint32_t outstanding_ = 0;
  uint32_t next_entropy_ = 0;
  size_t next_peer_ = 0;
  uint64_t received_ = 0, acknowledged_ = 0, cut_ = 0, marked_ = 0;
  Time last_received_, last_acknowledged_;
};

}  // namespace paceline::sim
