// Payloads that a lane puts where they are thought to belong, before anybody has looked at their headers.
//
// The guess is that what comes next goes on where the last run of packets ended, if that one went on where the one
// before it had: where many connections take turns, or messages are short, nothing is guessed. It names bytes that have
// not arrived, of a message all of whose earlier bytes have: whatever lands there is overwritten by what belongs there,
// before the message is whole. Where it holds, nothing is copied. Where it does not, all that the lane has put there is
// copied aside first, as it stands where others belong.
#include <algorithm>
#include <cstring>

#include "transport/core/endpoint_impl.h"

namespace paceline {

PlacementGuess Endpoint::Impl::GuessPlacement(uint32_t port) {
  const LastRun& last = last_runs_[port];
  if (!last.continued) return {};
  Connection* connection = Find(last.connection);
  if (connection == nullptr || !connection->open() || connection->channel() != nullptr) return {};
  if (connection->peer().segment_bytes < context_.ports[port].capabilities.least_guessed_bytes) return {};
  PlacementGuess guess = connection->receiver().GuessPlacement(last.message);
  guess.header_bytes = last.header_bytes;
  return guess;
}

void Endpoint::Impl::NoteRun(uint32_t port, ConnectionId connection, const wire::DataHeader& header,
                             uint32_t header_bytes, uint64_t end) {
  LastRun& last = last_runs_[port];
  const bool continues = last.connection == connection && last.message == header.message && last.end == header.offset;
  last = {connection, header.message, header_bytes, end, continues};
}

// How many of these segments, from the first on, lie where they belong.
size_t Endpoint::Impl::CountInPlace(std::span<const RxSegment> guessed) {
  const auto packet_of = [](const RxSegment& segment) {
    return std::span<const uint8_t>(segment.data, segment.data_bytes);
  };
  const std::span<const uint8_t> first = packet_of(guessed.front());
  bool bad_checksum = false;
  const auto common = wire::ParseCommon(first, &bad_checksum);
  if (!common.has_value() || common->version != wire::kVersion || common->type != wire::PacketType::kData ||
      (common->flags & wire::kProtected) != 0 || common->header_bytes != first.size()) {
    return 0;
  }
  Connection* connection = Find(common->connection);
  if (connection == nullptr || !connection->open() || connection->channel() != nullptr) return 0;
  const auto header = wire::ParseData(*common, first);
  if (!header.has_value()) return 0;
  const uint8_t* const place = connection->receiver().PlaceOf(*header);
  // Offsets may be any number: they are the peer's.
  const auto belongs_there = [place](uint64_t offset, const RxSegment& segment) {
    return reinterpret_cast<uintptr_t>(place) + offset == reinterpret_cast<uintptr_t>(segment.payload);
  };
  if (place == nullptr || !belongs_there(header->offset, guessed.front())) return 0;
  size_t count = 1;
  if (!header->frames.empty()) return count;
  for (wire::DataStamp stamp; count < guessed.size(); ++count) {
    const RxSegment& segment = guessed[count];
    if (!wire::ReadStamp(first, packet_of(segment), &stamp) || !belongs_there(stamp.offset, segment)) break;
  }
  return count;
}

// Takes segments whose payloads the lane has put somewhere; returns how many.
size_t Endpoint::Impl::TakeGuessed(uint32_t port, std::span<const RxSegment> segments, Time now) {
  const auto end = std::find_if(segments.begin(), segments.end(), [](const RxSegment& s) { return !s.guessed; });
  const auto guessed = segments.first(static_cast<size_t>(end - segments.begin()));
  const size_t in_place = CountInPlace(guessed);
  if (in_place > 0) {
    context_.counters.rx_in_place += in_place;
    for (size_t taken = 0; taken < in_place;) {
      const size_t more = HandlePacket(port, guessed.subspan(taken, in_place - taken), now);
      context_.counters.rx_packets += more;
      taken += more;
    }
    return in_place;
  }
  context_.counters.rx_set_aside += guessed.size();
  HandleRiders(now);  // what was set aside before is still read for them
  size_t bytes = 0;
  for (const RxSegment& segment : guessed) bytes += segment.data_bytes + segment.payload_bytes;
  if (aside_bytes_.size() < bytes) aside_bytes_.resize(bytes);
  aside_.assign(guessed.begin(), guessed.end());
  uint8_t* to = aside_bytes_.data();
  for (RxSegment& segment : aside_) {
    std::memcpy(to, segment.data, segment.data_bytes);
    if (segment.payload_bytes > 0) std::memcpy(to + segment.data_bytes, segment.payload, segment.payload_bytes);
    segment.data = to;
    segment.data_bytes += std::exchange(segment.payload_bytes, 0);
    segment.payload = nullptr;
    segment.guessed = false;
    to += segment.data_bytes;
  }
  TakeSegments(port, aside_, now);
  return guessed.size();
}

}  // namespace paceline
