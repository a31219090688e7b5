// The C++ API over loopback, with both ways of making progress: each operation, what its completion means, and what
// goes wrong.
#include "paceline/context.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/unit/api/context_options.h"

namespace paceline::api {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Setup {
  ProgressMode progress;
  const char* lane;
  uint32_t engines = 1;
};

class ContextTest : public ::testing::TestWithParam<Setup> {
 protected:
  void SetUp() override {
    if (!kSeesSharedMemory && std::string_view(GetParam().lane) != "udp") GTEST_SKIP() << "not for this sanitizer";
    ContextOptions options;
    options.progress = GetParam().progress;
    options.lane = GetParam().lane;
    options.engines = GetParam().engines;
    options.connect_timeout_ms = 1000;
    options.linger_ms = 1;  // with manual progress the peer cannot answer while the other context ends
    for (auto& context : contexts_) {
      auto created = Context::Create(options);
      ASSERT_TRUE(created.ok()) << created.status().message();
      context.emplace(*std::move(created));
    }
  }

  // Both contexts live in this thread: with manual progress each wait must move the other too.
  template <typename Done>
  bool Until(Done&& done) {
    for (int i = 0; i < 200000; ++i) {
      if (done()) return true;
      for (auto& context : contexts_) context->Progress();
      if (GetParam().progress == ProgressMode::kThread) std::this_thread::sleep_for(50us);
    }
    return done();
  }

  void Connect() {
    auto listener = contexts_[0]->Listen();
    ASSERT_TRUE(listener.ok());
    auto out = contexts_[1]->Connect(listener->handle());
    ASSERT_TRUE(out.ok()) << out.status().message();
    out_ = *std::move(out);
    EXPECT_EQ(out_.state(), ConnectionState::kConnecting);
    EXPECT_TRUE(Until([&] {
      if (!in_.valid()) {
        if (auto accepted = listener->Accept()) in_ = *std::move(accepted);
      }
      return in_.valid() && in_.state() == ConnectionState::kEstablished &&
             out_.state() == ConnectionState::kEstablished;
    }));
  }

  Completion Take(int side) {
    Completion completion;
    bool got = false;
    EXPECT_TRUE(Until([&] { return got = got || contexts_[side]->completions().Poll(&completion, 1) == 1; }));
    return completion;
  }

  // Only for the thread sanitizer: that a write came before its completion at the other side is told through a socket,
  // which it does not see; a lock of the written side it does.
  void SeePeerMemory() { contexts_[0]->counters(); }

  std::optional<Context> contexts_[2];
  Connection in_, out_;
};

TEST_P(ContextTest, SendsAndReceives) {
  Connect();
  std::vector<uint8_t> from(300'000), to(300'000);
  std::iota(from.begin(), from.end(), uint8_t{3});
  ASSERT_EQ(in_.Receive({to.data(), to.size()}, 0xab00, 0xff, 5), PostResult::kOk);
  ASSERT_EQ(out_.SendImmediate({from.data(), from.size()}, 0xab12, 99, 6), PostResult::kOk);
  const Completion received = Take(0);
  EXPECT_EQ(received.operation, Operation::kReceive);
  EXPECT_EQ(received.status, OperationStatus::kOk);
  EXPECT_EQ(received.connection, in_.id());
  EXPECT_EQ(received.user_data, 5u);
  EXPECT_EQ(received.bytes, from.size());
  EXPECT_EQ(received.tag, 0xab12u);
  EXPECT_TRUE(received.has_immediate);
  EXPECT_EQ(received.immediate, 99u);
  EXPECT_EQ(from, to);
  const Completion sent = Take(1);
  EXPECT_EQ(sent.operation, Operation::kSend);
  EXPECT_EQ(sent.status, OperationStatus::kOk);
  EXPECT_EQ(sent.user_data, 6u);
}

TEST_P(ContextTest, WritesReadsAndCounts) {
  Connect();
  alignas(8) uint8_t memory[65536] = {};
  const auto region = contexts_[0]->RegisterMemory(memory, sizeof(memory), kRemoteRead | kRemoteWrite | kRemoteAtomic);
  ASSERT_TRUE(region.ok());
  const RemoteMemory remote = contexts_[0]->ExportMemory(*region);
  EXPECT_EQ(remote.bytes, sizeof(memory));

  std::vector<uint8_t> from(20'000, 0x5a), to(20'000);
  ASSERT_EQ(out_.Write({from.data(), from.size()}, remote, 1000, 1), PostResult::kOk);
  EXPECT_EQ(Take(1).status, OperationStatus::kOk);
  SeePeerMemory();
  EXPECT_EQ(std::memcmp(memory + 1000, from.data(), from.size()), 0);
  EXPECT_EQ(memory[999], 0);
  EXPECT_EQ(memory[1000 + from.size()], 0);

  ASSERT_EQ(out_.WriteImmediate({from.data(), 100}, remote, 0, 77, 2), PostResult::kOk);
  const Completion told = Take(0);
  EXPECT_EQ(told.operation, Operation::kWriteImmediate);
  EXPECT_EQ(told.immediate, 77u);
  EXPECT_EQ(Take(1).status, OperationStatus::kOk);

  ASSERT_EQ(out_.Read({to.data(), to.size()}, remote, 1000, 3), PostResult::kOk);
  EXPECT_EQ(Take(1).status, OperationStatus::kOk);
  EXPECT_EQ(from, to);

  SeePeerMemory();
  std::memset(memory, 0, 8);
  SeePeerMemory();  // and it ours
  ASSERT_EQ(out_.FetchAdd(remote, 0, 40, 4), PostResult::kOk);
  EXPECT_EQ(Take(1).result, 0u);
  ASSERT_EQ(out_.CompareSwap(remote, 0, 40, 2, 5), PostResult::kOk);
  EXPECT_EQ(Take(1).result, 40u);
  SeePeerMemory();
  uint64_t value;
  std::memcpy(&value, memory, 8);
  EXPECT_EQ(value, 2u);

  ASSERT_EQ(out_.Flush(6), PostResult::kOk);
  const Completion flushed = Take(1);
  EXPECT_EQ(flushed.operation, Operation::kFlush);
  EXPECT_EQ(flushed.user_data, 6u);
}

TEST_P(ContextTest, MemoryIsGuarded) {
  Connect();
  uint8_t memory[4096] = {};
  uint8_t data[64] = {1};
  const auto readable = contexts_[0]->RegisterMemory(memory, sizeof(memory), kRemoteRead);
  ASSERT_TRUE(readable.ok());
  RemoteMemory remote = contexts_[0]->ExportMemory(*readable);
  ASSERT_EQ(out_.Write({data, sizeof(data)}, remote, 0, 1), PostResult::kOk);
  EXPECT_EQ(Take(1).status, OperationStatus::kRemoteAccess);
  SeePeerMemory();
  EXPECT_EQ(memory[0], 0);

  // Past the end: refused here, for the bounds are known; and over there too, when somebody forges them.
  EXPECT_EQ(out_.Read({data, sizeof(data)}, remote, sizeof(memory) - 10, 2), PostResult::kInvalidMemory);
  remote.bytes = 1 << 20;
  ASSERT_EQ(out_.Read({data, sizeof(data)}, remote, sizeof(memory) - 10, 2), PostResult::kOk);
  EXPECT_EQ(Take(1).status, OperationStatus::kRemoteAccess);

  remote = contexts_[0]->ExportMemory(*readable);
  contexts_[0]->DeregisterMemory(*readable);
  ASSERT_EQ(out_.Read({data, sizeof(data)}, remote, 0, 3), PostResult::kOk);
  EXPECT_EQ(Take(1).status, OperationStatus::kRemoteAccess);
  EXPECT_EQ(contexts_[0]->ExportMemory(*readable).key, 0u);

  EXPECT_FALSE(contexts_[0]->RegisterMemory(nullptr, 10, 0).ok());
  EXPECT_FALSE(contexts_[0]->RegisterMemory(memory, 0, 0).ok());
  EXPECT_FALSE(contexts_[0]->RegisterMemory(memory, 10, 0x80).ok());
}

TEST_P(ContextTest, CancelsAReceive) {
  Connect();
  uint8_t data[64];
  OperationId id = 0;
  ASSERT_EQ(in_.Receive({data, sizeof(data)}, 1, 0, 9, &id), PostResult::kOk);
  EXPECT_NE(id, 0u);
  EXPECT_TRUE(in_.Cancel(id));
  const Completion completion = Take(0);
  EXPECT_EQ(completion.status, OperationStatus::kCancelled);
  EXPECT_EQ(completion.user_data, 9u);
  EXPECT_FALSE(in_.Cancel(id));
}

TEST_P(ContextTest, CloseEndsWhatIsLeftAndTellsThePeer) {
  Connect();
  uint8_t data[64];
  ASSERT_EQ(in_.Receive({data, sizeof(data)}, 1, 0, 9), PostResult::kOk);
  out_.Close();
  EXPECT_EQ(Take(0).status, OperationStatus::kConnectionClosed);
  EXPECT_TRUE(
      Until([&] { return in_.state() == ConnectionState::kClosed && out_.state() == ConnectionState::kClosed; }));
  EXPECT_EQ(in_.close_code(), CloseCode::kByPeer);
  EXPECT_EQ(out_.close_code(), CloseCode::kLocal);
  EXPECT_EQ(in_.close_reason(), "closed by the peer");
  EXPECT_EQ(in_.Send({data, sizeof(data)}, 1, 1), PostResult::kNotConnected);
}

TEST_P(ContextTest, AnAbortIsToldFromAClose) {
  Connect();
  EXPECT_EQ(in_.close_code(), CloseCode::kNone);
  EXPECT_EQ(in_.close_reason(), "");
  out_.Abort();
  EXPECT_TRUE(Until([&] { return in_.state() == ConnectionState::kClosed; }));
  EXPECT_EQ(in_.close_code(), CloseCode::kAborted);
}

TEST_P(ContextTest, WhereNoContextIsNobodyAnswersInTime) {
  const auto handle = contexts_[0]->Listen()->handle();
  contexts_[0].reset();
  auto created = contexts_[1]->Connect(handle);
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(created->WaitEstablished(24h).code(), StatusCode::kUnavailable);
  EXPECT_EQ(created->close_code(), CloseCode::kUnreachable);
}

TEST_P(ContextTest, ConnectingToNobodyFails) {
  Handle handle;
  {
    auto listener = contexts_[0]->Listen();
    handle = listener->handle();
  }
  auto refused = contexts_[1]->Connect(handle);
  ASSERT_TRUE(refused.ok());
  EXPECT_TRUE(Until([&] { return refused->state() == ConnectionState::kClosed; }));
  EXPECT_EQ(refused->close_code(), CloseCode::kRefusedNoListener);
  EXPECT_THAT(refused->close_reason(), HasSubstr("nobody listens there"));
  handle.bytes[20] ^= 1;
  EXPECT_EQ(contexts_[1]->Connect(handle).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(ContextTest, CountersCountAndAreSeenFromOutside) {
  Connect();
  uint8_t data[64] = {}, to[64] = {};
  ASSERT_EQ(in_.Receive({to, sizeof(to)}, 1, 0, 1), PostResult::kOk);
  ASSERT_EQ(out_.Send({data, sizeof(data)}, 1, 2), PostResult::kOk);
  Take(0);
  Take(1);
  const auto value = [](const std::vector<Counter>& counters, const std::string& name) {
    for (const Counter& counter : counters) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return uint64_t{0};
  };
  EXPECT_EQ(value(contexts_[1]->counters(), "connections_opened"), 1u);
  EXPECT_GT(value(contexts_[1]->counters(), "port0_tx_packets"), 0u);
  for (const Counter& counter : contexts_[1]->counters()) {
    EXPECT_FALSE(counter.unit.empty()) << counter.name;
    EXPECT_FALSE(counter.meaning.empty()) << counter.name;
    EXPECT_LT(counter.name.size(), 40u) << counter.name;
  }
  const std::string page = contexts_[1]->counters_page();
  ASSERT_FALSE(page.empty());
  EXPECT_TRUE(Until([&] {
    const auto snapshot = ReadCounterPage(page);
    return snapshot.ok() && value(snapshot->counters, "operations_completed") >= 1;
  }));
}

TEST_P(ContextTest, DescriptorWakesAnEventLoop) {
  Connect();
  uint8_t data[64] = {}, to[64] = {};
  ASSERT_EQ(in_.Receive({to, sizeof(to)}, 1, 0, 1), PostResult::kOk);
  Completion completion;
  CompletionQueue& queue = contexts_[0]->completions();
  while (!queue.Arm()) contexts_[0]->Progress();
  ASSERT_EQ(out_.Send({data, sizeof(data)}, 1, 2), PostResult::kOk);
  contexts_[1]->Progress();
  for (bool got = false; !got;) {
    pollfd entry = {.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&entry, 1, 5000), 1);
    contexts_[1]->Progress();
    do {
      got = got || queue.Poll(&completion, 1) == 1;
    } while (!got && !queue.Arm());
  }
  EXPECT_EQ(completion.operation, Operation::kReceive);
  // The sender may read `data` until it knows that it has arrived.
  EXPECT_TRUE(Until([&] { return contexts_[1]->completions().Poll(&completion, 1) == 1; }));
}

TEST_P(ContextTest, LookingForConnectionsLeavesAnArmedContextAsleep) {
  Connect();
  auto listener = contexts_[0]->Listen();
  ASSERT_TRUE(listener.ok());
  // It is looked at each time, as by a program that polls several things in turn.
  EXPECT_TRUE(Until([&] { return !listener->Accept() && contexts_[0]->completions().Arm(); }));
}

TEST_P(ContextTest, WaitEndsByTimeOutAndByInterrupt) {
  EXPECT_FALSE(contexts_[0]->Wait(1ms));
  contexts_[0]->Interrupt();
  EXPECT_FALSE(contexts_[0]->Wait(3600s));
  std::thread other([&] { contexts_[0]->Interrupt(); });
  EXPECT_FALSE(contexts_[0]->Wait(3600s));
  other.join();
}

TEST_P(ContextTest, AnInterruptIsNeverLost) {
  std::atomic<int> ended{0};
  std::thread waiting([&] {
    for (int i = 0; i < 2000; ++i, ++ended) EXPECT_FALSE(contexts_[0]->Wait(3600s));
  });
  for (int i = 0; i < 2000; ++i) {
    contexts_[0]->Interrupt();
    while (ended <= i) std::this_thread::yield();
  }
  waiting.join();
}

TEST_P(ContextTest, AWaitEndsInTimeWhilePacketsCome) {
  Connect();
  std::vector<uint8_t> memory(1 << 20), from(1 << 20);
  auto region = contexts_[0]->RegisterMemory(memory.data(), memory.size(), kRemoteWrite);
  ASSERT_TRUE(region.ok());
  const RemoteMemory remote = contexts_[0]->ExportMemory(*region);
  std::atomic<bool> stop{false};
  std::thread writes([&] {
    Completion completion;
    while (!stop) {
      out_.Write({from.data(), from.size()}, remote, 0, 0);
      contexts_[1]->completions().Poll(&completion, 1);
    }
  });
  while (contexts_[0]->Wait(1ms)) {
  }
  // Writes complete nothing here.
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(contexts_[0]->Wait(10ms));
  stop = true;
  writes.join();
  in_ = Connection();
  out_ = Connection();
  for (auto& context : contexts_) context.reset();  // before the memory goes that is still written
}

TEST_P(ContextTest, ARegionIsBoundToNobodyElsesConnection) {
  Connect();
  uint8_t bytes[64];
  const Connection none;
  const Connection* const not_its[] = {&in_, &none};
  for (const Connection* connection : not_its) {
    const auto region = contexts_[1]->RegisterMemoryFor(*connection, bytes, sizeof(bytes), kRemoteRead);
    EXPECT_EQ(region.status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(contexts_[1]->RegisterMemoryFor(out_, bytes, sizeof(bytes), kRemoteRead).ok());
}

INSTANTIATE_TEST_SUITE_P(Setups, ContextTest,
                         ::testing::Values(Setup{ProgressMode::kManual, "udp"}, Setup{ProgressMode::kThread, "udp"},
                                           Setup{ProgressMode::kManual, "auto"}, Setup{ProgressMode::kThread, "auto"},
                                           Setup{ProgressMode::kThread, "udp", 3},
                                           Setup{ProgressMode::kThread, "auto", 3}),
                         [](const auto& setup) {
                           return std::string(setup.param.progress == ProgressMode::kThread ? "Thread" : "Manual") +
                                  (setup.param.engines > 1 ? "s" : "") +
                                  (std::string_view(setup.param.lane) == "udp" ? "Udp" : "Auto");
                         });

// Numbers come again after 4,096 uses. Who still holds an object of an ended connection keeps its number.
TEST(ContextNumbers, AnObjectThatIsKeptKeepsItsNumber) {
  ContextOptions options;
  options.lane = "udp";
  options.linger_ms = 1;
  auto context = Context::Create(options);
  ASSERT_TRUE(context.ok());
  auto listener = context->Listen();
  ASSERT_TRUE(listener.ok());
  const Handle handle = listener->handle();
  *listener = Listener();
  Connection kept = *context->Connect(handle);
  EXPECT_FALSE(kept.WaitEstablished(std::chrono::seconds(10)).ok());
  const std::string reason = kept.close_reason();
  for (int i = 0; i < 4200; ++i) {
    Connection next = *context->Connect(handle);
    ASSERT_NE(next.id(), kept.id()) << i;
    ASSERT_NE(next.state(), ConnectionState::kClosed) << i;
    EXPECT_FALSE(next.WaitEstablished(std::chrono::seconds(10)).ok());
  }
  EXPECT_EQ(kept.close_code(), CloseCode::kRefusedNoListener);
  EXPECT_EQ(kept.close_reason(), reason);
}

// A context that goes right after a post still delivers it, and its peer learns of the end at once.
TEST(ContextEnd, CarriesOutWhatWasPostedAndSaysSo) {
  ContextOptions options = DefaultOptions();
  options.progress = ProgressMode::kThread;
  auto stays = Context::Create(options);
  ASSERT_TRUE(stays.ok()) << stays.status().message();
  auto listener = stays->Listen();
  ASSERT_TRUE(listener.ok());
  Connection incoming;
  std::vector<uint8_t> from(1 << 20, 0x21), to(from.size());
  {
    auto goes = Context::Create(options);
    ASSERT_TRUE(goes.ok()) << goes.status().message();
    auto outgoing = goes->Connect(listener->handle());
    ASSERT_TRUE(outgoing.ok());
    auto accepted = listener->WaitAccept(5s);
    ASSERT_TRUE(accepted.ok()) << accepted.status().message();
    ASSERT_TRUE(outgoing->WaitEstablished(5s).ok());
    incoming = *std::move(accepted);
    ASSERT_EQ(incoming.Receive({to.data(), to.size()}, 1, 0, 1), PostResult::kOk);
    ASSERT_EQ(outgoing->Send({from.data(), from.size()}, 1, 2), PostResult::kOk);
  }
  Completion done;
  while (stays->completions().Poll(&done, 1) == 0) ASSERT_TRUE(stays->Wait(5s));
  EXPECT_EQ(done.status, OperationStatus::kOk);
  EXPECT_EQ(done.bytes, from.size());
  EXPECT_EQ(to, from);
  while (incoming.state() != ConnectionState::kClosed) stays->Wait(5s);
  EXPECT_EQ(incoming.close_code(), CloseCode::kByPeer);
}

// A peer of this host is spoken to through memory when both sides may, else over the network.
TEST(AutomaticLane, IsTheFastestThatBothSidesHave) {
  if (!kSeesSharedMemory) GTEST_SKIP() << "not for this sanitizer";
  const auto packets = [](const Context& context, const std::string& port) {
    for (const Counter& counter : context.counters()) {
      if (counter.name == port + "_tx_packets") return counter.value;
    }
    return uint64_t{0};
  };
  const auto has_memory = [](const Context& context) {
    const auto counters = context.counters();
    return std::any_of(counters.begin(), counters.end(),
                       [](const Counter& counter) { return counter.name == "port1_tx_packets"; });
  };
  for (const char* other : {"auto", "udp"}) {
    ContextOptions options;
    options.progress = ProgressMode::kThread;
    auto here = Context::Create(options);
    options.lane = other;
    auto there = Context::Create(options);
    ASSERT_TRUE(here.ok() && there.ok());
    if (!has_memory(*here)) GTEST_SKIP() << "no shared memory here";
    auto listener = here->Listen();
    ASSERT_TRUE(listener.ok());
    auto outgoing = there->Connect(listener->handle());
    ASSERT_TRUE(outgoing.ok());
    auto accepted = listener->WaitAccept(5s);
    ASSERT_TRUE(accepted.ok()) << accepted.status().message();
    ASSERT_TRUE(outgoing->WaitEstablished(5s).ok());
    std::vector<uint8_t> from(1 << 20, 0x42), to(from.size());
    ASSERT_EQ(accepted->Receive({to.data(), to.size()}, 1, 0, 1), PostResult::kOk);
    ASSERT_EQ(outgoing->Send({from.data(), from.size()}, 1, 2), PostResult::kOk);
    Completion done;
    while (here->completions().Poll(&done, 1) == 0) ASSERT_TRUE(here->Wait(5s));
    while (there->completions().Poll(&done, 1) == 0) ASSERT_TRUE(there->Wait(5s));  // its buffer goes before it does
    EXPECT_EQ(to, from);
    const bool shared = std::string_view(other) == "auto";
    const uint64_t by_memory = packets(*here, "port0"), by_network = packets(*here, "port1");
    EXPECT_EQ(by_memory > 0, shared) << other;
    EXPECT_EQ(by_network > 0, !shared) << other;
  }
}

TEST(ContextCreate, NamesWhatIsWrong) {
  const auto error = [](auto&& change) {
    ContextOptions options;
    change(options);
    return Context::Create(options).status().message();
  };
  EXPECT_THAT(error([](ContextOptions& o) { o.lane = "pigeon"; }), HasSubstr("pigeon"));
  EXPECT_THAT(error([](ContextOptions& o) { o.bind = {"no_such_card0"}; }), HasSubstr("no_such_card0"));
  EXPECT_THAT(error([](ContextOptions& o) { o.congestion_control = "hope"; }), HasSubstr("hope"));
  EXPECT_THAT(error([](ContextOptions& o) { o.congestion_control_parameters["hope"] = "1"; }), HasSubstr("hope"));
  EXPECT_THAT(error([](ContextOptions& o) { o.path_policy = "astray"; }), HasSubstr("astray"));
}

TEST(ContextCreate, APortInUseIsNamed) {
  ContextOptions options;
  options.bind = {"127.0.0.1:47911"};
  const auto first = Context::Create(options);
  if (!first.ok()) GTEST_SKIP() << "another program has port 47911";
  const auto second = Context::Create(options);
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(), HasSubstr("47911"));
}

// Whatever it is that finds no descriptor any more.
TEST(ContextCreate, WithoutDescriptorsToBeHadItIsAtABound) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  ContextOptions options;
  options.lane = "udp";
  options.progress = ProgressMode::kThread;
  options.engines = 2;
  const int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(first, 0);
  close(first);
  bool enough = false;
  for (rlim_t some = 0; some < 200 && !enough; ++some) {
    const rlimit few = {.rlim_cur = static_cast<rlim_t>(first) + some, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto context = Context::Create(options);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    enough = context.ok();
    if (enough) continue;
    EXPECT_EQ(context.status().code(), StatusCode::kResourceExhausted) << some << ": " << context.status().message();
  }
  EXPECT_TRUE(enough);
}

}  // namespace
}  // namespace paceline::api
