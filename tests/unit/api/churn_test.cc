// Connections that come and go in every way while data moves: every operation ends exactly once, what has arrived is
// what was sent, and at the end there are as many descriptors as at the beginning and hardly more memory. By default as
// many rounds as a second or two take; with PACELINE_CHURN_SECONDS for so long (the soak).
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "paceline/context.h"
#include "transport/base/random.h"
#include "transport/engine/lane_factory.h"

namespace paceline::api {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 150;            // without a time
constexpr int kWarmUpRounds = 100;      // until buffers and pools have their size
constexpr int kRestartEvery = 16;       // rounds: one context ends, a new one takes its place
constexpr uint32_t kLargest = 100'000;  // bytes of a message
// What a server remembers of requests whose cookies are still good is bounded, and is not full after the warm-up.
constexpr size_t kMayGrow = 6 << 20;
// The connections with a context that has just ended: a shm lane looks at its sockets now and then.
constexpr size_t kMayHold = 2;

size_t Descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

// Bytes of the heap in use.
size_t HeapBytes() {
  malloc_trim(0);
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

struct Setup {
  const char* lane = "udp";
  bool encrypted = false;
  uint32_t engines = 1;  // more: with threads
};

class ChurnTest : public ::testing::TestWithParam<Setup> {
 protected:
  // A message or a write between the two sides; `user_data` of its operations is its index and a bit.
  struct Transfer {
    std::vector<uint8_t> from, to;
    int open = 0;  // operations that have not ended
    bool arrived = false;
  };

  void SetUp() override {
    for (const LaneKindInfo& kind : ListLaneKinds()) {
      if (kind.name == GetParam().lane && !kind.usable) GTEST_SKIP() << kind.name << ": " << kind.reason;
    }
    if (GetParam().encrypted) {
      key_file_ = ::testing::TempDir() + "paceline_churn_key_" + std::to_string(getpid());
      std::FILE* file = std::fopen(key_file_.c_str(), "w");
      ASSERT_NE(file, nullptr);
      std::fputs("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", file);
      std::fclose(file);
      std::filesystem::permissions(key_file_, std::filesystem::perms::owner_read);
    }
    for (int side : {0, 1}) Start(side);
  }
  void TearDown() override {
    if (!key_file_.empty()) std::filesystem::remove(key_file_);
  }

  void Start(int side) {
    ContextOptions options;
    options.linger_ms = 1;  // one thread: while one context ends, the other one cannot answer
    options.peer_timeout_ms = 1000;
    options.lane = GetParam().lane;
    options.key_file = GetParam().encrypted ? key_file_ : "none";
    options.encrypt = GetParam().encrypted;
    options.engines = GetParam().engines;
    if (options.engines > 1) options.progress = ProgressMode::kThread;
    auto created = Context::Create(options);
    ASSERT_TRUE(created.ok()) << created.status().message();
    contexts_[side].emplace(*std::move(created));
  }

  void Step() {
    std::array<Completion, 64> completions;
    for (auto& context : contexts_) {
      context->Progress();
      const size_t count = context->completions().Poll(completions.data(), completions.size());
      for (const Completion& completion : std::span(completions).first(count)) Note(completion);
    }
  }

  void Note(const Completion& completion) {
    Transfer& transfer = transfers_.at(completion.user_data);
    ASSERT_GT(transfer.open, 0) << "an operation has ended twice";
    --transfer.open;
    ++ended_;
    const bool whole = completion.operation == Operation::kReceive || completion.operation == Operation::kWrite;
    if (completion.status != OperationStatus::kOk || !whole) return;
    transfer.arrived = true;
    EXPECT_EQ(transfer.from, transfer.to);
  }

  template <typename Done>
  void Until(Done&& done) {
    const auto patience = Clock::now() + std::chrono::seconds(30);
    while (!done()) {
      ASSERT_LT(Clock::now(), patience) << "nothing moves any more";
      Step();
    }
  }

  // Several connections at once: made, used, and ended in one way or another.
  void Round() {
    std::vector<Connection> out, in;
    {
      auto listener = contexts_[0]->Listen();
      ASSERT_TRUE(listener.ok());
      for (uint64_t n = 1 + random_.Below(8); n > 0; --n) {
        auto connection = contexts_[1]->Connect(listener->handle());
        ASSERT_TRUE(connection.ok());
        out.push_back(*std::move(connection));
      }
      Until([&] {
        while (auto accepted = listener->Accept()) in.push_back(*std::move(accepted));
        return in.size() == out.size() && AllEstablished(out) && AllEstablished(in);
      });
    }
    transfers_.clear();
    std::vector<RegionId> regions;
    // The order in which they were accepted need not be that of the requests: tags and keys are all that meets.
    for (size_t i = 0; i < out.size(); ++i) {
      for (uint64_t n = random_.Below(4); n > 0; --n) Send(out[i], in);
      for (uint64_t n = random_.Below(3); n > 0; --n) Write(out[i], regions);
    }
    const bool wait = random_.Chance(0.5);
    if (wait) Until([&] { return AllArrived(); });
    for (auto* connections : {&out, &in}) {
      for (Connection& connection : *connections) {
        if (random_.Chance(0.3)) connection.Close();
        if (random_.Chance(0.2)) connection.Abort();
      }
    }
    if (random_.Chance(0.3)) {
      for (const RegionId region : regions) contexts_[0]->DeregisterMemory(region);
      regions.clear();
    }
    out.clear();
    if (random_.Chance(0.5)) in.clear();
    Until([&] { return AllEnded(); });
    in.clear();
    for (const RegionId region : regions) contexts_[0]->DeregisterMemory(region);
    if (++rounds_ % kRestartEvery == 0) {
      const int side = static_cast<int>(random_.Below(2));
      contexts_[side].reset();
      Start(side);
    }
  }

  static bool AllEstablished(const std::vector<Connection>& connections) {
    return std::all_of(connections.begin(), connections.end(),
                       [](const Connection& c) { return c.state() == ConnectionState::kEstablished; });
  }
  bool AllArrived() const {
    return std::all_of(transfers_.begin(), transfers_.end(), [](const auto& entry) { return entry.second.arrived; });
  }
  bool AllEnded() const {
    return std::all_of(transfers_.begin(), transfers_.end(), [](const auto& entry) { return entry.second.open == 0; });
  }

  Transfer& NewTransfer() {
    Transfer& transfer = transfers_[++last_];
    transfer.from.resize(1 + random_.Below(random_.Chance(0.5) ? 1000 : kLargest));
    for (size_t i = 0; i < transfer.from.size(); ++i) transfer.from[i] = static_cast<uint8_t>(i * 7 + last_);
    transfer.to.resize(transfer.from.size());
    return transfer;
  }

  // To whichever connection is the other end: each posts a receive of its own copy, and all but one are cancelled by
  // the end of the connection.
  void Send(Connection& from, std::vector<Connection>& candidates) {
    Transfer& transfer = NewTransfer();
    for (Connection& candidate : candidates) Count(transfer, candidate.Receive(Whole(transfer.to), last_, 0, last_));
    Count(transfer, from.Send(Whole(transfer.from), last_, last_));
  }

  void Write(Connection& from, std::vector<RegionId>& regions) {
    Transfer& transfer = NewTransfer();
    auto region = contexts_[0]->RegisterMemory(transfer.to.data(), transfer.to.size(), kRemoteWrite);
    ASSERT_TRUE(region.ok());
    regions.push_back(*region);
    Count(transfer, from.Write(Whole(transfer.from), contexts_[0]->ExportMemory(*region), 0, last_));
  }

  static Buffer Whole(std::vector<uint8_t>& bytes) { return {bytes.data(), bytes.size()}; }
  static void Count(Transfer& transfer, PostResult result) {
    ASSERT_EQ(result, PostResult::kOk);
    ++transfer.open;
  }

  std::string key_file_;
  std::optional<Context> contexts_[2];
  std::map<uint64_t, Transfer> transfers_;
  uint64_t last_ = 0;
  uint64_t ended_ = 0;
  int rounds_ = 0;
  Random random_{1};
};

TEST_P(ChurnTest, LeavesNothingBehind) {
  const char* text = std::getenv("PACELINE_CHURN_SECONDS");
  const auto until = Clock::now() + std::chrono::seconds(text != nullptr ? std::atoi(text) : 0);
  size_t descriptors = 0, heap = 0;
  for (int round = 0; round < kWarmUpRounds + kRounds || Clock::now() < until; ++round) {
    if (round == kWarmUpRounds) {
      transfers_.clear();
      descriptors = Descriptors();
      heap = HeapBytes();
    }
    Round();
    if (HasFailure()) FAIL() << "in round " << round;
  }
  transfers_.clear();
  std::printf("%d rounds, %llu operations; %zu descriptors, before %zu; %zu bytes of heap, before %zu\n", rounds_,
              static_cast<unsigned long long>(ended_), Descriptors(), descriptors, HeapBytes(), heap);
  EXPECT_LE(Descriptors(), descriptors + kMayHold);
  EXPECT_LT(HeapBytes(), heap + kMayGrow);
}

INSTANTIATE_TEST_SUITE_P(, ChurnTest,
                         ::testing::Values(Setup{}, Setup{"udp", true}, Setup{"shm"}, Setup{"verbs"},
                                           Setup{"auto", true, 3}),
                         [](const auto& setup) {
                           return std::string(setup.param.lane) + (setup.param.encrypted ? "Encrypted" : "InClear");
                         });

}  // namespace
}  // namespace paceline::api
