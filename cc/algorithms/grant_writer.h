// Fills the span of one ReceiverController::PollGrants call, with at most one grant per flow: a later grant to a flow
// of the same call takes the place of the earlier one, as grants are cumulative.
//
// Thread rule: one owner at a time; lives for one call.
#pragma once

#include <cstdint>
#include <span>

#include "cc/congestion_control.h"

namespace paceline {

class GrantWriter {
 public:
  // Kept with each flow between calls.
  struct Place {
    uint64_t call = 0;  // the last one that wrote a grant to the flow
    uint32_t index = 0;
  };

  // `call`: a number that no earlier call of this controller had; not 0.
  GrantWriter(std::span<Grant> out, uint64_t call) : out_(out), call_(call) {}

  bool full() const { return written_ == out_.size(); }
  bool HasRoomFor(const Place& place) const { return place.call == call_ || !full(); }
  // Only with room for it.
  void Write(Place& place, const Grant& grant) {
    if (place.call != call_) place = {call_, static_cast<uint32_t>(written_++)};
    out_[place.index] = grant;
  }
  size_t written() const { return written_; }

 private:
  const std::span<Grant> out_;
  const uint64_t call_;
  size_t written_ = 0;
};

}  // namespace paceline
