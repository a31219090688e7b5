// The queue pairs on which others write to us: one for each path of a peer, made when it asks (verbs_messages.h).
//
// A QP that has ended is stopped at once and kept for a while: a card may give the number of one that is gone to the
// next, and a write does not say which QP it comes from, so one that comes late would be taken for the next one's.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "transport/base/time.h"
#include "transport/lane/verbs/verbs_address.h"
#include "transport/lane/verbs/verbs_card.h"
#include "transport/lane/verbs/verbs_messages.h"

namespace paceline {

class VerbsTargets {
 public:
  VerbsTargets(VerbsCard* card, uint32_t most) : card_(card), most_(most) {}
  ~VerbsTargets();
  VerbsTargets(const VerbsTargets&) = delete;
  VerbsTargets& operator=(const VerbsTargets&) = delete;

  // Whose write arrived on a QP; nothing: none of ours any more.
  struct Writer {
    uint32_t connection = 0;
    uint16_t entropy = 0;
  };
  std::optional<Writer> OnArrival(uint32_t qp_number, Time now);

  // Open and Close of a path that `source` writes on. What is to be answered, if anything.
  std::optional<VerbsMessage> OnMessage(const VerbsAddress& source, const VerbsMessage& message, Time now);

  // The card says that the QP is of no more use. What to tell whom.
  struct Notice {
    VerbsAddress to;
    VerbsMessage message;
  };
  std::optional<Notice> OnQpError(const ibv_qp* qp, Time now);

  // Nothing that was on its way to a QP of this connection is placed from here on. What had been placed is still told
  // by OnArrival until EndStopped, which ends these QPs and no others. False: the card has not stopped them all.
  bool Stop(uint32_t connection);
  void EndStopped(uint32_t connection, Time now);

  // Lets go of QPs that were stopped long ago. Not between taking a completion from the card and OnArrival.
  void Poll(Time now);

 private:
  struct Target {
    VerbsAddress source;
    VerbsMessage opened;  // as the writer asked
    VerbsMessage answer;
    ibv_qp* qp = nullptr;
    Time last_used;
    bool stopped = false;  // by Stop
  };
  struct Key {
    LaneAddress source;
    uint32_t connection = 0;
    uint16_t entropy = 0;
    bool operator==(const Key&) const = default;
    template <typename Hash>
    friend Hash AbslHashValue(Hash hash, const Key& key) {
      return Hash::combine(std::move(hash), key.source.bytes, key.connection, key.entropy);
    }
  };
  static Key KeyOf(const Target& target) {
    return {ToLaneAddress(target.source), target.opened.connection, target.opened.entropy};
  }
  struct Stopped {
    ibv_qp* qp = nullptr;
    Time at;
  };
  // None of its writes is placed from here on. False: the card has not stopped it, so it may still place what comes,
  // and stays, to be tried again and to be known to Stop.
  bool End(Target* target, Time now);
  void DestroyOldest();
  bool MakeRoom(Time now);

  VerbsCard* card_;
  uint32_t most_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Target>> by_qp_;
  absl::flat_hash_map<Key, Target*> by_key_;
  std::deque<Stopped> stopped_;  // the oldest first
  Target* last_ = nullptr;       // what one write arrived on the next arrives on
};

}  // namespace paceline
