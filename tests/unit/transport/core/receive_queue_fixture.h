// The fixture of the tests of receive queues: a host with a queue, and two that send into it.
//
// Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/support/core_fixture.h"

namespace paceline::support {

// Host 2 has a queue, and hosts 0 and 1 a connection to it each.
class ReceiveQueueFixture : public CoreFixture {
 protected:
  static constexpr Source kNames[] = {70, 71};

  void StartQueue(WorldOptions options) {
    options.hosts = 3;
    Start(options, false);
    queue_ = endpoint(2).NewReceiveQueue();
    host(2).on_event = [this](const ConnectionEvent& event) {
      if (event.kind == ConnectionEventKind::kRequest) {
        ASSERT_EQ(event.private_data.size, 1u);
        in_[event.private_data.bytes[0]] = event.connection;
      }
    };
    host(2).on_completion = [this](const Completion& completion) { got_.push_back(completion); };
    const uint32_t listener = endpoint(2).Listen({.receives = queue_});
    for (uint8_t from : {uint8_t{0}, uint8_t{1}}) {
      const ListenAddress address = endpoint(2).listen_address(listener);
      out_[from] = endpoint(from).Connect(address, now(), {}, PrivateData::Of({&from, 1}));
      host(from).Touch();
      ASSERT_TRUE(
          world().RunUntil([&] { return Event(from, ConnectionEventKind::kEstablished, out_[from]) != nullptr; }));
    }
  }

  void Name(uint32_t from) {
    endpoint(2).SetSource(in_[from], kNames[from], now());
    host(2).Touch();
  }
  void SendFrom(uint32_t from, GuardedBuffer& buffer, uint64_t tag) {
    const SendRequest request = {.buffer = {buffer.data(), buffer.size()}, .tag = tag, .user_data = 0};
    ASSERT_EQ(endpoint(from).PostSend(out_[from], request, now()), PostResult::kOk);
    host(from).Touch();
  }
  OperationId Post(const ReceiveRequest& request, PostResult wanted = PostResult::kOk) {
    OperationId id = 0;
    EXPECT_EQ(endpoint(2).PostSharedReceive(queue_, request, now(), &id), wanted);
    host(2).Touch();
    return id;
  }
  Completion Take() {
    EXPECT_TRUE(world().RunUntil([&] { return !got_.empty(); }));
    if (got_.empty()) return {};
    const Completion first = got_.front();
    got_.erase(got_.begin());
    return first;
  }
  void Settle() { world().RunFor(Duration::Millis(2)); }
  static LocalBuffer Into(GuardedBuffer& buffer) { return {buffer.data(), buffer.size()}; }

  ReceiveQueueId queue_ = kNoReceiveQueue;
  ConnectionId out_[2] = {};
  std::map<uint32_t, ConnectionId> in_;
  std::vector<Completion> got_;
};

}  // namespace paceline::support
