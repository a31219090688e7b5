// Several small sends that arrive in one packet (wire/bundle.h).
#include <algorithm>
#include <array>

#include "transport/core/rx/receiver.h"
#include "transport/wire/bundle.h"

namespace paceline {
namespace {

// What counts packets, also where several messages share one.
constexpr std::array kCountedPerPacket = {&EndpointCounters::rx_duplicates, &EndpointCounters::rx_out_of_window,
                                          &EndpointCounters::rx_no_memory, &EndpointCounters::rx_malformed};

}  // namespace

// Several sends in one packet, each of which is then taken as if it had come alone; the packet is when all of them are.
// When it comes again, those that were taken are known by their numbers.
Receiver::Taken Receiver::HandleBundle(const wire::DataHeader& bundle, const Arrival& arrival) {
  std::span<const uint8_t> records;
  if (arrival.payload != nullptr) records = {arrival.payload, arrival.payload_bytes};
  if (bundle.offset != 0 || bundle.length != records.size() || records.size() > peer_->segment_bytes ||
      !wire::IsBundle(records)) {
    ++context_->counters.rx_malformed;
    return Taken::kNo;
  }
  EndpointCounters& counters = context_->counters;
  std::array<uint64_t, kCountedPerPacket.size()> before;
  for (size_t i = 0; i < before.size(); ++i) before[i] = counters.*kCountedPerPacket[i];
  wire::DataHeader header = bundle;
  header.kind = wire::MessageKind::kSend;
  Arrival part = arrival;
  bool all = true;
  for (wire::BundledSend send; wire::ReadBundled(records, &send); ++header.message, ++header.match_sequence) {
    header.length = part.payload_bytes = static_cast<uint32_t>(send.data.size());
    header.tag = send.tag;
    header.flags =
        static_cast<uint8_t>((bundle.flags & ~wire::kHasImmediate) | (send.has_immediate ? wire::kHasImmediate : 0));
    header.immediate = send.immediate;
    part.payload = send.data.data();
    Stretch stretch(&part, 1);
    Run run;
    all &= HandleMessage(header, stretch, run) == Taken::kYes;
  }
  for (size_t i = 0; i < before.size(); ++i) {
    counters.*kCountedPerPacket[i] = std::min(counters.*kCountedPerPacket[i], before[i] + 1);
  }
  return all ? Taken::kYes : Taken::kNo;
}

}  // namespace paceline
