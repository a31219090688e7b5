// Fences that a peer has asked for: what it wrote by remote placement to a port of ours under packet numbers below an
// end is not to arrive any more. One object for each connection whose peer has asked; kept by port, so a peer that asks
// without end costs nothing more; the lane is told of one at a time for each port.
//
// What an answer says stays true for ever, as packet numbers are never used twice: questions and answers may be lost,
// repeated or come late.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <array>
#include <cstdint>

#include "transport/base/limits.h"
#include "transport/core/rx/ack_state.h"
#include "transport/wire/frames.h"

namespace paceline {

class WriteFences {
 public:
  // The peer asks for a fence below packet `end`; the answer is to tell what has arrived from packet `from` on, a
  // multiple of 64. True: the lane of this port is to be told now.
  bool OnAsked(uint32_t port, uint64_t end, uint64_t from);
  // The lane says that it holds. True: it is to be told again, as the peer has asked for more meanwhile.
  bool OnHeld(uint32_t port);

  bool answer_due() const { return due_ != 0; }
  // One answer; false: none is due.
  bool PollAnswer(const AckState& acks, wire::FencedFrame* frame);

 private:
  struct Fence {
    uint64_t held = 0;    // packets below it are refused
    uint64_t told = 0;    // the same, that the lane was told and has not answered; 0: nothing
    uint64_t wanted = 0;  // the most that the peer has asked for
    uint64_t from = 0;    // of its last question
  };
  static_assert(limits::kMaxPorts <= 8, "a bit for each port");
  std::array<Fence, limits::kMaxPorts> fences_;
  uint8_t due_ = 0;  // bit per port
};

}  // namespace paceline
