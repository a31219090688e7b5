// What must hold of the operations of one connection, whatever happens to the network: every byte exactly once and
// intact, nothing outside its buffer, order per tag, exactly one completion each, with the status that it may have.
// It posts the operations and is told of the completions.
//
// Thread rule: one thread. Hosts must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/scenario.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/test_host.h"
#include "transport/base/random.h"

namespace paceline::simulation {

// Where findings of all oracles of a run are collected.
struct Findings {
  std::vector<std::string> all;
  void Note(std::string what) {
    if (all.size() < 50) all.push_back(std::move(what));
  }
};

// One side of one connection: what it posts, and the memory that its peer reads and writes.
class Side {
 public:
  Side(const Scenario& scenario, uint32_t number, support::TestHost* host, Findings* findings, Random* random);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // Both before anything is posted.
  void SetPeer(Side* peer) { peer_ = peer; }
  void SetConnection(ConnectionId connection);
  ConnectionId connection() const { return connection_; }
  support::TestHost* host() const { return host_; }

  // Posts one more of the planned operations; false when all are posted, or the bound was reached this time.
  bool PostNext();
  bool all_posted() const { return planned_ == 0 && receives_wanted_.empty() && retry_ == nullptr; }
  // Posts receives that no message will meet until told to try again; false: the connection is over. MakeRoom cancels
  // them.
  bool FillUp();
  void MakeRoom();
  // Takes back the memory that was offered to the peer for a while, whatever the peer is doing with it, and offers
  // other memory.
  void Revoke();
  // Takes back a registered buffer of some operation under way; that may end the connection.
  void DeregisterSome();
  // Cancels a random operation that is under way.
  void CancelSome();
  // Ends what can never complete by itself: receives whose message is not coming. True if there was any.
  bool CancelLeftovers();
  size_t pending() const { return pending_; }
  // Without receives: what may wait for a message that was cancelled.
  size_t pending_without_receives() const;

  // From now on operations may end with these statuses too: the connection is being closed, or the peer is gone.
  void AllowFailure() { failure_allowed_ = true; }
  void OnCompletion(const Completion& completion);
  void OnClosed(CloseReason reason);
  bool closed() const { return closed_; }

  // When all is done: buffers untouched since, atomics add up, order per tag.
  void CheckAtEnd();
  // Payload bytes that this side's peer was to receive by sends and writes, and that it read itself.
  uint64_t payload_bytes() const { return payload_bytes_; }
  uint64_t writes_with_immediate_told() const { return told_; }

 private:
  // Memory for the peer that is taken back while it is in use: slots to write, each once, and contents to read.
  struct Offer {
    explicit Offer(size_t bytes) : memory(bytes) {}
    support::GuardedBuffer memory;
    RegionId region = kUnregistered;
    RemoteMemory remote;  // as it was exported: who has it keeps it beyond the end
    uint64_t next_slot = 0;
    bool revoked = false;
  };
  struct Posted {
    Operation operation = Operation::kSend;
    OperationId id = 0;
    uint64_t number = 0;  // of the operation at this side; pattern of its contents
    uint64_t order = 0;   // posting order among those that a flush waits for
    uint64_t tag = 0;
    const Offer* offer = nullptr;  // the peer's memory that it is about; null: the region that lasts
    bool revoked_before = false;   // that memory was taken back before this was posted
    uint64_t offset = 0;           // in the remote memory
    uint64_t operand = 0, compare = 0;
    bool immediate = false;
    bool cancelled = false;  // Cancel said that it will be
    bool done = false;
    RegionId region = kUnregistered;
    std::unique_ptr<support::GuardedBuffer> buffer;
  };

  std::string Name(const Posted& posted) const;
  void Finding(const Posted& posted, const std::string& what);
  Posted NewPosted(Operation operation, size_t bytes);
  PostResult Post(Posted& posted);
  void MakeOffer();
  // The peer's memory for this write or read is one that will be, or has been, taken back.
  void Aim(Posted* posted);
  RemoteMemory TargetOf(const Posted& posted) const;
  const uint8_t* PlaceOf(const Posted& posted) const;
  void CheckOk(Posted& posted, const Completion& completion);
  void CheckReceive(Posted& posted, const Completion& completion);

  const Scenario& scenario_;
  const uint32_t number_;  // of the side: makes patterns differ
  support::TestHost* host_;
  Findings* findings_;
  Random* random_;
  Side* peer_ = nullptr;
  ConnectionId connection_ = kNoConnection;

  uint32_t planned_ = 0;                   // operations to be posted, receives apart
  std::vector<uint64_t> receives_wanted_;  // tags of what the peer has sent or will send
  std::map<uint64_t, Posted> posted_;      // by number
  std::unique_ptr<Posted> retry_;          // was told to try again
  uint64_t next_number_ = 1;
  uint64_t next_order_ = 0;
  size_t pending_ = 0;
  bool failure_allowed_ = false;
  bool closed_ = false;
  uint64_t payload_bytes_ = 0;
  uint64_t told_ = 0;

  // Memory for the peer: slots that it writes (each once), contents that it reads, two words for atomics.
  support::GuardedBuffer memory_;
  RegionId region_ = kUnregistered;
  std::vector<std::unique_ptr<Offer>> offers_;          // the last one is good
  uint64_t next_slot_ = 0;                              // of the peer's memory, given to our writes
  std::vector<std::pair<uint64_t, uint64_t>> matches_;  // receive number, peer's send number
  std::map<uint64_t, bool> received_;                   // by the peer's send number
};

}  // namespace paceline::simulation
