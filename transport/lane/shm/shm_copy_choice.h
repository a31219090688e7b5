// How a writer copies large payloads into its ring: through the caches, or past them.
//
// Where both processes share a cache, a line of the ring goes from one to the other by it, and the reader has it
// sooner. Where they do not (two sockets, two clusters of cores), each plain store first fetches its line from the
// reader, and takes ten times as long as one that streams to memory (docs/lanes/shm.md has figures). Which of the two
// it is changes when a scheduler moves a process, and a virtual machine does not tell. So it is found out: some copies
// are timed, and some of these are done the other way.
//
// A line that has gone to memory is as slow to store to once where they share a cache: copies through the caches count
// only when the lap of the ring before was of their kind. Hence trials of a whole lap, as rare as they are long.
//
// Pure logic: who copies measures. Thread rule: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/base/time.h"

namespace paceline {

class ShmCopyChoice {
 public:
  enum class Way : uint8_t { kCached, kStreaming };

  static constexpr uint32_t kLeastBytes = 2048;   // of payloads that have a choice
  static constexpr uint32_t kTimedEvery = 37;     // copies; not as many as a lap has: that before may have streamed
  static constexpr uint32_t kStreamedEvery = 64;  // timed copies, while most go through the caches
  static constexpr uint64_t kTrialEvery = 512;    // laps of the ring, while most go past them
  static constexpr int kLeave = 4;                // the caches: where they take more than so many times as long
  static constexpr int kReturn = 3;               // to them: where they take no more than so many times as long

  struct Turn {
    Way way = Way::kCached;
    bool is_timed = false;  // Note is to be told what it took
  };

  explicit ShmCopyChoice(uint64_t ring_bytes) : ring_bytes_(ring_bytes) {}

  // The next copy, of so many bytes.
  Turn Next(uint32_t bytes);
  // The copy that was the last turn. `bytes` > 0.
  void Note(Way way, uint32_t bytes, Duration took);

  // What most copies do now.
  Way way() const { return way_; }

 private:
  // The last of one way.
  class Samples {
   public:
    void Add(int64_t picos_per_byte) { picos_per_byte_[taken_++ % kCount] = picos_per_byte; }
    bool enough() const { return taken_ >= kCount; }
    int64_t Median() const;

    static constexpr size_t kCount = 7;  // so many that a few that were interrupted decide nothing

   private:
    std::array<int64_t, kCount> picos_per_byte_{};
    size_t taken_ = 0;
  };

  void Begin(Way way);

  uint64_t ring_bytes_;
  Samples cached_, streaming_;
  Way way_ = Way::kCached;
  uint32_t copies_ = 0;
  uint32_t timed_ = 0;
  uint64_t first_lap_bytes_ = 0;
  uint64_t streamed_bytes_ = 0;  // since it began or the last trial ended
  uint64_t trial_bytes_ = 0;
  size_t trial_samples_ = 0;
};

}  // namespace paceline
