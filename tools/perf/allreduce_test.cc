#include "tools/perf/allreduce_test.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "tools/perf/collective_length.h"
#include "tools/perf/counter_delta.h"
#include "transport/engine/clock.h"

namespace paceline::tools {
namespace {

constexpr uint64_t kSendMark = uint64_t{1} << 63;
constexpr Duration kPatience = Duration::Millis(100);

class Ring {
 public:
  Ring(Session& session, uint64_t size)
      : session_(session),
        ranks_(session.world()),
        elements_(std::max<uint64_t>(size / 4, 1)),
        next_((session.rank() + 1) % ranks_),
        previous_((session.rank() + ranks_ - 1) % ranks_),
        data_(elements_ * 4),
        incoming_(2 * PartBytes()) {}

  absl::Status Prepare() {
    const auto data = session_.Register(data_);
    if (!data.ok()) return data.status();
    const auto incoming = session_.Register(incoming_);
    if (!incoming.ok()) return incoming.status();
    data_region_ = *data;
    incoming_region_ = *incoming;
    return absl::OkStatus();
  }

  absl::Status Run(uint64_t operations, RankResult& result);

  uint32_t* values() { return reinterpret_cast<uint32_t*>(data_.data()); }
  uint64_t elements() const { return elements_; }

 private:
  uint64_t PartBytes() const { return (elements_ / ranks_ + 1) * 4; }
  uint64_t First(uint64_t part) const { return elements_ * part / ranks_; }
  uint64_t Steps() const { return 2 * (ranks_ - 1); }
  // The part that this rank sends (shift 0) or receives (shift 1) in a step; both halves go round the same way.
  uint64_t Part(uint64_t step, uint64_t shift) const {
    const uint64_t back = step < ranks_ - 1 ? step + shift : step - (ranks_ - 1) + shift + ranks_ - 1;
    return (session_.rank() + 2 * ranks_ - back % ranks_) % ranks_;
  }
  absl::Status PostReceive(uint64_t step);
  absl::Status Step(uint64_t step, RankResult& result);

  Session& session_;
  const uint64_t ranks_;
  const uint64_t elements_;
  const uint32_t next_, previous_;
  Block data_, incoming_;
  api::RegionId data_region_ = 0, incoming_region_ = 0;
  uint64_t tag_ = 0;  // of step 0 of the operation under way
  uint64_t received_ = 0, sent_ = 0;
  uint64_t receives_posted_ = 0;
  uint64_t steps_planned_ = 0;
};

absl::Status Ring::PostReceive(uint64_t number) {
  if (number >= steps_planned_) return absl::OkStatus();
  const uint64_t step = number % Steps();
  const uint64_t part = Part(step, 1);
  api::Buffer buffer = {data_.data() + First(part) * 4, (First(part + 1) - First(part)) * 4, data_region_};
  if (step < ranks_ - 1) buffer = {incoming_.data() + (step % 2) * PartBytes(), buffer.bytes, incoming_region_};
  const api::PostResult posted = session_.connection(previous_).Receive(buffer, tag_ + number, 0, number);
  if (posted != api::PostResult::kOk) return absl::InternalError(absl::StrCat("receive: ", PostResultName(posted)));
  ++receives_posted_;
  return absl::OkStatus();
}

absl::Status Ring::Step(uint64_t number, RankResult& result) {
  const uint64_t step = number % Steps();
  // One receive ahead within an operation. In the second half a receive goes straight to its part, which must not be on
  // its way out any more: with two ranks it is.
  const bool ahead = (step + 1) % Steps() != 0 && ranks_ > 2;
  if (receives_posted_ <= number) {
    if (absl::Status status = PostReceive(number); !status.ok()) return status;
  }
  if (ahead && receives_posted_ <= number + 1) {
    if (absl::Status status = PostReceive(number + 1); !status.ok()) return status;
  }
  const uint64_t part = Part(step, 0);
  const api::Buffer buffer = {data_.data() + First(part) * 4, (First(part + 1) - First(part)) * 4, data_region_};
  Time now = MonotonicNow();
  const Time begin = now;
  api::PostResult posted = api::PostResult::kTryAgain;
  std::array<api::Completion, 16> completions;
  while (sent_ <= number || received_ <= number) {
    if (posted == api::PostResult::kTryAgain) {
      posted = session_.connection(next_).Send(buffer, tag_ + number, kSendMark);
      if (posted != api::PostResult::kOk && posted != api::PostResult::kTryAgain) {
        return absl::InternalError(absl::StrCat("send: ", PostResultName(posted)));
      }
    }
    const auto count = session_.Take(completions.data(), completions.size(), kPatience);
    if (!count.ok()) return count.status();
    now = MonotonicNow();
    for (size_t i = 0; i < *count; ++i) {
      const api::Completion& done = completions[i];
      if (done.status != api::OperationStatus::kOk) {
        return session_.Failure(done);
      }
      if (done.user_data == kSendMark) {
        ++sent_;
        result.latency.Add((now - begin).nanos());
      } else {
        ++received_;
      }
    }
  }
  if (step < ranks_ - 1) {
    const uint64_t sum = Part(step, 1);
    const auto* from = reinterpret_cast<const uint32_t*>(incoming_.data() + (step % 2) * PartBytes());
    uint32_t* to = values() + First(sum);
    const uint64_t length = First(sum + 1) - First(sum);
    for (uint64_t i = 0; i < length; ++i) to[i] += from[i];
  }
  return absl::OkStatus();
}

absl::Status Ring::Run(uint64_t operations, RankResult& result) {
  tag_ += steps_planned_;
  steps_planned_ = operations * Steps();
  received_ = sent_ = receives_posted_ = 0;
  if (absl::Status status = session_.Barrier(); !status.ok()) return status;
  const Duration cpu = ProcessCpuTime();
  const Time start = MonotonicNow();
  Time before = start;
  for (uint64_t number = 0; number < steps_planned_; ++number) {
    if (absl::Status status = Step(number, result); !status.ok()) return status;
    if ((number + 1) % Steps() != 0) continue;
    const Time now = MonotonicNow();
    result.operation.Add((now - before).nanos());
    before = now;
  }
  result.seconds = (before - start).seconds();
  result.cpu_seconds = (ProcessCpuTime() - cpu).seconds();
  result.messages = sent_;
  result.iterations = operations;
  result.bytes = operations * 2 * (ranks_ - 1) * (elements_ * 4) / ranks_;
  return session_.Barrier();
}

}  // namespace

absl::StatusOr<RankResult> RunAllreduceTest(Session& session, const TestSpec& spec, uint64_t size) {
  Ring ring(session, size);
  if (absl::Status status = ring.Prepare(); !status.ok()) return status;
  const CounterDelta counters(session);
  RankResult warm;
  const uint64_t warmup = std::max<uint64_t>(spec.warmup.value_or(kCollectiveWarmup), 1);
  if (absl::Status status = ring.Run(warmup, warm); !status.ok()) return status;
  const auto operations = AgreeOnIterations(session, spec, warmup, warm.seconds);
  if (!operations.ok()) return operations.status();
  RankResult result;
  if (absl::Status status = ring.Run(*operations, result); !status.ok()) return status;

  for (uint64_t i = 0; i < ring.elements(); ++i) {
    ring.values()[i] = static_cast<uint32_t>((session.rank() + 1) * 1000003u + i * 7919u);
  }
  RankResult checked;
  if (absl::Status status = ring.Run(1, checked); !status.ok()) return status;
  const uint32_t world = session.world();
  const uint32_t ranks_sum = world * (world + 1) / 2 * 1000003u;
  for (uint64_t i = 0; i < ring.elements(); ++i) {
    result.verified &= ring.values()[i] == static_cast<uint32_t>(ranks_sum + world * i * 7919u);
  }
  result.checked_bytes = ring.elements() * 4;
  result.latency_kind = "completion";
  counters.AddTo(result);
  return result;
}

}  // namespace paceline::tools
