// Traffic between two lanes, for tests: numbered segments with checkable contents, and what arrives of them.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/lane/lane.h"

namespace paceline {

inline Time MonotonicNow() {
  return Time::FromNanos(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

struct ReceivedSegment {
  std::string bytes;
  LaneAddress source;
  bool congestion_experienced = false;
  Time received_at;
  Time polled_at;
};

// Receives until `count` segments are there or nothing has come for `patience_ms`; `out_size` segments a call.
inline std::vector<ReceivedSegment> ReceiveSome(Lane& lane, size_t count, size_t out_size = 64,
                                                int patience_ms = 2000) {
  std::vector<ReceivedSegment> result;
  std::vector<RxSegment> out(out_size);
  Time deadline = Time::Never();  // of a lane that cannot wake us
  while (result.size() < count) {
    const Time now = MonotonicNow();
    const size_t got = lane.Receive(out, now);
    for (size_t i = 0; i < got; ++i) {
      std::string bytes(reinterpret_cast<const char*>(out[i].data), out[i].data_bytes);
      if (out[i].payload != nullptr) bytes.append(reinterpret_cast<const char*>(out[i].payload), out[i].payload_bytes);
      result.push_back({bytes, *out[i].source, out[i].congestion_experienced, out[i].received_at, now});
    }
    if (got > 0) deadline = Time::Never();
    if (got > 0) continue;
    if (lane.wait_descriptor() < 0) {
      if (deadline.is_never()) deadline = now + Duration::Millis(patience_ms);
      if (now >= deadline) break;
      continue;
    }
    if (!lane.PrepareToWait()) continue;
    pollfd waiting{lane.wait_descriptor(), POLLIN, 0};
    if (poll(&waiting, 1, patience_ms) == 0) break;
  }
  return result;
}

// Segments with a header and a payload each, owned here.
class SegmentList {
 public:
  void Add(uint32_t peer, uint16_t entropy, uint32_t bytes, bool ecn_capable = true) {
    const uint32_t header = std::min(bytes, 24u);
    std::string contents(bytes, '\0');
    for (uint32_t i = 0; i < bytes; ++i) contents[i] = static_cast<char>(segments_.size() * 31 + i * 7);
    contents_.push_back(std::make_unique<std::string>(std::move(contents)));
    const auto* data = reinterpret_cast<const uint8_t*>(contents_.back()->data());
    TxSegment segment;
    segment.peer = peer;
    segment.entropy = entropy;
    segment.ecn_capable = ecn_capable;
    segment.header = data;
    segment.header_bytes = static_cast<uint16_t>(header);
    segment.payload = data + header;
    segment.payload_bytes = bytes - header;
    segments_.push_back(segment);
  }
  void AddRun(size_t count, uint32_t peer, uint16_t entropy, uint32_t bytes, bool ecn_capable = true) {
    for (size_t i = 0; i < count; ++i) Add(peer, entropy, bytes, ecn_capable);
  }
  std::span<const TxSegment> all() const { return segments_; }
  const std::string& contents(size_t i) const { return *contents_[i]; }
  size_t size() const { return segments_.size(); }

 private:
  std::vector<std::unique_ptr<std::string>> contents_;
  std::vector<TxSegment> segments_;
};

}  // namespace paceline
