// A context of several engines: its connections are spread over them, at both ends, and what a program sees of it is
// one context. (That each call means the same there, context_test.cc shows.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "paceline/context.h"

namespace paceline::api {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr uint32_t kEngines = 3;
constexpr uint32_t kConnections = 12;

ContextOptions Options() {
  ContextOptions options;
  options.lane = "udp";
  options.progress = ProgressMode::kThread;
  options.engines = kEngines;
  return options;
}

class EnginesTest : public ::testing::Test {
 protected:
  void Start(const ContextOptions& options = Options()) {
    for (auto& context : contexts_) {
      auto made = Context::Create(options);
      ASSERT_TRUE(made.ok()) << made.status().message();
      context.emplace(*std::move(made));
    }
  }
  // From the first context to the second: out_[i] to in_[i].
  void Connect(uint32_t connections = kConnections, const ListenOptions& in = {}) {
    auto listener = contexts_[1]->Listen(in);
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    for (uint32_t i = 0; i < connections; ++i) {
      const std::array<uint8_t, 1> number = {static_cast<uint8_t>(i)};
      auto connection = contexts_[0]->Connect(listener->handle(), {.private_data = number});
      ASSERT_TRUE(connection.ok()) << connection.status().message();
      out_.push_back(*std::move(connection));
    }
    in_.resize(connections);
    for (uint32_t i = 0; i < connections; ++i) {
      auto accepted = listener->WaitAccept(20s);
      ASSERT_TRUE(accepted.ok()) << accepted.status().message();
      Connection& place = in_.at(accepted->private_data().at(0));
      place = *std::move(accepted);
    }
    for (Connection& connection : out_) ASSERT_TRUE(connection.WaitEstablished(20s).ok()) << connection.close_reason();
    std::this_thread::sleep_for(5ms);
    EXPECT_FALSE(listener->Accept().has_value()) << "a connection nobody asked for";
  }
  Completion Next(int side) {
    Completion completion;
    while (contexts_[side]->completions().Poll(&completion, 1) == 0) {
      if (!contexts_[side]->Wait(20s)) {
        ADD_FAILURE() << "nothing comes";
        return {};
      }
    }
    return completion;
  }
  static uint64_t Value(const Context& context, const std::string& name) {
    for (const Counter& counter : context.counters()) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  std::array<std::optional<Context>, 2> contexts_;
  std::vector<Connection> out_, in_;
};

TEST_F(EnginesTest, ConnectionsAreSpreadOverAllAtBothEnds) {
  Start();
  Connect();
  std::set<uint32_t> ids;
  for (const auto* side : {&out_, &in_}) {
    std::map<uint32_t, int> by_engine;
    ids.clear();
    for (const Connection& connection : *side) {
      EXPECT_TRUE(ids.insert(connection.id()).second) << "two connections of a context have one number";
      ++by_engine[connection.id() >> 30];
    }
    EXPECT_EQ(by_engine.size(), kEngines);
    for (const auto& [engine, connections] : by_engine) {
      // Of requests only nearly so: an engine may not have seen those that are on their way when it is looked at.
      EXPECT_NEAR(connections, 4, side == &out_ ? 0 : 2) << engine;
    }
  }
  std::vector<uint32_t> data(kConnections), got(kConnections);
  std::iota(data.begin(), data.end(), 100);
  for (uint32_t i = 0; i < kConnections; ++i) {
    EXPECT_EQ(in_[i].Receive({&got[i], 4}, 0, 0, i), PostResult::kOk);
    EXPECT_EQ(out_[i].Send({&data[i], 4}, 0, i), PostResult::kOk);
  }
  std::set<uint64_t> sent, received;
  for (uint32_t i = 0; i < kConnections; ++i) {
    const Completion send = Next(0), receive = Next(1);
    EXPECT_EQ(send.status, OperationStatus::kOk);
    EXPECT_EQ(receive.status, OperationStatus::kOk);
    EXPECT_EQ(send.connection, out_[send.user_data].id());
    EXPECT_EQ(receive.connection, in_[receive.user_data].id());
    sent.insert(send.user_data);
    received.insert(receive.user_data);
  }
  EXPECT_EQ(sent.size(), kConnections);
  EXPECT_EQ(received.size(), kConnections);
  EXPECT_EQ(got, data);
  for (auto& context : contexts_) {
    const std::vector<std::string> lanes = context->lanes();
    ASSERT_EQ(lanes.size(), kEngines);
    EXPECT_EQ(std::set<std::string>(lanes.begin(), lanes.end()).size(), kEngines);
    EXPECT_EQ(Value(*context, "connections_opened"), kConnections);
    for (uint32_t port = 0; port < kEngines; ++port) {
      EXPECT_GT(Value(*context, "port" + std::to_string(port) + "_tx_packets"), 0u);
    }
  }
}

TEST_F(EnginesTest, WhoEverHasFewestConnectionsGetsTheNext) {
  Start();
  Connect(9);
  std::erase_if(out_, [](const Connection& connection) { return connection.id() >> 30 == 1; });
  ASSERT_EQ(out_.size(), 6u);
  auto listener = contexts_[1]->Listen();
  // Connections end in the background.
  const auto patience = std::chrono::steady_clock::now() + 20s;
  while (Value(*contexts_[0], "connections_closed") < 3 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(1ms);
  }
  for (int i = 0; i < 3; ++i) {
    auto connection = contexts_[0]->Connect(listener->handle());
    ASSERT_TRUE(connection.ok());
    EXPECT_EQ(connection->id() >> 30, 1u);
    out_.push_back(*std::move(connection));
  }
}

TEST_F(EnginesTest, MemoryIsReachedThroughAllConnections) {
  Start();
  Connect();
  std::vector<uint64_t> memory(kConnections), local(kConnections), back(kConnections);
  std::iota(local.begin(), local.end(), 1000);
  auto gone = contexts_[1]->RegisterMemory(memory.data(), 8, kRemoteRead);  // numbers are given out again
  ASSERT_TRUE(gone.ok());
  contexts_[1]->DeregisterMemory(*gone);
  const auto region = contexts_[1]->RegisterMemory(memory.data(), memory.size() * 8, kRemoteRead | kRemoteWrite);
  const auto named = contexts_[1]->RegisterMemoryAs(4711, 0, memory.data(), memory.size() * 8, kRemoteAtomic);
  ASSERT_TRUE(region.ok() && named.ok());
  EXPECT_EQ(contexts_[1]->RegisterMemoryAs(4711, 0, memory.data(), 8, kRemoteRead).status().code(),
            StatusCode::kAlreadyExists);
  const auto ours = contexts_[0]->RegisterMemory(local.data(), local.size() * 8, kLocalOnly);
  ASSERT_TRUE(ours.ok());
  const RemoteMemory remote = contexts_[1]->ExportMemory(*region);
  for (uint32_t i = 0; i < kConnections; ++i) {
    EXPECT_EQ(out_[i].Write({&local[i], 8, *ours}, remote, i * 8, i), PostResult::kOk);
  }
  for (uint32_t i = 0; i < kConnections; ++i) EXPECT_EQ(Next(0).status, OperationStatus::kOk);
  EXPECT_EQ(memory, local);
  for (uint32_t i = 0; i < kConnections; ++i) {
    EXPECT_EQ(out_[i].FetchAdd({.key = 4711, .bytes = ~uint64_t{0}}, i * 8, 1, i), PostResult::kOk);
  }
  for (uint32_t i = 0; i < kConnections; ++i) EXPECT_EQ(Next(0).status, OperationStatus::kOk);
  EXPECT_EQ(memory[0], 1001u);
  for (uint32_t i = 0; i < kConnections; ++i) {
    EXPECT_EQ(out_[i].Read({&back[i], 8}, contexts_[1]->ExportMemoryFor(in_[i], *region), i * 8, i), PostResult::kOk);
  }
  for (uint32_t i = 0; i < kConnections; ++i) EXPECT_EQ(Next(0).status, OperationStatus::kOk);
  EXPECT_EQ(back, memory);

  contexts_[1]->DeregisterMemory(*region);
  EXPECT_EQ(contexts_[1]->ExportMemory(*region).key, 0u);
  for (uint32_t i = 0; i < kConnections; ++i) {
    EXPECT_EQ(out_[i].Read({&back[i], 8}, remote, i * 8, i), PostResult::kOk);
  }
  for (uint32_t i = 0; i < kConnections; ++i) EXPECT_EQ(Next(0).status, OperationStatus::kRemoteAccess);
}

TEST_F(EnginesTest, ARegionForOneConnectionIsForThatAlone) {
  Start();
  Connect();
  uint64_t memory = 5, back = 0;
  const auto region = contexts_[1]->RegisterMemoryFor(in_[7], &memory, 8, kRemoteRead);
  ASSERT_TRUE(region.ok());
  EXPECT_FALSE(contexts_[0]->RegisterMemoryFor(in_[7], &memory, 8, kRemoteRead).ok()) << "of another context";
  EXPECT_EQ(contexts_[0]->ExportMemoryFor(in_[7], *region).key, 0u);
  const RemoteMemory remote = contexts_[1]->ExportMemory(*region);
  int allowed = 0;
  for (Connection& connection : out_) {
    EXPECT_EQ(connection.Read({&back, 8}, remote, 0, 0), PostResult::kOk);
    allowed += Next(0).status == OperationStatus::kOk;
  }
  EXPECT_EQ(allowed, 1);
  EXPECT_EQ(back, 5u);
}

TEST_F(EnginesTest, AReceiveQueueHasItsConnectionsWhereItIs) {
  Start();
  std::vector<ReceiveQueue> queues;
  std::set<uint32_t> homes;
  for (uint32_t i = 0; i < kEngines; ++i) queues.push_back(contexts_[1]->NewReceiveQueue());
  for (uint32_t i = 0; i < kEngines; ++i) {
    out_.clear();
    in_.clear();
    Connect(4, {.receives = &queues[i], .service = 100 + i});
    for (const Connection& connection : in_) EXPECT_EQ(connection.id() >> 30, in_[0].id() >> 30);
    homes.insert(in_[0].id() >> 30);
    uint32_t data = 17, got = 0;
    for (Connection& connection : out_) EXPECT_EQ(connection.Send({&data, 4}, 3, 0), PostResult::kOk);
    for (uint32_t n = 0; n < out_.size(); ++n) {
      EXPECT_EQ(queues[i].Receive({&got, 4}, {.tag = 3}, n), PostResult::kOk);
      EXPECT_EQ(Next(1).status, OperationStatus::kOk);
      EXPECT_EQ(Next(0).status, OperationStatus::kOk);
    }
  }
  EXPECT_EQ(homes.size(), kEngines) << "receive queues are spread";
  // At the side that connects, too; and only its own.
  ReceiveQueue queue = contexts_[0]->NewReceiveQueue();
  auto listener = contexts_[1]->Listen();
  auto connection = contexts_[0]->Connect(listener->handle(), {.receives = &queue});
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ(contexts_[0]->Connect(listener->handle(), {.receives = &queues[0]}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(contexts_[0]->Listen({.receives = &queues[0]}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(EnginesTest, AServiceHasOneListener) {
  Start();
  ReceiveQueue queue = contexts_[1]->NewReceiveQueue();
  {
    auto listener = contexts_[1]->Listen({.service = 9});
    ASSERT_TRUE(listener.ok());
    EXPECT_EQ(contexts_[1]->Listen({.service = 9}).status().code(), StatusCode::kAlreadyExists);
    EXPECT_EQ(contexts_[1]->Listen({.receives = &queue, .service = 9}).status().code(), StatusCode::kAlreadyExists);
  }
  EXPECT_TRUE(contexts_[1]->Listen({.service = 9}).ok()) << "free again";
}

TEST_F(EnginesTest, RequestsThatAreLostAndComeAgainMakeOneConnectionEach) {
  ContextOptions options = Options();
  options.impair = "loss=20%,dup=20%";
  Start(options);
  Connect(40);  // which counts those that are accepted
}

// A copy of a request whose answer was lost comes when its connection is accepted and the listener gone.
TEST_F(EnginesTest, AListenerMayCloseWhenItsConnectionIsAccepted) {
  ContextOptions options = Options();
  options.impair = "loss=15%,dup=30%";
  options.connect_timeout_ms = 20'000;  // time enough for one try of many to succeed
  Start(options);
  for (int round = 0; round < 15; ++round) {
    ReceiveQueue queue = contexts_[1]->NewReceiveQueue();
    auto listener = contexts_[1]->Listen(round % 2 == 0 ? ListenOptions() : ListenOptions{.receives = &queue});
    auto out = contexts_[0]->Connect(listener->handle());
    ASSERT_TRUE(out.ok());
    std::optional<Connection> in;
    for (const auto patience = std::chrono::steady_clock::now() + 20s; !in;) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience);
      in = listener->Accept();
    }
    *listener = Listener();
    EXPECT_TRUE(out->WaitEstablished(20s).ok()) << out->close_reason();
  }
}

TEST_F(EnginesTest, WhoAsksForNobodyIsRefusedAndHisLikeAreNot) {
  Start();
  auto listener = contexts_[1]->Listen();
  const Handle handle = listener->handle();
  listener = contexts_[1]->Listen();  // the first one ends
  for (int i = 0; i < 6; ++i) {
    auto connection = contexts_[0]->Connect(handle);
    ASSERT_TRUE(connection.ok());
    EXPECT_THAT(connection->WaitEstablished(20s).message(), HasSubstr("nobody listens"));
  }
  Connect(3);
}

TEST_F(EnginesTest, TheDescriptorIsReadableWhicheverEngineHasSomething) {
  Start();
  Connect();
  CompletionQueue& queue = contexts_[1]->completions();
  Completion completion;
  for (uint32_t i = 0; i < kConnections; ++i) {
    uint32_t data = i, got = 0;
    EXPECT_EQ(in_[i].Receive({&got, 4}, 0, 0, i), PostResult::kOk);
    while (!queue.Arm()) EXPECT_EQ(queue.Poll(&completion, 1), 0u);
    pollfd waiting = {.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&waiting, 1, 0), 0);
    EXPECT_EQ(out_[i].Send({&data, 4}, 0, 0), PostResult::kOk);
    ASSERT_EQ(poll(&waiting, 1, 20'000), 1);
    while (queue.Poll(&completion, 1) == 0) ASSERT_TRUE(contexts_[1]->Wait(20s));
    EXPECT_EQ(completion.user_data, i);
    EXPECT_EQ(got, i);
  }
}

TEST_F(EnginesTest, AnInterruptEndsAWait) {
  Start();
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    contexts_[0]->Interrupt();
  });
  EXPECT_FALSE(contexts_[0]->Wait(3600s));
  other.join();
}

TEST_F(EnginesTest, ANamedPortIsTheFirstEngines) {
  ContextOptions options = Options();
  options.bind = {"127.0.0.1:0"};
  Start(options);
  // One that is free now.
  const std::string lane = contexts_[0]->lanes().front();
  const std::string port = lane.substr(lane.rfind(':'));
  contexts_[0].reset();
  options.bind = {"127.0.0.1" + port};
  auto made = Context::Create(options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const std::vector<std::string> lanes = made->lanes();
  EXPECT_THAT(lanes[0], ::testing::EndsWith(port));
  EXPECT_EQ(std::set<std::string>(lanes.begin(), lanes.end()).size(), kEngines);
  auto listener = made->Listen();
  auto connection = contexts_[1]->Connect(listener->handle());
  ASSERT_TRUE(connection.ok());
  EXPECT_TRUE(connection->state() != ConnectionState::kClosed);
  EXPECT_TRUE(listener->WaitAccept(20s).ok());
}

TEST(Engines, WhatCannotBeIsSaid) {
  const auto message = [](const ContextOptions& options) { return Context::Create(options).status().message(); };
  ContextOptions options = Options();
  options.engines = 17;
  EXPECT_THAT(message(options), HasSubstr("engines is 17; at most 16"));
  options = Options();
  options.progress = ProgressMode::kManual;
  EXPECT_THAT(message(options), HasSubstr("PACELINE_PROGRESS"));
  for (const char* lane : {"xdp", "dpdk"}) {
    options = Options();
    options.lane = lane;
    EXPECT_THAT(message(options), HasSubstr("belong to one engine"));
  }
}

}  // namespace
}  // namespace paceline::api
