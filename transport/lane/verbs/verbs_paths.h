// The paths on which a verbs lane writes: a queue pair (UC or RC) for each (peer, connection, entropy), made when the
// first write wants it.
//
// A path outlives its queue pairs. What breaks one (an error, a refusal, want of room) ends it with all that it has on
// its way; the next write opens a new one, and the other side ends the old one before it accepts. So what is written
// later arrives later, or alone: writes of a path keep their order, and no copy of a write that was lost can arrive
// after one that was sent behind it.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/lane/lane.h"
#include "transport/lane/verbs/verbs_card.h"
#include "transport/lane/verbs/verbs_datagrams.h"
#include "transport/lane/verbs/verbs_memory.h"
#include "transport/lane/verbs/verbs_messages.h"
#include "transport/lane/verbs/verbs_peers.h"

namespace paceline {

class VerbsPaths {
 public:
  struct Parts {
    VerbsCard* card = nullptr;
    VerbsMemory* memory = nullptr;
    VerbsDatagrams* datagrams = nullptr;
    VerbsPeers* peers = nullptr;
    LaneCounters* counters = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<VerbsPaths>> Create(const Parts& parts, VerbsService service, uint32_t epoch,
                                                            uint32_t max_write_bytes);
  ~VerbsPaths();
  VerbsPaths(const VerbsPaths&) = delete;
  VerbsPaths& operator=(const VerbsPaths&) = delete;

  // Writes that may be taken now.
  size_t room() const { return free_slots_.size(); }

  // Counts as a drop what cannot be sent. What was taken leaves with Flush. A payload in registered memory is read by
  // the card where it lies, any other is copied; in memory of a GPU by its key alone.
  void Write(const TxSegment& segment, Time now);
  void Flush() { Post(); }
  void OnSent(const ibv_wc& completion);

  // Accept, Refuse, Close of a path that we write on.
  void OnMessage(uint32_t peer, const VerbsMessage& message, Time now);
  // Asks again where no answer came; gives up after a while.
  void Poll(Time now);

  // The card says that the QP is of no more use. False: not one of ours.
  bool OnQpError(const ibv_qp* qp);
  void EndPeer(uint32_t peer);
  void EndConnection(uint32_t peer, uint32_t connection);
  void EndAll();
  // Ends the queue pair of one path; the next write opens another, by another route where the network chooses by flow.
  void Reset(uint32_t peer, uint32_t connection, uint16_t entropy);

  size_t count() const { return by_key_.size(); }

 private:
  static constexpr uint32_t kNoSlot = ~0u;
  static constexpr uint32_t kSignalEvery = 16;
  static constexpr size_t kBatch = 64;
  static constexpr size_t kSlots = 512;
  static constexpr size_t kMostWaiting = 128;

  using Key = std::tuple<uint32_t, uint32_t, uint16_t>;  // peer, connection, entropy
  enum class State : uint8_t { kOpening, kReady, kRefused };

  // A write as the card is told of it.
  struct Request {
    uint64_t address = 0;
    uint32_t bytes = 0;
    uint32_t local_key = 0;
    uint32_t slot = kNoSlot;  // that its payload was copied to
    bool on_device = false;   // the payload is in memory of a GPU
    uint32_t immediate = 0;
    uint64_t remote_address = 0;
    uint32_t remote_key = 0;
  };
  struct Path {
    Key key;
    uint32_t attempt = 0;
    State state = State::kOpening;
    bool full = false;
    bool broken = false;  // the card refused a write; ended with the next Poll
    ibv_qp* qp = nullptr;
    uint32_t inline_bytes = 0;
    uint32_t tries = 0;
    Time next_try;
    Time last_used;
    uint64_t posted = 0;
    uint64_t retired = 0;
    std::vector<uint32_t> slots;   // by posted % writes_per_path
    std::vector<Request> waiting;  // for the answer to Open
  };

  VerbsPaths(const Parts& parts, VerbsService service, uint32_t epoch, uint32_t max_write_bytes)
      : parts_(parts), service_(service), epoch_(epoch), max_write_bytes_(max_write_bytes) {}
  absl::Status Start();
  ibv_qp_type qp_type() const { return service_ == VerbsService::kReliable ? IBV_QPT_RC : IBV_QPT_UC; }
  Path* FindOrOpen(const Key& key, Time now);
  Path* Find(const Key& key);
  bool MakeRoomForPath();
  void SendOpen(Path& path, Time now);
  void SendMessage(const Path& path, VerbsMessageType type);
  std::optional<Request> Prepare(const TxSegment& segment);
  void Append(Path& path, const Request& request);
  void Post();
  void ClearBatch();
  void SetFull(Path& path);
  void End(Path* path, bool tell);
  template <typename Condition>
  void EndIf(const Condition& condition);

  Parts parts_;
  VerbsService service_;
  uint32_t epoch_;
  uint32_t max_write_bytes_;
  ibv_mr* slots_mr_ = nullptr;
  std::vector<uint8_t> slots_;  // where payloads are copied to
  std::vector<uint32_t> free_slots_;
  absl::flat_hash_map<Key, std::unique_ptr<Path>> by_key_;
  absl::flat_hash_map<uint32_t, Path*> by_attempt_;
  Path* last_ = nullptr;  // what was asked for last is asked for again
  uint32_t attempts_ = 0;
  size_t opening_ = 0;
  bool broken_ = false;  // some path is
  Path* batch_path_ = nullptr;
  std::vector<ibv_send_wr> batch_;
  std::vector<ibv_sge> batch_pieces_;
};

}  // namespace paceline
