#include "transport/lane/shm/shm_sources.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/lane/unix_socket.h"

namespace paceline {

ShmSources::ShmSources(FileDescriptor listener, int epoll, uint64_t mark)
    : listener_(std::move(listener)), epoll_(epoll), mark_(mark), headers_(kBatch * kMaxHeaderBytes) {
  held_.reserve(kBatch);
}

void ShmSources::OnListener() {
  more_wait_ = cannot_accept_ = false;
  for (size_t i = 0; i < kMostAccepts; ++i) {
    FileDescriptor socket = AcceptUnix(listener_);
    if (!socket.valid()) {
      cannot_accept_ = errno != EAGAIN;
      return;
    }
    if (count_ < kMostSources) Add(std::move(socket));  // else turned away
  }
  more_wait_ = true;
}

void ShmSources::Add(FileDescriptor socket) {
  const auto free = static_cast<uint32_t>(std::find(sources_.begin(), sources_.end(), nullptr) - sources_.begin());
  if (free == sources_.size()) sources_.emplace_back();
  sources_[free] = std::make_unique<Source>();
  sources_[free]->socket = std::move(socket);
  ++count_;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = mark_ + free;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, sources_[free]->socket.get(), &event) != 0) {
    Drop(free);
  } else {
    OnSocket(free);  // the offer comes with the connection
  }
}

void ShmSources::OnSocket(uint32_t number) {
  Source* source = number < sources_.size() ? sources_[number].get() : nullptr;
  if (source == nullptr) return;
  if (source->ring == nullptr) {
    if (!TakeRing(*source)) Drop(number);
  } else if (!source->ended && !TakeRings(source->socket)) {
    source->ended = true;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, source->socket.get(), nullptr);
  }
}

bool ShmSources::TakeRing(Source& source) {
  ShmOffer offer;
  FileDescriptor descriptor;
  const OfferState state = TakeOffer(source.socket, &offer, &descriptor);
  if (state != OfferState::kTaken) return state == OfferState::kWaiting;
  absl::StatusOr<ShmMemory> memory = ShmMemory::Map(descriptor, offer.ring_bytes);
  if (!memory.ok()) return false;
  source.ring = std::make_unique<Ring>(*std::move(memory));
  source.address.size = static_cast<uint8_t>(offer.source_bytes);
  source.address.bytes = offer.source;
  return true;
}

void ShmSources::Drop(uint32_t number) {
  sources_[number].reset();
  --count_;
}

void ShmSources::Release() {
  for (const uint32_t number : held_) {
    Source& source = *sources_[number];
    if (source.ring->reader.Release()) paceline::Ring(source.socket);
  }
  held_.clear();
}

size_t ShmSources::Receive(std::span<RxSegment> out, Time now, LaneCounters& counters) {
  Release();
  out = out.first(std::min(out.size(), kBatch));
  size_t count = 0;
  const size_t sources = sources_.size();
  if (++first_ >= sources) first_ = 0;
  for (size_t i = 0; i < sources && count < out.size(); ++i) {
    const auto number = static_cast<uint32_t>(first_ + i < sources ? first_ + i : first_ + i - sources);
    Source* source = sources_[number].get();
    if (source == nullptr || source->ring == nullptr) continue;
    const size_t more = ReadFrom(*source, out, count, now, counters);
    if (more > 0) {
      held_.push_back(number);
    } else if (source->ring->reader.broken() || source->ended) {
      counters.rx_drops += source->ring->reader.broken();
      Drop(number);
    }
    count += more;
  }
  return count;
}

size_t ShmSources::ReadFrom(Source& source, std::span<RxSegment> out, size_t at, Time now, LaneCounters& counters) {
  ShmRingReader& reader = source.ring->reader;
  // The writer goes on while we are busy with what we hold.
  const uint64_t most = source.ring->memory.ring().ring_bytes / 4;
  size_t count = 0;
  ShmRingReader::Packet packet;
  while (at + count < out.size() && reader.held_bytes() < most && reader.Read(&packet)) {
    RxSegment& segment = out[at + count];
    segment = RxSegment{};
    segment.data = headers_.data() + (at + count) * kMaxHeaderBytes;
    segment.data_bytes = packet.header_bytes;
    std::memcpy(segment.data, packet.header, packet.header_bytes);
    if (packet.payload_bytes > 0) segment.payload = packet.payload;
    segment.payload_bytes = packet.payload_bytes;
    segment.source = &source.address;
    segment.received_at = now;
    ++counters.rx_packets;
    counters.rx_bytes += packet.header_bytes + packet.payload_bytes;
    ++count;
  }
  return count;
}

bool ShmSources::AskForPackets() {
  return held_.empty() && !more_wait_ &&
         std::all_of(sources_.begin(), sources_.end(), [](const std::unique_ptr<Source>& source) {
           return source == nullptr || source->ring == nullptr || source->ring->reader.AskForPackets();
         });
}

void ShmSources::AskNoMore() {
  for (const std::unique_ptr<Source>& source : sources_) {
    if (source != nullptr && source->ring != nullptr) source->ring->reader.AskNoMore();
  }
}

}  // namespace paceline
