// Packets as they arrive: copies are told from news, runs are taken in stretches, and what has come is counted for the
// acknowledgement and the allocator.
#include <algorithm>

#include "transport/base/sequence.h"
#include "transport/core/rx/receiver.h"
#include "transport/wire/checksum.h"

namespace paceline {
namespace {

// Bytes of payload whose checksum is looked at before the first of them is copied: so few that they are still in the
// nearest cache then.
constexpr size_t kMostCheckedBytes = 16384;

bool IsChecked(const Receiver::Arrival& arrival) {
  return arrival.payload != nullptr && (arrival.stamp.flags & wire::kNoPayloadCrc) == 0;
}
bool IsDamaged(const Receiver::Arrival& arrival) {
  return IsChecked(arrival) && wire::Crc32c({arrival.payload, arrival.payload_bytes}) != arrival.stamp.payload_crc;
}

}  // namespace

void Receiver::HandleData(const wire::DataHeader& header, uint32_t port, std::span<const Arrival> packets, Time now) {
  Run run;
  while (!packets.empty()) packets = packets.subspan(HandleStretch(header, port, FirstStretch(packets), run, now));
  TellAccepted(header, run);
  TellSaid(header, port, run, now);
  if (run.taken == 0) return;
  const EndpointOptions& options = context_->options;
  const Port& local = context_->ports[port];
  const uint32_t every =
      local.sends_bursts() && !run.last ? options.bursts_per_ack * peer_->burst_segments : options.ack_every;
  if (header.kind == wire::MessageKind::kProbe) acks_->OnProbe();
  acks_->RequestAck(run.taken, run.at_once, every, run.last ? options.last_ack_delay : context_->AckDelay(local), now);
  if (run.last && options.prompt_acks) acks_->LetWait(options.last_ack_delay, now);
}

Receiver::Stretch Receiver::FirstStretch(std::span<const Arrival> packets) const {
  const uint32_t segment_bytes = peer_->segment_bytes;
  const Arrival& first = packets.front();
  const bool phantom = first.payload == nullptr;
  const auto is_plain = [segment_bytes, phantom](const Arrival& arrival) {
    return arrival.payload_bytes == segment_bytes && (arrival.payload == nullptr) == phantom && !arrival.trimmed &&
           !arrival.marked && arrival.telemetry.empty();
  };
  if (!is_plain(first)) return packets.first(1);
  const size_t most =
      IsChecked(first) ? std::min(packets.size(), kMostCheckedBytes / first.payload_bytes) : packets.size();
  size_t count = 1;
  for (uint64_t offset = first.stamp.offset; count < most; ++count) {
    const wire::DataStamp& before = packets[count - 1].stamp;
    const Arrival& next = packets[count];
    offset += segment_bytes;
    if (!is_plain(next) || next.stamp.psn != before.psn + 1 || next.stamp.floor_distance != before.floor_distance + 1 ||
        next.stamp.offset != offset) {
      break;
    }
  }
  return packets.first(count);
}

// Returns how many packets of the stretch it has dealt with, one at least.
size_t Receiver::HandleStretch(const wire::DataHeader& header, uint32_t port, Stretch stretch, Run& run, Time now) {
  EndpointCounters& counters = context_->counters;
  const Arrival* const arrivals = stretch.data();
  const Arrival& first = arrivals[0];
  const uint64_t psn = acks_->UnwrapPsn(first.stamp.psn);
  const uint64_t floor = psn - std::min<uint64_t>(psn, first.stamp.floor_distance);
  // What has not been told may not fall below the floor, to which a peer that lies may raise it within a run.
  if (psn != run.accepted_end || floor > run.accepted_from) TellAccepted(header, run);
  acks_->OnFloor(floor);
  if (!acks_->AllNew(psn, stretch.size())) {
    stretch = stretch.first(1);
    switch (acks_->Check(psn)) {
      case AckState::Verdict::kDuplicate:
        ++counters.rx_duplicates;
        acks_->RequestAck(1, true, context_->options.ack_every, context_->options.max_ack_delay, now);
        return 1;
      case AckState::Verdict::kOutOfWindow:
        ++counters.rx_out_of_window;
        return 1;
      case AckState::Verdict::kNew:
        break;
    }
  }
  bool taken = false;
  if (first.trimmed) {
    ++counters.rx_trimmed;
    if (trimmed_ == nullptr) trimmed_ = std::make_unique<wire::TrimmedFrame>();
    if (trimmed_->count < wire::TrimmedFrame::kMaxPsns) trimmed_->psns[trimmed_->count++] = first.stamp.psn;
  } else {
    if (IsChecked(first)) stretch = {stretch.begin(), std::find_if(stretch.begin(), stretch.end(), IsDamaged)};
    if (!stretch.empty()) {
      taken = HandleMessage(header, stretch, run) == Taken::kYes;
      if (first.payload_bytes > 0 && header.kind != wire::MessageKind::kProbe)
        counters.rx_data_packets += stretch.size();
      if (first.marked) ++counters.rx_marked;
    } else {
      ++counters.rx_bad_checksum;
    }
  }
  const size_t count = std::max<size_t>(stretch.size(), 1);
  if (psn + count > run.newest_psn) {
    run.newest_psn = psn + count - 1;
    run.newest = &arrivals[count - 1].stamp;
  }
  if (stretch.empty()) return 1;
  if (taken) {
    if (run.accepted_end != psn) run.accepted_from = psn;
    run.accepted_end = psn + count;
    run.accepted_arrived = stretch.back().arrived;
    if (first.marked) acks_->OnMarked(psn);
    if (!first.telemetry.empty()) acks_->OnTelemetry(port, first.telemetry);
    run.taken += static_cast<uint32_t>(count);
    const uint8_t flags = stretch.back().stamp.flags;  // has those of all: a sender adds flags along a run
    const bool prompt = prompt_ack_;
    prompt_ack_ = false;
    run.at_once |= (flags & wire::kAckNow) != 0 || first.marked || prompt;
    run.last |= (flags & wire::kLastOfBacklog) != 0;
  }
  const bool padded = header.kind == wire::MessageKind::kProbe;
  const uint64_t bytes = taken && !padded ? uint64_t{first.payload_bytes} * count : 0;
  ArrivalSample& sample = run.sample;
  if (bytes == 0) TellSaid(header, port, run, now);
  sample.bytes += bytes;
  sample.packets += static_cast<uint32_t>(count);
  sample.marked_packets += first.marked ? 1 : 0;
  sample.trimmed_packets += first.trimmed ? 1 : 0;
  const auto arrived = static_cast<uint32_t>(stretch.back().arrived.nanos());
  sample.relative_delay_nanos = static_cast<int32_t>(arrived - header.timestamp);
  if (bytes == 0) TellSaid(header, port, run, now);
  return count;
}

void Receiver::TellAccepted(const wire::DataHeader& header, Run& run) {
  if (run.accepted_from == run.accepted_end) return;
  acks_->OnAccepted(run.accepted_from, run.accepted_end - run.accepted_from, header.timestamp, run.accepted_arrived);
  run.accepted_from = run.accepted_end = 0;
}

// What the run has brought until now goes into the flow's account.
void Receiver::TellSaid(const wire::DataHeader& header, uint32_t port, Run& run, Time now) {
  if (run.newest == nullptr) return;
  CreditAccount& account = Account(port, now);
  account.OnSaid(run.newest_psn, run.newest->tx_total, header.lost_total, run.newest->backlog, header.cap);
  if (account.grant_pending) NoteCreditNews(port);
  if (run.sample.packets == 0) return;
  account.arrived += run.sample.bytes;
  run.sample.now = now;
  if (account.active) NoteArrival(account, port, run.sample);
  run.sample = ArrivalSample();
}

void Receiver::HandlePlaced(uint32_t port, uint32_t immediate, uint32_t bytes, Time arrived, Time now) {
  EndpointCounters& counters = context_->counters;
  const EndpointOptions& options = context_->options;
  constexpr uint32_t kPsnBits = 20, kSlotBits = 12;
  const uint64_t psn = acks_->UnwrapShortPsn(immediate & ((1u << kPsnBits) - 1));
  switch (acks_->Check(psn)) {
    case AckState::Verdict::kDuplicate:
      ++counters.rx_duplicates;
      acks_->RequestAck(1, true, options.ack_every, options.max_ack_delay, now);
      return;
    case AckState::Verdict::kOutOfWindow:
      ++counters.rx_out_of_window;
      return;
    case AckState::Verdict::kNew:
      break;
  }
  if (bytes > 0) {
    const uint64_t number =
        Unwrap<kSlotBits>(immediate >> kPsnBits, messages_.begin() + limits::kMaxOpenMessages / 2 - 1);
    if (!messages_.Reaches(number)) {
      ++counters.rx_out_of_window;
      return;
    }
    messages_.Extend(number);
    Slot& slot = messages_[number];
    if (slot.done) {
      ++counters.rx_malformed;  // more bytes than the message has
      return;
    }
    if (slot.message == nullptr) {
      slot.message = context_->rx_messages.New();
      slot.message->number = number;
    }
    ++counters.rx_data_packets;
    counters.rx_data_bytes += bytes;
    RxMessage* message = slot.message;
    if (message->failed) {
      // Refused; what the card placed all the same does not make it whole.
    } else if (message->known && (!message->accepted || bytes > message->length - message->arrived_bytes)) {
      ++counters.rx_malformed;  // nobody asked for it, or it is more than the message has
      return;
    } else if (message->known) {
      message->arrived_bytes += bytes;
      expected_bytes_ -= std::min<uint64_t>(bytes, expected_bytes_);
      MaybeComplete(message);
    } else {
      message->early_placed += bytes;
    }
  }
  acks_->OnAccepted(psn, 1, 0, arrived);
  const bool prompt = prompt_ack_;
  prompt_ack_ = false;
  acks_->RequestAck(1, bytes == 0 || prompt, options.ack_every, options.max_ack_delay, now);
  CreditAccount& account = Account(port, now);
  account.arrived += bytes;
  account.tx_total = std::max(account.tx_total, account.arrived + account.lost_total);
  if (account.grant_pending) NoteCreditNews(port);
  if (account.active) NoteArrival(account, port, {.now = now, .bytes = bytes, .packets = 1});
}

}  // namespace paceline
