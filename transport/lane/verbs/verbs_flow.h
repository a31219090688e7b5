// By which of several routes of equal cost (ECMP) the packets of a queue pair go. On RoCE v2 switches choose by the UDP
// source port, which cards take from the flow label that the queue pair is given.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>

namespace paceline {

// The flow label (20 bits, never 0, which would leave the choice to the card) of queue pair `number` among those that
// have the `origin`. 16,384 numbers in a row have as many ports; those of another origin begin elsewhere. Of a path
// they are the attempt and the lane's epoch (verbs_messages.h), so that a path's next queue pair has another port; of
// datagrams the numbers of the queue pairs that they go to and come from.
constexpr uint32_t VerbsFlowLabel(uint32_t origin, uint32_t number) {
  constexpr uint32_t kStep =
      10125;  // odd: goes through all of them; 2^14 over the golden ratio: neighbours are far apart
  return 1u << 14 | ((origin + number * kStep) & 0x3fff);
}

// The port of a flow label, 0xc000 to 0xffff, as Linux has it for all cards.
constexpr uint16_t VerbsUdpPort(uint32_t flow_label) {
  return static_cast<uint16_t>(0xc000 | ((flow_label ^ flow_label >> 14) & 0x3fff));
}

}  // namespace paceline
