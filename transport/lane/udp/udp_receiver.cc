#include "transport/lane/udp/udp_receiver.h"

#include <netinet/ip.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <limits>
#include <utility>

namespace paceline {
namespace {

constexpr int kEcnMask = 3;
constexpr int kCongestionExperienced = 3;  // RFC 3168
// A stamp further away from the poll than this means that the wall clock was set since the offset was measured.
constexpr Duration kOddAge = Duration::Millis(500);
constexpr Duration kOffsetLife = Duration::Seconds(1);
constexpr int kOffsetAttempts = 4;
constexpr int64_t kGoodGapNanos = 1000;

int64_t ReadClock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

template <typename Value>
Value ReadValue(const cmsghdr* entry) {
  Value value{};
  std::memcpy(&value, CMSG_DATA(entry), sizeof(value));
  return value;
}

}  // namespace

UdpReceiver::UdpReceiver(const Options& options)
    : options_(options),
      buffer_bytes_(options.gro ? kGroBufferBytes : (options.max_packet_bytes + 63) / 64 * 64),
      buffers_(options.gro ? kGroBuffers : kPlainBuffers),
      messages_(buffers_.size()),
      stamps_(options.timestamps) {
  memory_ = std::make_unique<uint8_t[]>(buffer_bytes_ * buffers_.size());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].vector = {memory_.get() + i * buffer_bytes_, buffer_bytes_};
    msghdr& header = messages_[i].msg_hdr;
    header.msg_name = &buffers_[i].from.generic;
    header.msg_namelen = sizeof(sockaddr_in6);
    header.msg_iov = &buffers_[i].vector;
    header.msg_iovlen = 1;
    header.msg_control = buffers_[i].control.data();
    header.msg_controllen = kControlBytes;
  }
}

void UdpReceiver::MeasureClockOffset(Time now) {
  // The wall clock between two looks at the monotonic one: the error is at most half of what passed between them. Being
  // descheduled there shows as a wide gap, so the narrowest of a few counts.
  int64_t narrowest = std::numeric_limits<int64_t>::max();
  for (int attempt = 0; attempt < kOffsetAttempts && narrowest > kGoodGapNanos; ++attempt) {
    const int64_t before = ReadClock(CLOCK_MONOTONIC);
    const int64_t wall = ReadClock(CLOCK_REALTIME);
    const int64_t gap = ReadClock(CLOCK_MONOTONIC) - before;
    if (gap >= narrowest) continue;
    narrowest = gap;
    realtime_minus_monotonic_ = wall - (before + gap / 2);
  }
  offset_measured_at_ = now;
  offset_known_ = true;
  offset_fresh_ = true;
}

Time UdpReceiver::ToTransportClock(int64_t realtime_nanos, Time now) {
  if (!offset_known_ || now - offset_measured_at_ > kOffsetLife) MeasureClockOffset(now);
  Time at = Time::FromNanos(realtime_nanos - realtime_minus_monotonic_);
  if (!offset_fresh_ && (now - at > kOddAge || at - now > kOddAge)) {
    MeasureClockOffset(now);
    at = Time::FromNanos(realtime_nanos - realtime_minus_monotonic_);
  }
  return std::min(at, now);  // it may have arrived between the caller's look at the clock and this call
}

void UdpReceiver::ReadControl(Buffer& buffer, msghdr& header, Time now, LaneCounters& counters) {
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr; entry = CMSG_NXTHDR(&header, entry)) {
    if (entry->cmsg_level == IPPROTO_UDP && entry->cmsg_type == UDP_GRO) {
      const int stride = ReadValue<int>(entry);
      if (stride > 0) buffer.stride = static_cast<uint32_t>(stride);
    } else if (entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_TOS) {
      buffer.congestion_experienced = (ReadValue<uint8_t>(entry) & kEcnMask) == kCongestionExperienced;
    } else if (entry->cmsg_level == IPPROTO_IPV6 && entry->cmsg_type == IPV6_TCLASS) {
      buffer.congestion_experienced = (ReadValue<int>(entry) & kEcnMask) == kCongestionExperienced;
    } else if (entry->cmsg_level == SOL_SOCKET && entry->cmsg_type == SO_TIMESTAMPNS) {
      const auto stamp = ReadValue<timespec>(entry);
      buffer.received_at = ToTransportClock(stamp.tv_sec * int64_t{1'000'000'000} + stamp.tv_nsec, now);
    } else if (entry->cmsg_level == SOL_SOCKET && entry->cmsg_type == SO_RXQ_OVFL) {
      const auto drops = ReadValue<uint32_t>(entry);
      counters.rx_drops += drops - kernel_drops_;  // modulo 2^32, as the kernel counts
      kernel_drops_ = drops;
    }
  }
}

void UdpReceiver::SetStamps(bool on) {
  const int value = on ? 1 : 0;
  if (setsockopt(options_.socket, SOL_SOCKET, SO_TIMESTAMPNS, &value, sizeof(value)) == 0) stamps_ = on;
}

// Only where all packets of a buffer are handed out in one call: the next one may not touch what was guessed.
void UdpReceiver::LayOut(const PlacementGuess& guess, size_t wanted) {
  msghdr& header = messages_[0].msg_hdr;
  in_row_ = options_.gro && guess.packets > 0 && guess.payload_bytes >= kLeastGuessedBytes && guess.header_bytes > 0 &&
            guess.header_bytes <= kMostHeaderBytes && wanted >= kMostGuessed;
  if (!in_row_) {
    header.msg_iov = &buffers_[0].vector;
    header.msg_iovlen = 1;
    return;
  }
  if (row_ == nullptr) row_ = std::make_unique<Row>();
  Row& row = *row_;
  const uint32_t packets =
      std::min(guess.packets, static_cast<uint32_t>(kGroBufferBytes) / (guess.header_bytes + guess.payload_bytes));
  header.msg_iov = row.vectors.data();
  header.msg_iovlen = 2 * size_t{packets} + 1;
  if (row.guess.to == guess.to && row.guess.packets == packets && row.guess.header_bytes == guess.header_bytes &&
      row.guess.payload_bytes == guess.payload_bytes) {
    return;
  }
  row.guess = guess;
  row.guess.packets = packets;
  for (size_t i = 0; i < packets; ++i) {
    row.vectors[2 * i] = {row.headers[i].data(), guess.header_bytes};
    row.vectors[2 * i + 1] = {guess.to + i * guess.payload_bytes, guess.payload_bytes};
  }
  row.vectors[2 * size_t{packets}] = {row.rest.data(), row.rest.size()};
}

// What the row holds, as one piece in the first buffer.
void UdpReceiver::PutTogether(const Buffer& buffer) {
  auto* to = static_cast<uint8_t*>(buffer.vector.iov_base);
  size_t left = buffer.bytes;
  for (const iovec& vector : std::span(row_->vectors).first(messages_[0].msg_hdr.msg_iovlen)) {
    const size_t bytes = std::min(left, vector.iov_len);
    std::memcpy(to, vector.iov_base, bytes);
    to += bytes;
    left -= bytes;
  }
  in_row_ = false;
}

// The packet of so many bytes at offset_ of the current buffer.
RxSegment UdpReceiver::At(const Buffer& buffer, uint32_t bytes) const {
  RxSegment segment;
  segment.data = static_cast<uint8_t*>(buffer.vector.iov_base) + offset_;
  segment.data_bytes = bytes;
  if (current_ > 0 || !in_row_) return segment;
  const PlacementGuess& guess = row_->guess;
  const uint32_t number = offset_ / row_->stride();
  if (number >= guess.packets) {
    segment.data = row_->rest.data() + (offset_ - guess.packets * row_->stride());
    return segment;
  }
  segment.data = row_->headers[number].data();
  segment.data_bytes = std::min(bytes, guess.header_bytes);
  if (bytes <= guess.header_bytes) return segment;
  segment.payload = guess.to + size_t{number} * guess.payload_bytes;
  segment.payload_bytes = bytes - guess.header_bytes;
  segment.guessed = true;
  return segment;
}

bool UdpReceiver::Fill(const PlacementGuess& guess, size_t wanted, Time now, LaneCounters& counters) {
  filled_ = current_ = 0;
  offset_ = 0;
  offset_fresh_ = false;
  if (options_.timestamps && rhythm_.IsDense(now) == stamps_) SetStamps(!stamps_);
  ++counters.rx_calls;
  const size_t asked = std::min({batch_, wanted, messages_.size()});
  LayOut(guess, wanted);
  const int count = recvmmsg(options_.socket, messages_.data(), static_cast<unsigned>(asked), MSG_DONTWAIT, nullptr);
  // Nothing there; or an error that the kernel had kept for this socket (its interface went down), cleared by asking.
  if (count <= 0) {
    batch_ = 1;
    return false;
  }
  filled_ = static_cast<size_t>(count);
  batch_ = filled_ == asked ? std::min(2 * filled_, messages_.size()) : filled_;
  for (size_t i = 0; i < filled_; ++i) {
    Buffer& buffer = buffers_[i];
    msghdr& header = messages_[i].msg_hdr;
    buffer.bytes = messages_[i].msg_len;
    buffer.stride = buffer.bytes;
    buffer.congestion_experienced = false;
    buffer.received_at = now;
    buffer.usable = (header.msg_flags & MSG_TRUNC) == 0;
    ReadControl(buffer, header, now, counters);
    if (buffer.usable) {
      buffer.from.size = header.msg_namelen;
      buffer.source = FromSocketAddress(buffer.from, false);
    } else {
      ++counters.rx_drops;
    }
    header.msg_namelen = sizeof(sockaddr_in6);
    header.msg_controllen = kControlBytes;
    header.msg_flags = 0;
  }
  if (in_row_) {
    const Buffer& first = buffers_[0];
    const bool as_thought =
        first.stride == row_->stride() || (first.stride < row_->stride() && first.stride == first.bytes);
    if (!as_thought) PutTogether(first);
  }
  return true;
}

size_t UdpReceiver::Receive(std::span<RxSegment> out, Time now, LaneCounters& counters) {
  size_t count = 0;
  const PlacementGuess guess = std::exchange(guess_, PlacementGuess());
  if (current_ == filled_ && !Fill(guess, out.size(), now, counters)) return 0;
  while (count < out.size() && current_ < filled_) {
    const Buffer& buffer = buffers_[current_];
    if (buffer.usable) {
      do {
        const uint32_t bytes = std::min(buffer.stride, buffer.bytes - offset_);
        RxSegment& segment = out[count++];
        segment = At(buffer, bytes);
        segment.congestion_experienced = buffer.congestion_experienced;
        segment.source = &buffer.source;
        segment.received_at = buffer.received_at;
        offset_ += bytes;
        ++counters.rx_packets;
        counters.rx_bytes += bytes;
      } while (offset_ < buffer.bytes && count < out.size());
      if (offset_ < buffer.bytes) break;  // out is full
    }
    ++current_;
    offset_ = 0;
  }
  return count;
}

}  // namespace paceline
