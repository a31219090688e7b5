// Which packets have arrived, when to say so, and the acknowledgement that says it. Packet sequence numbers are never
// used twice, so a second arrival is a copy that the network made.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "transport/base/bit_window.h"
#include "transport/base/limits.h"
#include "transport/base/sequence.h"
#include "transport/base/time.h"
#include "transport/wire/frames.h"

namespace paceline {

class AckState {
 public:
  enum class Verdict { kNew, kDuplicate, kOutOfWindow };

  uint64_t UnwrapPsn(uint32_t psn) const { return Unwrap(psn, newest_psn_); }
  uint64_t UnwrapShortPsn(uint32_t psn20) const { return Unwrap<20>(psn20, newest_psn_); }

  // The sender waits for nothing below `floor`.
  void OnFloor(uint64_t floor) {
    if (floor > received_.begin() || floor > cumulative_) RaiseFloor(floor);
  }
  Verdict Check(uint64_t psn) const {
    if (psn < received_.begin()) return Verdict::kDuplicate;
    if (!received_.Reaches(psn)) return Verdict::kOutOfWindow;
    return received_.Test(psn) ? Verdict::kDuplicate : Verdict::kNew;
  }
  // Are all of [psn, psn + count) new?
  bool AllNew(uint64_t psn, uint64_t count) const {
    return psn >= received_.begin() && received_.Reaches(psn + count - 1) && !received_.AnyIn(psn, count);
  }
  // Packets [psn, psn + count), which Check called new, were taken; the last of them `arrived` then.
  void OnAccepted(uint64_t psn, uint64_t count, uint32_t timestamp, Time arrived) {
    received_.SetRange(psn, count);
    if (psn == cumulative_) cumulative_ = received_.FirstClear(psn + count);
    last_psn_ = psn + count - 1;
    newest_psn_ = std::max(newest_psn_, last_psn_);
    last_timestamp_ = timestamp;
    last_arrived_ = arrived;
  }
  // One of them had a mark.
  void OnMarked(uint64_t psn);
  // What the network wrote into the packet that was just accepted, which came to `port`.
  void OnTelemetry(uint32_t port, std::span<const HopTelemetry> hops);
  // What has not been told of it, or nullptr. It goes before the acknowledgement.
  const wire::TelemetryFrame* TakeTelemetry();
  // Packets arrived that the sender should hear of now or within `delay`.
  void RequestAck(uint32_t packets, bool at_once, uint32_t every, Duration delay, Time now) {
    unacknowledged_ += packets;
    at_once_ |= at_once;
    const uint32_t most = waits_ ? every * kPacketsMoreWhileItWaits : every;
    ack_at_ = std::min(ack_at_, at_once || unacknowledged_ >= most ? now : now + delay);
  }
  // A tail probe has arrived. If every packet before it was acknowledged, that acknowledgement was probably lost: the
  // next one is sent twice, by two paths.
  void OnProbe() { twice_ = unacknowledged_ == 0; }
  // The sender has sent all and waits for nothing: what `every` has called for may wait for an answer to ride on, for
  // `delay`, and for some packets more. Not what was asked for at once, and not while a packet is missing.
  void LetWait(Duration delay, Time now);

  bool due(Time now) const { return ack_at_ <= now; }
  bool pending() const { return !ack_at_.is_never(); }
  bool any_arrived() const { return newest_psn_ > 0; }
  // A bit for each packet of [base, base + 64) that has arrived or is not waited for; base a multiple of 64.
  uint64_t ArrivedWord(uint64_t base) const;
  // Packets below `end` may have been sent, as far as is known here.
  bool MayBeSent(uint64_t end) const { return end <= received_.begin() || received_.Reaches(end - 1); }
  // It is to wait for a packet to ride on; false: it has waited before.
  bool Defer() { return !std::exchange(deferred_, true); }
  Time deadline() const { return ack_at_; }
  // Fills the frame and counts the acknowledgement as sent.
  void Build(wire::AckFrame* frame, Time now);

  // Keeps what tells of a gap, if there is one.
  void ReleaseIdleState();
  size_t memory_bytes() const { return received_.memory_bytes() + marked_.memory_bytes(); }

 private:
  static constexpr uint32_t kPacketsMoreWhileItWaits = 8;  // times what calls for an acknowledgement otherwise

  void RaiseFloor(uint64_t floor);

  BitWindow received_{2 * limits::kMaxOutstandingPackets, 1};
  BitWindow marked_{2 * limits::kMaxOutstandingPackets, 1};
  uint64_t cumulative_ = 1;  // everything below has arrived or is not waited for
  uint64_t newest_psn_ = 0;  // the highest
  uint64_t last_psn_ = 0;    // of the packet that arrived last
  uint32_t last_timestamp_ = 0;
  uint32_t unacknowledged_ = 0;
  Time last_arrived_;
  std::unique_ptr<wire::TelemetryFrame> telemetry_;  // made when the first comes
  bool telemetry_news_ = false;
  bool any_marked_ = false;
  bool deferred_ = false;
  bool at_once_ = false;  // was asked for
  bool twice_ = false;    // the next one
  bool waits_ = false;    // since LetWait
  Time ack_at_ = Time::Never();
};

}  // namespace paceline
