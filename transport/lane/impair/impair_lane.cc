#include "transport/lane/impair/impair_lane.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

uint64_t BytesOf(const RxSegment& segment) { return uint64_t{segment.data_bytes} + segment.payload_bytes; }

constexpr auto kLater = [](const auto& a, const auto& b) {
  return a->due != b->due ? a->due > b->due : a->order > b->order;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ImpairLane>> ImpairLane::Create(std::unique_ptr<Lane> inner,
                                                               const Impairment& impairment) {
  std::unique_ptr<ImpairLane> lane(new ImpairLane(std::move(inner), impairment));
  if (absl::Status status = lane->OpenDescriptors(); !status.ok()) return status;
  return lane;
}

ImpairLane::ImpairLane(std::unique_ptr<Lane> inner, const Impairment& impairment)
    : inner_(std::move(inner)),
      impairment_(impairment),
      name_("impaired " + std::string(inner_->name())),
      capabilities_(inner_->capabilities()),
      random_(impairment.seed) {
  capabilities_.least_guessed_bytes = 0;  // what it holds back would be overtaken
  if (impairment_.reorder > 0) capabilities_.keeps_path_order = false;
  if (impairment_.corrupt > 0) capabilities_.keeps_bytes_intact = false;
}

ImpairLane::~ImpairLane() {
  for (const int fd : {timer_, epoll_}) {
    if (fd >= 0) close(fd);
  }
}

absl::Status ImpairLane::OpenDescriptors() {
  const int inner = inner_->wait_descriptor();
  if (inner < 0) return absl::OkStatus();  // poll only, then so are we
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (epoll_ >= 0 && timer_ >= 0) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, inner, &event) == 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event) == 0) {
      return absl::OkStatus();
    }
  }
  return absl::InternalError(absl::StrCat("impaired lane: ", std::strerror(errno)));
}

size_t ImpairLane::Receive(std::span<RxSegment> out, Time now) {
  std::move(delivered_.begin(), delivered_.end(), std::back_inserter(spare_));
  delivered_.clear();
  size_t count = TakeDue(out, now);
  while (count < out.size()) {
    const size_t first = count;
    const size_t arrived = inner_->Receive(out.subspan(first), now);
    for (size_t i = first; i < first + arrived; ++i) {
      RxSegment segment = out[i];
      if (Pass(segment, now)) out[count++] = segment;
    }
    // What the inner lane gave lives until its next Receive: once something of it passes, that must wait.
    if (arrived == 0 || count > first) break;
  }
  SetTimer();
  return count;
}

// True: the segment goes on now. False: it is gone or held back.
bool ImpairLane::Pass(RxSegment& segment, Time now) {
  if (segment.kind != SegmentKind::kPacket) return true;
  if (impairment_.loss > 0 && random_.Chance(impairment_.loss)) {
    ++impaired_.lost_packets;
    impaired_.lost_bytes += BytesOf(segment) + segment.phantom_bytes;
    return false;
  }
  if (impairment_.duplicate > 0 && random_.Chance(impairment_.duplicate)) {
    ++impaired_.duplicated_packets;
    Hold(segment, now + impairment_.delay);
  }
  if (impairment_.corrupt > 0 && BytesOf(segment) > 0 && random_.Chance(impairment_.corrupt)) {
    ++impaired_.corrupted_packets;
    impaired_.corrupted_bytes += BytesOf(segment);
    const uint64_t bit = random_.Below(BytesOf(segment) * 8);
    const uint64_t byte = bit / 8;
    uint8_t& hit = byte < segment.data_bytes ? segment.data[byte] : segment.payload[byte - segment.data_bytes];
    hit ^= static_cast<uint8_t>(1u << (bit % 8));
  }
  Duration delay = impairment_.delay;
  if (impairment_.reorder > 0 && random_.Chance(impairment_.reorder)) {
    ++impaired_.reordered_packets;
    delay += impairment_.reorder_delay;
  }
  if (delay == Duration()) return true;
  Hold(segment, now + delay);
  return false;
}

void ImpairLane::Hold(const RxSegment& segment, Time due) {
  if (held_.size() >= kMaxHeld) {
    ++impaired_.lost_packets;
    impaired_.lost_bytes += BytesOf(segment) + segment.phantom_bytes;
    return;
  }
  std::unique_ptr<Held> held;
  if (spare_.empty()) {
    held = std::make_unique<Held>();
  } else {
    held = std::move(spare_.back());
    spare_.pop_back();
  }
  held->due = due;
  held->order = next_order_++;
  held->segment = segment;
  held->segment.telemetry = {};  // the inner lane's memory; a packet that was held back has old news anyway
  held->bytes.assign(segment.data, segment.data + segment.data_bytes);
  held->bytes.insert(held->bytes.end(), segment.payload, segment.payload + segment.payload_bytes);
  held->segment.data_bytes = static_cast<uint32_t>(held->bytes.size());
  held->segment.payload = nullptr;
  held->segment.payload_bytes = 0;
  if (segment.source != nullptr) held->source = *segment.source;
  held_.push_back(std::move(held));
  std::push_heap(held_.begin(), held_.end(), kLater);
}

size_t ImpairLane::TakeDue(std::span<RxSegment> out, Time now) {
  size_t count = 0;
  while (count < out.size() && !held_.empty() && held_.front()->due <= now) {
    std::pop_heap(held_.begin(), held_.end(), kLater);
    std::unique_ptr<Held> held = std::move(held_.back());
    held_.pop_back();
    RxSegment& segment = out[count++] = held->segment;
    segment.data = held->bytes.data();
    segment.source = segment.source != nullptr ? &held->source : nullptr;
    segment.received_at = held->due;
    delivered_.push_back(std::move(held));
  }
  return count;
}

void ImpairLane::SetTimer() {
  const Time at = held_.empty() ? Time::Never() : held_.front()->due;
  if (timer_ < 0 || at == timer_at_) return;
  timer_at_ = at;
  itimerspec spec{};
  if (!at.is_never()) {
    spec.it_value = {.tv_sec = at.nanos() / 1'000'000'000, .tv_nsec = std::max<int64_t>(at.nanos() % 1'000'000'000, 1)};
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

}  // namespace paceline
