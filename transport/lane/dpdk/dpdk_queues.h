// How many queues of a port a lane takes: what was asked for, within what the port offers and fills.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace paceline {

// Which receive queues frames arrive by.
enum class DpdkSpreading : uint8_t {
  kNone,       // the first, however many there are
  kTaken,      // those that are taken: by the port's hash of addresses and UDP ports (RSS), or as the other end has it
  kRegardless  // all that there are, taken or not
};

struct DpdkQueueOffer {
  uint16_t receive = 1, send = 1;  // queues that the port has
  DpdkSpreading spreading = DpdkSpreading::kNone;
};

struct DpdkQueues {
  uint16_t receive = 1, send = 1;
  std::string shortfall;  // why there are fewer than were asked for, for people; or empty
};

// `asked`: queues in each direction; 0: one, and those to receive without which frames would be lost.
DpdkQueues ChooseDpdkQueues(uint16_t asked, const DpdkQueueOffer& offer);

// Of each queue of a direction that has `queues` of them: one engine polls them all, and memory that does not fit into
// the cache costs more with each frame, so they share what one would have, down to a bound.
uint16_t DpdkQueueEntries(uint16_t queues);

}  // namespace paceline
