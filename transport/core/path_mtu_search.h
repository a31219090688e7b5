// How large packets may be on the way to a peer, found while a connection is being set up: requests of several sizes go
// out, and the answer to each has its size, so what comes back has passed both ways. It is what RFC 8899 (DPLPMTUD)
// does for connections that stand, but in rounds of several sizes, and without waiting where the port's largest passes.
//
// A round has the plain request, the largest size that has passed, up to six between that and the smallest that has
// not, and that one again: what was lost by chance has another go in each round. A round ends some time after its first
// answer, never without one, so a peer that is slow or away is not taken for a narrow path.
//
// Thread rule: the endpoint's thread. Sizes are bytes of whole packets, as LaneCapabilities::max_packet_bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace paceline {

class PathMtuSearch {
 public:
  // `plain`: of the request as it is. `most`: of the port, or the same as `plain` where nothing is to be found out.
  PathMtuSearch(uint32_t plain, uint32_t most);

  // The next size to send in this round, smallest first; 0: all are sent. Next() is for when one is.
  uint32_t next() const { return sent_ < count_ ? sizes_[sent_] : 0; }
  void Next() { ++sent_; }

  // An answer came, to whatever round.
  void OnAnswer(uint32_t bytes);
  // In this round.
  bool answered() const { return answered_; }

  // What was not answered by now has not passed; another round begins, unless it is done.
  void EndRound();
  // Nothing was answered: the same once more.
  void RepeatRound() { sent_ = 0; }
  // Some round was answered.
  bool under_way() const { return rounds_ > 0; }

  bool done() const { return done_; }
  // The largest packets that pass, as far as is known.
  uint32_t found() const { return passed_; }

 private:
  static constexpr uint32_t kBetween = 6;      // sizes of a round between the two known ones
  static constexpr uint32_t kMostRounds = 16;  // 64 KB takes 9 when nothing is lost

  void BeginRound();

  uint32_t plain_, most_;
  uint32_t passed_;        // the largest that has
  uint32_t refused_;       // the smallest above it that has not, or the largest that there is
  uint32_t refusals_ = 0;  // rounds in a row in which that one did not
  uint32_t rounds_ = 0;
  bool answered_ = false;
  bool done_ = false;
  std::array<uint32_t, kBetween + 3> sizes_{};  // of this round, each larger than the one before
  size_t count_ = 0;
  size_t sent_ = 0;
};

}  // namespace paceline
