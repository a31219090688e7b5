// Two lanes joined in memory, for tests of the engine: what one sends the other receives. How much a Send takes, and
// what room() says, can be set, to play a kernel whose buffers run out.
//
// Thread rule: one thread. Each lane must outlive the use of the other.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transport/lane/lane.h"

namespace paceline {

class MemoryLane final : public Lane {
 public:
  explicit MemoryLane(uint8_t number) : name_("memory:" + std::to_string(number)) {
    address_.size = 1;
    address_.bytes[0] = number;
    capabilities_.max_packet_bytes = 1500;
    capabilities_.burst_segments = 16;
    capabilities_.link_rate = Rate::Gbps(10);
    capabilities_.base_rtt = Duration::Micros(10);
    capabilities_.reads_later = true;
    if (pipe(pipe_) != 0) pipe_[0] = pipe_[1] = -1;
  }
  ~MemoryLane() override {
    for (const int fd : pipe_) close(fd);
  }
  static void Join(MemoryLane& a, MemoryLane& b) {
    a.peer_ = &b;
    b.peer_ = &a;
  }

  size_t take = SIZE_MAX;      // segments that the next Sends take, all together
  size_t promised = SIZE_MAX;  // what room() says
  LaneStatus current_status;
  std::vector<size_t> sends;  // segments offered, by call
  bool has_descriptor = true;
  bool may_wait = true;  // what PrepareToWait says
  int prepared = 0;      // how often it was asked
  int looks = 0;         // calls of Receive
  size_t waiting() const { return arrived_.size(); }
  void set_costly_receive() { capabilities_.costly_receive = true; }
  // Where the card sees memory of a GPU; nullptr: nowhere.
  std::function<const uint8_t*(const uint8_t* payload, size_t bytes)> reach_gpu;

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return address_; }
  LaneStatus status() const override { return current_status; }
  const LaneCounters& counters() const override { return counters_; }
  uint32_t OpenPeer(const LaneAddress&) override { return 1; }
  void ClosePeer(uint32_t) override {}
  size_t room() const override { return promised; }

  size_t Send(std::span<const TxSegment> segments) override {
    sends.push_back(segments.size());
    const size_t count = std::min(take, segments.size());
    if (take != SIZE_MAX) take -= count;
    for (const TxSegment& segment : segments.first(count)) {
      std::vector<uint8_t> bytes(segment.header, segment.header + segment.header_bytes);
      const uint8_t* payload = segment.on_device ? reach_gpu(segment.payload, segment.payload_bytes) : segment.payload;
      if (payload != nullptr) bytes.insert(bytes.end(), payload, payload + segment.payload_bytes);
      peer_->arrived_.push_back(std::move(bytes));
      peer_->Signal();
      ++counters_.tx_packets;
    }
    return count;
  }

  size_t Receive(std::span<RxSegment> out, Time now) override {
    ++looks;
    given_.clear();
    size_t count = 0;
    while (count < out.size() && !arrived_.empty()) {
      given_.push_back(std::move(arrived_.front()));
      arrived_.pop_front();
      RxSegment& segment = out[count++] = RxSegment();
      segment.data = given_.back().data();
      segment.data_bytes = static_cast<uint32_t>(given_.back().size());
      segment.source = &peer_->address_;
      segment.received_at = now;
      ++counters_.rx_packets;
    }
    if (arrived_.empty() && signalled_) {
      char byte;
      signalled_ = read(pipe_[0], &byte, 1) != 1;
    }
    return count;
  }

  bool LendMemory(const LaneMemory& memory) override { return memory.on_device() && reach_gpu; }
  bool ReadsFromDevice(const uint8_t* payload, size_t bytes) const override {
    return reach_gpu && reach_gpu(payload, bytes) != nullptr;
  }

  int wait_descriptor() const override { return has_descriptor ? pipe_[0] : -1; }
  bool PrepareToWait() override {
    ++prepared;
    return may_wait;
  }

 private:
  void Signal() {
    if (!signalled_) signalled_ = write(pipe_[1], "x", 1) == 1;
  }

  std::string name_;
  LaneCapabilities capabilities_;
  LaneAddress address_;
  LaneCounters counters_;
  MemoryLane* peer_ = nullptr;
  std::deque<std::vector<uint8_t>> arrived_;
  std::deque<std::vector<uint8_t>> given_;
  int pipe_[2];
  bool signalled_ = false;
};

}  // namespace paceline
