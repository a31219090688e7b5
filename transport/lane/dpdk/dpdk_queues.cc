#include "transport/lane/dpdk/dpdk_queues.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

constexpr uint32_t kEntries = 1024, kLeastEntries = 256;

}  // namespace

DpdkQueues ChooseDpdkQueues(uint16_t asked, const DpdkQueueOffer& offer) {
  DpdkQueues queues;
  if (offer.spreading == DpdkSpreading::kRegardless) {
    queues.receive = offer.receive;
    queues.send = asked == 0 ? offer.send : std::min(asked, offer.send);
  } else if (offer.spreading == DpdkSpreading::kTaken && asked > 0) {
    queues.receive = std::min(asked, offer.receive);
    queues.send = std::min(asked, offer.send);
  }
  if (asked > std::min(queues.receive, queues.send)) {
    queues.shortfall = offer.spreading == DpdkSpreading::kNone
                           ? "the port does not spread UDP over receive queues (RSS)"
                           : absl::StrCat("the port has ", offer.receive, " to receive and ", offer.send, " to send");
  }
  return queues;
}

uint16_t DpdkQueueEntries(uint16_t queues) {
  return static_cast<uint16_t>(std::max(kEntries / std::bit_ceil(uint32_t{queues}), kLeastEntries));
}

}  // namespace paceline
