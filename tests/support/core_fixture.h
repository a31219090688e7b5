// The fixture of the core's unit tests: a scripted world whose hosts keep their completions, helpers that post and
// wait, and the checks that every test ends with (no broken rule, every operation completed at most once, guards
// intact).
//
// Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/guarded_buffer.h"
#include "tests/support/scripted_world.h"
#include "transport/wire/packet.h"

namespace paceline::support {

// On what a test runs.
struct CoreSetup {
  LaneKind lanes = LaneKind::kPackets;
  TestControl control = TestControl::kWindow;
  uint32_t ports = 1;
  bool encrypted = false;       // with a cluster key
  uint32_t burst_segments = 1;  // that a lane wants together: more of them leave and arrive as runs
};
std::string CoreSetupName(const testing::TestParamInfo<CoreSetup>& info);
// Packets and placing lanes, with and without credit, one and two ports; encrypted packets; packets in bursts.
std::vector<CoreSetup> AllCoreSetups();

class CoreFixture : public testing::Test {
 protected:
  // Makes the world and connects hosts 0 and 1 (connections a_ and b_), unless told not to.
  void Start(const WorldOptions& options, bool connect = true);
  void Connect();
  static WorldOptions OptionsFor(const CoreSetup& setup);
  void TearDown() override;

  ScriptedWorld& world() { return *world_; }
  TestHost& host(uint32_t i) { return world_->host(i); }
  Endpoint& endpoint(uint32_t i) { return world_->endpoint(i); }
  ScriptedNetwork& network() { return world_->network(); }
  Time now() const { return world_->now(); }
  // Connection of hosts 0 and 1 as host `i` names it.
  ConnectionId connection(uint32_t i) const { return i == 0 ? a_ : b_; }

  // A buffer that lives as long as the test.
  GuardedBuffer& NewBuffer(size_t bytes);
  GuardedBuffer& NewFilled(size_t bytes, uint64_t pattern);

  // Operations between hosts 0 and 1, posted by `from`. Each gets a number of its own, which is returned; 0 when the
  // post was refused (`result` says why, and the test fails unless it asked for the result).
  uint64_t Send(uint32_t from, GuardedBuffer& buffer, uint64_t tag = 0, PostResult* result = nullptr,
                RegionId region = kUnregistered);
  uint64_t SendToReceive(uint32_t from, GuardedBuffer& buffer, uint64_t tag);
  uint64_t SendUnawaited(uint32_t from, GuardedBuffer& buffer, uint64_t tag);
  uint64_t SendImmediate(uint32_t from, GuardedBuffer& buffer, uint64_t tag, uint64_t immediate);
  uint64_t Receive(uint32_t at, GuardedBuffer& buffer, uint64_t tag = 0, uint64_t ignore = 0,
                   PostResult* result = nullptr, RegionId region = kUnregistered);
  uint64_t Write(uint32_t from, GuardedBuffer& buffer, const RemoteMemory& remote, uint64_t offset = 0,
                 PostResult* result = nullptr, RegionId region = kUnregistered);
  uint64_t WriteImmediate(uint32_t from, GuardedBuffer& buffer, const RemoteMemory& remote, uint64_t offset,
                          uint64_t immediate);
  uint64_t Read(uint32_t from, GuardedBuffer& buffer, const RemoteMemory& remote, uint64_t offset = 0,
                PostResult* result = nullptr);
  uint64_t FetchAdd(uint32_t from, const RemoteMemory& remote, uint64_t offset, uint64_t operand);
  uint64_t CompareSwap(uint32_t from, const RemoteMemory& remote, uint64_t offset, uint64_t compare, uint64_t operand);
  // `request` without its user data.
  uint64_t PostAtomic(uint32_t from, VectorAtomicRequest request, PostResult* result = nullptr);
  uint64_t Flush(uint32_t from);
  bool Cancel(uint32_t at, uint64_t operation);

  // Registers a buffer at host `at` for its peer.
  RemoteMemory Export(uint32_t at, GuardedBuffer& buffer, uint8_t access, RegionId* region = nullptr);

  // The completion of an operation, or nullptr as long as there is none.
  const Completion* Done(uint32_t at, uint64_t operation);
  // Lets time pass until there is one; fails the test after `limit`.
  Completion Await(uint32_t at, uint64_t operation, Duration limit = Duration::Seconds(60));
  void AwaitOk(uint32_t at, uint64_t operation);
  // Until every operation posted so far at both hosts has its completion.
  void AwaitAll(Duration limit = Duration::Seconds(60));
  size_t pending(uint32_t at) const;
  // The first event of this kind on this host's connection.
  const ConnectionEvent* Event(uint32_t at, ConnectionEventKind kind, ConnectionId connection);

  // From now on `hook` sees the packets with payload that host 0 sends, with their headers (of a connection in clear).
  using DataHook = std::function<void(const wire::DataHeader&, NetworkPacket&, Fate&)>;
  void HookData(DataHook hook);

  // One message of `bytes` from `from` to the other host, checked byte by byte.
  void Exchange(uint32_t from, size_t bytes, uint64_t tag = 0);

  std::unique_ptr<ScriptedWorld> world_;
  ConnectionId a_ = kNoConnection;
  ConnectionId b_ = kNoConnection;

 private:
  struct Posted {
    OperationId id = 0;
    uint8_t* lent = nullptr;  // memory that the operation may write
    size_t lent_bytes = 0;
    uint32_t completions = 0;
  };
  uint64_t Note(uint32_t at, PostResult got, PostResult* wanted, Posted posted);
  void Keep(uint32_t at, const Completion& completion);

  uint64_t next_operation_ = 1;
  std::map<uint64_t, Posted> posted_[2];
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;
  bool hca_ = false;
  uint32_t ports_ = 1;
};

// The same with a setup as parameter: connected when the test starts.
class CoreSetupTest : public CoreFixture, public testing::WithParamInterface<CoreSetup> {
 protected:
  void SetUp() override { Start(OptionsFor(GetParam())); }
};

}  // namespace paceline::support
