#include "tools/perf/exchange_test.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tools/perf/collective_length.h"
#include "tools/perf/counter_delta.h"
#include "tools/perf/pattern.h"
#include "transport/base/random.h"
#include "transport/engine/clock.h"

namespace paceline::tools {
namespace {

constexpr uint64_t kSendMark = uint64_t{1} << 63;  // user_data of sends; receives have it clear
constexpr uint32_t kDefaultWindow = 2;             // all-to-all; see docs/tuning.md
constexpr uint32_t kDefaultStreamWindow = 8;       // incast, permutation
constexpr Duration kPatience = Duration::Millis(100);

// One run of a number of rounds; in each round this rank sends one message to each of its targets.
class Exchange {
 public:
  Exchange(Session& session, const std::vector<std::vector<uint32_t>>& targets, uint64_t size, uint32_t window,
           bool rounds_apart)
      : session_(session),
        targets_(targets[session.rank()]),
        size_(size),
        stride_((size + 63) / 64 * 64),
        window_(window),
        rounds_apart_(rounds_apart),
        depth_(rounds_apart ? 2 : std::max(2u, window)) {
    for (uint32_t rank = 0; rank < targets.size(); ++rank) {
      if (std::count(targets[rank].begin(), targets[rank].end(), session.rank()) > 0) sources_.push_back(rank);
    }
    tx_ = Block(std::max<uint64_t>(stride_ * window_, 64));
    rx_ = Block(std::max<uint64_t>(stride_ * depth_ * sources_.size(), 64));
  }

  absl::Status Prepare() {
    const auto tx = session_.Register(tx_);
    if (!tx.ok()) return tx.status();
    const auto rx = session_.Register(rx_);
    if (!rx.ok()) return rx.status();
    tx_region_ = *tx;
    rx_region_ = *rx;
    return absl::OkStatus();
  }

  absl::Status Run(uint64_t rounds, bool verify, RankResult& result);

 private:
  struct Slot {
    Time since;
  };

  absl::Status PostReceive(uint64_t slot);
  absl::Status StartSends(Time now);
  absl::Status Handle(const api::Completion& done, Time now, RankResult& result);
  bool RoundDone() const {
    return sends_done_ >= (round_ + 1) * targets_.size() &&
           std::all_of(arrived_.begin(), arrived_.end(), [this](uint64_t count) { return count > round_; });
  }

  Session& session_;
  const std::vector<uint32_t> targets_;
  std::vector<uint32_t> sources_;
  const uint64_t size_, stride_;
  const uint32_t window_;
  const bool rounds_apart_;
  const uint64_t depth_;  // receives posted ahead per source
  Block tx_, rx_;
  api::RegionId tx_region_ = 0, rx_region_ = 0;

  uint64_t run_ = 0;  // the tag of all messages of one run
  uint64_t rounds_ = 0;
  bool verify_ = false;
  uint64_t round_ = 0;  // rounds_apart: the one under way
  uint64_t sends_posted_ = 0, sends_done_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<uint64_t> posted_;          // receives, by source
  std::vector<uint64_t> received_index_;  // by receive slot: which message of its source it takes
  std::vector<uint64_t> arrived_;         // by source
};

absl::Status Exchange::PostReceive(uint64_t slot) {
  const size_t source = slot / depth_;
  if (posted_[source] >= rounds_) return absl::OkStatus();
  const api::PostResult posted =
      session_.connection(sources_[source]).Receive({rx_.data() + slot * stride_, size_, rx_region_}, run_, 0, slot);
  if (posted != api::PostResult::kOk) return absl::InternalError(absl::StrCat("receive: ", PostResultName(posted)));
  // Messages match receives in the order of posting: this receive gets the message of the same number.
  received_index_[slot] = posted_[source]++;
  return absl::OkStatus();
}

absl::Status Exchange::StartSends(Time now) {
  const uint64_t limit = (rounds_apart_ ? round_ + 1 : rounds_) * targets_.size();
  while (sends_posted_ < limit && !free_.empty()) {
    const uint32_t slot = free_.back();
    const uint32_t target = targets_[sends_posted_ % targets_.size()];
    const uint64_t index = sends_posted_ / targets_.size();
    uint8_t* data = tx_.data() + slot * stride_;
    if (verify_) FillPattern(data, size_, PatternStream(session_.rank(), target, index));
    const api::PostResult posted = session_.connection(target).Send({data, size_, tx_region_}, run_, kSendMark | slot);
    if (posted == api::PostResult::kTryAgain) break;
    if (posted != api::PostResult::kOk) return absl::InternalError(absl::StrCat("send: ", PostResultName(posted)));
    free_.pop_back();
    slots_[slot].since = now;
    ++sends_posted_;
  }
  return absl::OkStatus();
}

absl::Status Exchange::Handle(const api::Completion& done, Time now, RankResult& result) {
  if (done.status != api::OperationStatus::kOk) return session_.Failure(done);
  if ((done.user_data & kSendMark) != 0) {
    const auto slot = static_cast<uint32_t>(done.user_data & 0xffffffff);
    result.latency.Add((now - slots_[slot].since).nanos());
    free_.push_back(slot);
    ++sends_done_;
    return absl::OkStatus();
  }
  const uint64_t slot = done.user_data;
  const size_t source = slot / depth_;
  ++arrived_[source];
  if (done.bytes != size_) result.verified = false;
  if (verify_) {
    result.verified &= CheckPattern(rx_.data() + slot * stride_, size_,
                                    PatternStream(sources_[source], session_.rank(), received_index_[slot]));
    result.checked_bytes += size_;
  }
  return PostReceive(slot);
}

absl::Status Exchange::Run(uint64_t rounds, bool verify, RankResult& result) {
  ++run_;
  rounds_ = rounds;
  verify_ = verify;
  round_ = sends_posted_ = sends_done_ = 0;
  slots_.assign(window_, {});
  free_.resize(window_);
  std::iota(free_.begin(), free_.end(), 0u);
  posted_.assign(sources_.size(), 0);
  arrived_.assign(sources_.size(), 0);
  received_index_.assign(sources_.size() * depth_, 0);
  for (uint64_t slot = 0; slot < received_index_.size(); ++slot) {
    if (absl::Status status = PostReceive(slot); !status.ok()) return status;
  }
  if (absl::Status status = session_.Barrier(); !status.ok()) return status;

  const Duration cpu = ProcessCpuTime();
  const Time start = MonotonicNow();
  Time now = start, round_start = start, last = start;
  std::array<api::Completion, 64> completions;
  while (true) {
    if (rounds_apart_) {
      while (round_ < rounds_ && RoundDone()) {
        result.operation.Add((now - round_start).nanos());
        round_start = now;
        ++round_;
      }
      if (round_ >= rounds_) break;
    } else if (sends_done_ >= rounds_ * targets_.size() &&
               std::all_of(arrived_.begin(), arrived_.end(), [&](uint64_t count) { return count >= rounds_; })) {
      break;
    }
    if (absl::Status status = StartSends(now); !status.ok()) return status;
    const auto count = session_.Take(completions.data(), completions.size(), kPatience);
    if (!count.ok()) return count.status();
    now = MonotonicNow();
    for (size_t i = 0; i < *count; ++i) {
      if (absl::Status status = Handle(completions[i], now, result); !status.ok()) return status;
      last = now;
    }
  }
  result.seconds = (last - start).seconds();
  result.cpu_seconds = (ProcessCpuTime() - cpu).seconds();
  result.messages = sends_done_;
  result.bytes = sends_done_ * size_;
  result.iterations = rounds_;
  return session_.Barrier();
}

}  // namespace

std::vector<std::vector<uint32_t>> ExchangeTargets(const std::string& kind, uint32_t world, uint64_t seed) {
  std::vector<std::vector<uint32_t>> targets(world);
  if (kind == "incast") {
    for (uint32_t rank = 1; rank < world; ++rank) targets[rank] = {0};
  } else if (kind == "permutation") {
    // A random cycle through all ranks (Sattolo): nobody sends to itself.
    std::vector<uint32_t> order(world);
    std::iota(order.begin(), order.end(), 0u);
    Random random(seed);
    for (uint32_t i = world - 1; i > 0; --i) std::swap(order[i], order[random.Below(i)]);
    for (uint32_t rank = 0; rank < world; ++rank) targets[rank] = {order[rank]};
  } else {
    for (uint32_t rank = 0; rank < world; ++rank) {
      for (uint32_t step = 1; step < world; ++step) targets[rank].push_back((rank + step) % world);
    }
  }
  return targets;
}

uint32_t DefaultExchangeWindow(const std::string& kind) {
  return kind == "alltoall" ? kDefaultWindow : kDefaultStreamWindow;
}

absl::StatusOr<RankResult> RunExchangeTest(Session& session, const TestSpec& spec, uint64_t size) {
  const bool collective = spec.kind == "alltoall";
  const auto targets = ExchangeTargets(spec.kind, session.world(), spec.seed);
  const uint32_t window = spec.window != 0 ? spec.window : DefaultExchangeWindow(spec.kind);
  Exchange exchange(session, targets, size, window, collective);
  if (absl::Status status = exchange.Prepare(); !status.ok()) return status;
  const CounterDelta counters(session);

  RankResult warm;
  const uint64_t warmup = std::max<uint64_t>(spec.warmup.value_or(kCollectiveWarmup), 1);
  if (absl::Status status = exchange.Run(warmup, false, warm); !status.ok()) return status;
  const auto rounds = AgreeOnIterations(session, spec, warmup, warm.seconds);
  if (!rounds.ok()) return rounds.status();

  RankResult result;
  if (absl::Status status = exchange.Run(*rounds, false, result); !status.ok()) return status;
  RankResult checked;
  if (absl::Status status = exchange.Run(kCheckedRounds, true, checked); !status.ok()) return status;
  result.verified &= checked.verified;
  result.checked_bytes = checked.checked_bytes;
  result.latency_kind = "completion";
  counters.AddTo(result);
  return result;
}

}  // namespace paceline::tools
