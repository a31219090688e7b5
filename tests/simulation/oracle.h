// What must hold of the operations of one connection, whatever happens to the network: every byte exactly once and
// intact, nothing outside its buffer, order per tag, exactly one completion each, with the status that it may have.
// It posts the operations and is told of the completions.
//
// Thread rule: one thread. Hosts must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/scenario.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/test_host.h"
#include "transport/base/random.h"

namespace paceline::simulation {

class SharedReceives;

inline constexpr uint64_t kTags = 4;  // sends have one below, but for those whose receives are held back
inline constexpr uint64_t kHeldTag = kTags + 1;

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

  // All before anything is posted. `shared`: receives of the connection are posted there; nullptr: here.
  void SetPeer(Side* peer) { peer_ = peer; }
  void SetConnection(ConnectionId connection, SharedReceives* shared);
  ConnectionId connection() const { return connection_; }
  support::TestHost* host() const { return host_; }

  // Posts one more of the planned operations; false when all are posted, or the bound was reached this time.
  bool PostNext();
  bool all_posted() const;
  // Posts receives that no message will meet until told to try again; false: the connection is over, or shares its
  // receives. MakeRoom cancels them.
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
  bool failure_allowed() const { return failure_allowed_; }
  SharedReceives* shared_receives() const { return shared_; }

  // What arrives: a receive has ended well and has this message of the peer in `data`, where there is room for `room`
  // bytes. What is wrong with it goes to `finding`. The message's number at the peer; 0: nobody sent it.
  uint64_t TakeMessage(const Completion& completion, const uint8_t* data, uint64_t room,
                       const std::function<void(const std::string&)>& finding);
  // A message that the peer has sent, by its number.
  struct Message {
    uint64_t bytes = 0;
    uint64_t tag = 0;
    bool taken = false;  // by TakeMessage
  };
  std::optional<Message> FindMessage(uint64_t number) const;
  // The number that what the peer posts next will have at least.
  uint64_t next_message() const { return peer_->next_number_; }
  // How many of the peer's sends have not been taken and may still come.
  size_t messages_to_come() const;

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
    Offer* offer = nullptr;       // the peer's memory that it is about; null: the region that lasts
    bool revoked_before = false;  // that memory was taken back before this was posted
    uint64_t offset = 0;          // in the remote memory
    uint64_t operand = 0, compare = 0;
    bool immediate = false;
    bool cancelled = false;  // Cancel said that it will be
    bool done = false;
    bool ok = false;          // done, and it went well
    bool told = false;        // at the target: an immediate
    bool place_free = false;  // of a write: its target uses the memory otherwise
    RegionId region = kUnregistered;
    std::unique_ptr<support::GuardedBuffer> buffer;
  };

  std::string Name(const Posted& posted) const;
  void Finding(const Posted& posted, const std::string& what);
  void WantReceive(uint64_t tag);
  Posted NewPosted(Operation operation, size_t bytes);
  PostResult Post(Posted& posted);
  void MakeOffer();
  // The peer's memory for this write or read is one that will be, or has been, taken back.
  void Aim(Posted* posted);
  RemoteMemory TargetOf(const Posted& posted) const;
  uint8_t* PlaceOf(const Posted& posted) const;
  void FreePlace(Posted& posted);
  void CheckOk(Posted& posted, const Completion& completion);
  void CheckReceive(Posted& posted, const Completion& completion);

  const Scenario& scenario_;
  const uint32_t number_;  // of the side: makes patterns differ
  support::TestHost* host_;
  Findings* findings_;
  Random* random_;
  Side* peer_ = nullptr;
  SharedReceives* shared_ = nullptr;
  ConnectionId connection_ = kNoConnection;

  uint32_t planned_ = 0;                   // operations to be posted, receives apart
  uint32_t held_sends_ = 0;                // of those posted
  uint32_t held_receives_ = 0;             // wanted, and to be posted after all else
  uint32_t flushes_ = 0;                   // posted since the first held send, for which they wait
  std::vector<uint64_t> receives_wanted_;  // tags of what the peer has sent or will send, unless receives are shared
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
