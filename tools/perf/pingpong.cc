#include "tools/perf/pingpong.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "transport/engine/clock.h"

namespace paceline::tools {
namespace {

constexpr uint64_t kEndTag = uint64_t{1} << 63;
constexpr uint64_t kStride = 512;  // bytes between the marks that a write's target looks at
constexpr uint64_t kEndSend = uint64_t{1} << 40;
constexpr uint64_t kEndReceive = uint64_t{1} << 41;
constexpr uint64_t kLooks = 100;  // passes without anything before that
constexpr Duration kPatience = Duration::Millis(100);

class PingPong {
 public:
  PingPong(Session& session, PairMemory& memory, const PingPongPlan& plan)
      : session_(session),
        memory_(memory),
        plan_(plan),
        peer_(session.connection(plan.peer)),
        slots_(std::min<uint64_t>(memory.window, 8)) {}

  absl::StatusOr<PingPongResult> Run() {
    if (absl::Status status = Begin(); !status.ok()) return status;
    absl::Status status = plan_.initiator ? Initiate() : Answer();
    if (status.ok()) status = Finish();
    if (!status.ok()) return status;
    return result_;
  }

 private:
  bool two_sided() const { return plan_.op == PairOp::kSend; }
  bool answered() const { return plan_.op != PairOp::kRead && plan_.op != PairOp::kAtomic; }

  absl::Status Begin();
  absl::Status Initiate();
  absl::Status Answer();
  absl::Status Finish();
  absl::Status Drain();  // takes completions, waiting a moment when there are none
  absl::Status PostReceive();
  absl::Status Refill();               // posts the receives that were used up
  absl::Status Post(uint64_t number);  // operation or answer number 1, 2, ...
  void Mark(uint8_t* data, uint64_t number) const;
  bool Marked(const uint8_t* data, uint64_t number) const;
  bool Arrived(uint64_t number);  // the peer's operation (or answer) with this number

  Session& session_;
  PairMemory& memory_;
  const PingPongPlan& plan_;
  api::Connection& peer_;
  const uint64_t slots_;
  PingPongResult result_;
  uint64_t posted_ = 0;  // operations of ours
  uint64_t completed_ = 0;
  uint64_t idle_passes_ = 0;
  uint64_t arrived_ = 0;  // receives, or writes with immediate
  uint64_t receives_ = 0;
  uint64_t outstanding_receives_ = 0;
  std::array<api::OperationId, 8> receive_ids_{};
  bool end_sent_ = false;
  bool end_received_ = false;
  uint64_t end_message_ = 0, end_buffer_ = 0;
};

absl::Status PingPong::Begin() {
  if (plan_.op == PairOp::kWrite) {
    std::fill_n(memory_.rx.data(), memory_.rx.bytes(), uint8_t{0});
    std::fill_n(memory_.tx.data(), memory_.tx.bytes(), uint8_t{0});
  }
  if (!plan_.initiator) {
    const api::PostResult posted =
        peer_.Receive({&end_buffer_, sizeof(end_buffer_)}, kEndTag | plan_.phase, 0, kEndReceive);
    if (posted != api::PostResult::kOk) return absl::InternalError(absl::StrCat("receive: ", PostResultName(posted)));
  }
  if (two_sided()) {
    for (uint64_t i = 0; i < slots_; ++i) {
      if (absl::Status status = PostReceive(); !status.ok()) return status;
    }
  }
  return session_.Barrier();
}

absl::Status PingPong::PostReceive() {
  const uint64_t slot = receives_ % slots_;
  const api::PostResult posted = peer_.Receive({memory_.rx_slot(slot), memory_.size, memory_.rx_region}, plan_.phase, 0,
                                               slot, &receive_ids_[slot]);
  if (posted != api::PostResult::kOk) return absl::InternalError(absl::StrCat("receive: ", PostResultName(posted)));
  ++receives_;
  ++outstanding_receives_;
  return absl::OkStatus();
}

absl::Status PingPong::Refill() {
  while (two_sided() && !end_received_ && outstanding_receives_ < slots_) {
    if (absl::Status status = PostReceive(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void PingPong::Mark(uint8_t* data, uint64_t number) const {
  for (uint64_t at = 0; at < memory_.size; at += kStride) data[at] = static_cast<uint8_t>(number);
  data[memory_.size - 1] = static_cast<uint8_t>(number);
}

bool PingPong::Marked(const uint8_t* data, uint64_t number) const {
  const auto* bytes = static_cast<const volatile uint8_t*>(data);
  const auto mark = static_cast<uint8_t>(number);
  if (bytes[memory_.size - 1] != mark) return false;
  for (uint64_t at = 0; at < memory_.size; at += kStride) {
    if (bytes[at] != mark) return false;
  }
  return true;
}

absl::Status PingPong::Post(uint64_t number) {
  const uint64_t slot = number % slots_;
  const uint64_t offset = slot * memory_.stride;
  const api::Buffer tx = {memory_.tx_slot(slot), memory_.size, memory_.tx_region};
  const api::Buffer rx = {memory_.rx_slot(slot), memory_.size, memory_.rx_region};
  if (plan_.op == PairOp::kWrite) Mark(memory_.tx_slot(slot), number);
  while (true) {
    api::PostResult posted = api::PostResult::kInvalidArgument;
    switch (plan_.op) {
      case PairOp::kSend:
        posted = peer_.Send(tx, plan_.phase, 0);
        break;
      case PairOp::kWrite:
        posted = peer_.Write(tx, memory_.peer_rx, offset, 0);
        break;
      case PairOp::kWriteImmediate:
        posted = peer_.WriteImmediate(tx, memory_.peer_rx, offset, number, 1);
        break;
      case PairOp::kRead:
        posted = peer_.Read(rx, memory_.peer_tx, offset, 0);
        break;
      case PairOp::kAtomic:
        posted = peer_.FetchAdd(memory_.peer_rx, 0, 1, 0);
        break;
    }
    if (posted == api::PostResult::kOk) break;
    if (posted != api::PostResult::kTryAgain)
      return absl::InternalError(absl::StrCat("post: ", PostResultName(posted)));
    if (absl::Status status = Drain(); !status.ok()) return status;
  }
  ++posted_;
  return absl::OkStatus();
}

absl::Status PingPong::Drain() {
  std::array<api::Completion, 16> completions;
  size_t taken = session_.context().completions().Poll(completions.data(), completions.size());
  idle_passes_ = taken > 0 ? 0 : idle_passes_ + 1;
  // Behind the pass that sent the answer, which does not need them.
  if (absl::Status status = Refill(); !status.ok()) return status;
  // The target of plain writes gets no completion: it looks at its memory after each pass, and sleeps only when nothing
  // has come for a while.
  const bool looks = plan_.op == PairOp::kWrite;
  if (taken == 0 && (!looks || idle_passes_ > kLooks)) {
    const auto count = session_.Take(completions.data(), completions.size(), looks ? Duration::Micros(50) : kPatience);
    if (!count.ok()) return count.status();
    taken = *count;
  }
  for (size_t i = 0; i < taken; ++i) {
    const api::Completion& done = completions[i];
    if (done.status != api::OperationStatus::kOk) {
      return session_.Failure(done);
    }
    if (done.operation == api::Operation::kReceive) {
      if (done.user_data == kEndReceive) {
        end_received_ = true;
        continue;
      }
      --outstanding_receives_;
      ++arrived_;
    } else if (done.operation == api::Operation::kWriteImmediate && done.user_data == 0) {
      ++arrived_;
    } else if (done.user_data == kEndSend) {
      end_sent_ = true;
    } else {
      ++completed_;
    }
  }
  return absl::OkStatus();
}

bool PingPong::Arrived(uint64_t number) {
  if (plan_.op == PairOp::kWrite) return Marked(memory_.rx_slot(number % slots_), number);
  return answered() ? arrived_ >= number : completed_ >= number;
}

absl::Status PingPong::Initiate() {
  const Time start = MonotonicNow();
  Time now = start;
  for (uint64_t number = 1; plan_.iterations != 0 ? number <= plan_.iterations : now - start < plan_.length; ++number) {
    const Time begin = now;
    if (absl::Status status = Post(number); !status.ok()) return status;
    while (!Arrived(number)) {
      if (absl::Status status = Drain(); !status.ok()) return status;
    }
    now = MonotonicNow();
    idle_passes_ = 0;
    result_.round_trip.Add((now - begin).nanos());
    ++result_.operations;
    // The slot of the next operation must be free.
    while (posted_ - completed_ >= slots_) {
      if (absl::Status status = Drain(); !status.ok()) return status;
      now = MonotonicNow();
    }
  }
  while (completed_ < posted_) {
    if (absl::Status status = Drain(); !status.ok()) return status;
  }
  while (true) {
    const api::PostResult posted = peer_.Send({&end_message_, sizeof(end_message_)}, kEndTag | plan_.phase, kEndSend);
    if (posted == api::PostResult::kOk) break;
    if (posted != api::PostResult::kTryAgain)
      return absl::InternalError(absl::StrCat("send: ", PostResultName(posted)));
    if (absl::Status status = Drain(); !status.ok()) return status;
  }
  while (!end_sent_) {
    if (absl::Status status = Drain(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PingPong::Answer() {
  while (!end_received_) {
    if (absl::Status status = Drain(); !status.ok()) return status;
    if (!answered()) continue;
    while (Arrived(posted_ + 1)) {
      idle_passes_ = 0;
      ++result_.operations;
      while (posted_ - completed_ >= slots_) {
        if (absl::Status status = Drain(); !status.ok()) return status;
      }
      if (absl::Status status = Post(posted_ + 1); !status.ok()) return status;
    }
  }
  while (completed_ < posted_) {
    if (absl::Status status = Drain(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PingPong::Finish() {
  if (two_sided()) {
    for (const api::OperationId id : receive_ids_) {
      if (id != 0) peer_.Cancel(id);
    }
  }
  std::array<api::Completion, 16> completions;
  while (outstanding_receives_ > 0) {
    const auto count = session_.Take(completions.data(), completions.size(), kPatience);
    if (!count.ok()) return count.status();
    for (size_t i = 0; i < *count; ++i) outstanding_receives_ -= completions[i].operation == api::Operation::kReceive;
  }
  return session_.Barrier();
}

}  // namespace

absl::StatusOr<PingPongResult> RunPingPong(Session& session, PairMemory& memory, const PingPongPlan& plan) {
  return PingPong(session, memory, plan).Run();
}

}  // namespace paceline::tools
