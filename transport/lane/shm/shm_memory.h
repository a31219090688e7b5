// The memory of one ring: made by its writer, passed to its reader as a descriptor, mapped by both. It has no name, so
// nothing is left behind when both are gone, however they end. Its size is sealed: the other side can change what is in
// it, but cannot take it away.
//
// Thread rule: a ShmMemory belongs to whoever holds it.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "transport/lane/file_descriptor.h"
#include "transport/lane/shm/shm_ring.h"

namespace paceline {

class ShmMemory {
 public:
  static constexpr uint64_t kLeastRing = 1 << 16;  // bytes; rings are powers of two
  static constexpr uint64_t kMostRing = 1 << 26;

  // New memory for a ring, and in `descriptor` what the reader maps.
  static absl::StatusOr<ShmMemory> Create(uint64_t ring_bytes, FileDescriptor* descriptor);
  // The reader's: refused unless it is memory of that size which can neither shrink nor grow.
  static absl::StatusOr<ShmMemory> Map(const FileDescriptor& descriptor, uint64_t ring_bytes);

  ShmMemory(ShmMemory&& other) noexcept;
  ShmMemory& operator=(ShmMemory&& other) noexcept;
  ~ShmMemory();

  const ShmRingMemory& ring() const { return ring_; }

 private:
  ShmMemory() = default;
  ShmRingMemory ring_;
};

}  // namespace paceline
