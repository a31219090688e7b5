#include "tools/perf/stream.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "absl/strings/str_cat.h"
#include "tools/perf/pattern.h"
#include "transport/engine/clock.h"

namespace paceline::tools {
namespace {

// user_data of a post: what it is, and its slot.
enum Kind : uint64_t { kOperation = 1, kReceive = 2, kEndSend = 3, kEndReceive = 4 };
constexpr uint64_t MakeUserData(Kind kind, uint64_t slot) { return (uint64_t{kind} << 32) | slot; }
constexpr uint64_t KindOf(uint64_t user_data) { return user_data >> 32; }
constexpr uint64_t SlotOf(uint64_t user_data) { return user_data & 0xffffffff; }

constexpr uint64_t kEndTag = uint64_t{1} << 63;

class Stream {
 public:
  Stream(Session& session, PairMemory& memory, const StreamPlan& plan)
      : session_(session), memory_(memory), plan_(plan), peer_(session.connection(plan.peer)) {}

  absl::StatusOr<StreamResult> Run();

 private:
  struct Slot {
    Time since;          // post, or due time
    uint64_t index = 0;  // number of the operation (sender) or of the receive (receiver)
    api::OperationId id = 0;
  };

  bool counts_arrivals() const { return plan_.op == PairOp::kSend || plan_.op == PairOp::kWriteImmediate; }
  bool active_done() const { return !plan_.active || end_sent_; }
  bool open_loop() const { return plan_.bits_per_second > 0; }
  // Without a target: when, after the start, the last operation may start. An open loop has as long again for what was
  // held up.
  Duration limit() const { return open_loop() ? plan_.length + plan_.length : plan_.length; }
  double nanos_between() const { return static_cast<double>(memory_.size) * 8e9 / plan_.bits_per_second; }
  bool HasStartedAll(Time now);
  bool passive_done() const {
    return !plan_.passive || (end_received_ && (!counts_arrivals() || result_.arrived >= expected_));
  }
  absl::Status Begin();
  absl::Status PostReceive(uint64_t slot);
  void StartOperations(Time now);
  api::PostResult PostOperation(uint64_t slot, uint64_t index);
  void MaybeSendEnd();
  absl::Status Handle(const api::Completion& completion, Time now);
  void CheckSlot(const uint8_t* data, uint64_t stream);
  absl::Status Finish();

  Session& session_;
  PairMemory& memory_;
  const StreamPlan& plan_;
  api::Connection& peer_;
  StreamResult result_;

  // active side
  std::vector<Slot> tx_slots_;
  std::deque<uint64_t> free_slots_;
  uint64_t posted_ = 0;
  bool stopped_ = false;  // no more operations are started
  bool end_posted_ = false;
  bool end_sent_ = false;
  uint64_t end_message_ = 0;
  double due_nanos_ = 0;  // open loop: when the next operation is due, after the start
  uint64_t old_values_ = 0;

  // passive side
  std::vector<Slot> rx_slots_;
  uint64_t receives_posted_ = 0;
  uint64_t outstanding_receives_ = 0;
  bool end_received_ = false;
  uint64_t end_buffer_ = 0;
  uint64_t expected_ = 0;

  Time start_;
  Time last_;
};

absl::Status Stream::Begin() {
  if (plan_.active) {
    tx_slots_.resize(memory_.window);
    for (uint64_t slot = 0; slot < memory_.window; ++slot) free_slots_.push_back(slot);
  }
  if (plan_.verify) {
    if (plan_.op == PairOp::kRead) {  // the peer reads these
      for (uint64_t slot = 0; slot < memory_.window; ++slot) {
        FillPattern(memory_.tx_slot(slot), memory_.size, PatternStream(session_.rank(), plan_.peer, slot));
      }
    }
    if (plan_.op != PairOp::kAtomic) std::fill_n(memory_.rx.data(), memory_.rx.bytes(), uint8_t{0});
  }
  if (plan_.passive) {
    const api::PostResult posted =
        peer_.Receive({&end_buffer_, sizeof(end_buffer_)}, kEndTag | plan_.phase, 0, MakeUserData(kEndReceive, 0));
    if (posted != api::PostResult::kOk) return absl::InternalError(absl::StrCat("receive: ", PostResultName(posted)));
    if (plan_.op == PairOp::kSend) {
      rx_slots_.resize(memory_.window);
      for (uint64_t slot = 0; slot < memory_.window; ++slot) {
        if (absl::Status status = PostReceive(slot); !status.ok()) return status;
      }
    }
  }
  return session_.Barrier();
}

absl::Status Stream::PostReceive(uint64_t slot) {
  rx_slots_[slot].index = receives_posted_;
  const api::PostResult posted = peer_.Receive({memory_.rx_slot(slot), memory_.size, memory_.rx_region}, plan_.phase, 0,
                                               MakeUserData(kReceive, slot), &rx_slots_[slot].id);
  if (posted != api::PostResult::kOk) return absl::InternalError(absl::StrCat("receive: ", PostResultName(posted)));
  ++receives_posted_;
  ++outstanding_receives_;
  return absl::OkStatus();
}

api::PostResult Stream::PostOperation(uint64_t slot, uint64_t index) {
  const uint64_t user_data = MakeUserData(kOperation, slot);
  const api::Buffer tx = {memory_.tx_slot(slot), memory_.size, memory_.tx_region};
  const api::Buffer rx = {memory_.rx_slot(slot), memory_.size, memory_.rx_region};
  const uint64_t offset = slot * memory_.stride;
  if (plan_.verify && plan_.op != PairOp::kRead && plan_.op != PairOp::kAtomic) {
    FillPattern(memory_.tx_slot(slot), memory_.size, PatternStream(session_.rank(), plan_.peer, index));
  }
  switch (plan_.op) {
    case PairOp::kSend:
      return peer_.Send(tx, plan_.phase, user_data);
    case PairOp::kWrite:
      return peer_.Write(tx, memory_.peer_rx, offset, user_data);
    case PairOp::kWriteImmediate:
      return peer_.WriteImmediate(tx, memory_.peer_rx, offset, index, user_data);
    case PairOp::kRead:
      return peer_.Read(rx, memory_.peer_tx, offset, user_data);
    case PairOp::kAtomic:
      return peer_.FetchAdd(memory_.peer_rx, 0, 1, user_data);
  }
  return api::PostResult::kInvalidArgument;
}

bool Stream::HasStartedAll(Time now) {
  if (plan_.target != 0) return posted_ >= plan_.target;
  const double not_due = static_cast<double>(plan_.length.nanos()) - due_nanos_;
  if (open_loop() && not_due <= 0) return true;
  if (now - start_ < limit()) return false;
  if (open_loop()) result_.not_started = static_cast<uint64_t>(std::ceil(not_due / nanos_between()));
  return true;
}

void Stream::StartOperations(Time now) {
  if (stopped_) return;
  const double elapsed = static_cast<double>((now - start_).nanos());
  while (true) {
    if (HasStartedAll(now)) {
      stopped_ = true;
      return;
    }
    if (free_slots_.empty()) return;
    if (open_loop() && elapsed < due_nanos_) return;
    const uint64_t slot = free_slots_.front();
    if (PostOperation(slot, posted_) != api::PostResult::kOk) return;
    free_slots_.pop_front();
    tx_slots_[slot].index = posted_;
    tx_slots_[slot].since = now;
    if (open_loop()) {
      tx_slots_[slot].since = start_ + Duration::Nanos(static_cast<int64_t>(due_nanos_));
      due_nanos_ += nanos_between();
    }
    ++posted_;
  }
}

void Stream::MaybeSendEnd() {
  if (!plan_.active || !stopped_ || end_posted_ || result_.started < posted_) return;
  end_message_ = posted_;
  end_posted_ = peer_.Send({&end_message_, sizeof(end_message_)}, kEndTag | plan_.phase, MakeUserData(kEndSend, 0)) ==
                api::PostResult::kOk;
}

void Stream::CheckSlot(const uint8_t* data, uint64_t stream) {
  result_.verified &= CheckPattern(data, memory_.size, stream);
  result_.checked_bytes += memory_.size;
}

absl::Status Stream::Handle(const api::Completion& completion, Time now) {
  if (completion.status != api::OperationStatus::kOk) return session_.Failure(completion);
  const uint64_t slot = SlotOf(completion.user_data);
  if (completion.operation == api::Operation::kWriteImmediate && completion.user_data == 0) {
    ++result_.arrived;
    last_ = now;
    return absl::OkStatus();
  }
  switch (KindOf(completion.user_data)) {
    case kOperation:
      ++result_.started;
      last_ = now;
      result_.latency.Add((now - tx_slots_[slot].since).nanos());
      if (plan_.verify && plan_.op == PairOp::kRead) {
        CheckSlot(memory_.rx_slot(slot), PatternStream(plan_.peer, session_.rank(), slot));
      }
      old_values_ += completion.result;
      free_slots_.push_back(slot);
      break;
    case kReceive:
      --outstanding_receives_;
      ++result_.arrived;
      last_ = now;
      if (completion.bytes != memory_.size) result_.verified = false;
      if (plan_.verify) {
        CheckSlot(memory_.rx_slot(slot), PatternStream(plan_.peer, session_.rank(), rx_slots_[slot].index));
      }
      if (!end_received_ || receives_posted_ < expected_) return PostReceive(slot);
      break;
    case kEndSend:
      end_sent_ = true;
      break;
    case kEndReceive:
      end_received_ = true;
      expected_ = end_buffer_;
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<StreamResult> Stream::Run() {
  if (absl::Status status = Begin(); !status.ok()) return status;
  std::array<api::Completion, 64> completions;
  start_ = last_ = MonotonicNow();
  Time next_report = plan_.report ? start_ + plan_.interval : Time::Never();
  Time now = start_;
  while (!active_done() || !passive_done()) {
    if (plan_.active) StartOperations(now);
    MaybeSendEnd();
    Duration patience = Duration::Millis(100);
    if (plan_.active && !stopped_) {
      const Duration elapsed = now - start_;
      if (plan_.target == 0) patience = std::min(patience, limit() - elapsed);
      if (open_loop() && !free_slots_.empty()) {
        patience = std::min(patience, Duration::Nanos(static_cast<int64_t>(due_nanos_)) - elapsed);
      }
    }
    if (!next_report.is_never()) patience = std::min(patience, next_report - now);
    const auto count = session_.Take(completions.data(), completions.size(), std::max(patience, Duration()));
    if (!count.ok()) return count.status();
    now = MonotonicNow();
    for (size_t i = 0; i < *count; ++i) {
      if (absl::Status status = Handle(completions[i], now); !status.ok()) return status;
    }
    if (now >= next_report) {
      const uint64_t messages = plan_.active ? result_.started : result_.arrived;
      plan_.report((now - start_).seconds(), messages, messages * memory_.size);
      next_report = now + plan_.interval;  // also where this one is late: no lines at once for the time lost
    }
  }
  result_.seconds = (last_ - start_).seconds();
  if (absl::Status status = Finish(); !status.ok()) return status;
  return result_;
}

absl::Status Stream::Finish() {
  if (plan_.passive && !counts_arrivals()) result_.arrived = expected_;
  // Receives that nothing will match any more.
  for (const Slot& slot : rx_slots_) {
    if (slot.id != 0) peer_.Cancel(slot.id);
  }
  std::array<api::Completion, 64> completions;
  while (outstanding_receives_ > 0) {
    const auto count = session_.Take(completions.data(), completions.size(), Duration::Millis(100));
    if (!count.ok()) return count.status();
    for (size_t i = 0; i < *count; ++i) outstanding_receives_ -= completions[i].operation == api::Operation::kReceive;
  }
  if (plan_.verify && plan_.passive && (plan_.op == PairOp::kWrite || plan_.op == PairOp::kWriteImmediate)) {
    // Slot k holds operation k: there were no more operations than slots.
    for (uint64_t slot = 0; slot < std::min<uint64_t>(expected_, memory_.window); ++slot) {
      CheckSlot(memory_.rx_slot(slot), PatternStream(plan_.peer, session_.rank(), slot));
    }
  }
  if (plan_.verify && plan_.active && plan_.op == PairOp::kAtomic) {
    // Each of the n additions of one saw another value: before, before + 1, ..., before + n - 1.
    const uint64_t n = result_.started;
    result_.verified &= old_values_ == n * plan_.atomics_before + n * (n - 1) / 2;
    result_.checked_bytes += n * sizeof(uint64_t);
  }
  return session_.Barrier();
}

}  // namespace

absl::StatusOr<PairOp> ParsePairOp(const std::string& name) {
  if (name == "send") return PairOp::kSend;
  if (name == "write") return PairOp::kWrite;
  if (name == "write_imm") return PairOp::kWriteImmediate;
  if (name == "read") return PairOp::kRead;
  if (name == "atomic") return PairOp::kAtomic;
  return absl::InvalidArgumentError(
      absl::StrCat("operation \"", name, "\" is unknown; it may be send, write, write_imm, read or atomic"));
}

absl::StatusOr<StreamResult> RunStream(Session& session, PairMemory& memory, const StreamPlan& plan) {
  return Stream(session, memory, plan).Run();
}

}  // namespace paceline::tools
