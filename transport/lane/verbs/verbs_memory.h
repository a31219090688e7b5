// Memory that the card knows: what the transport registered, as the target of peers' writes and, where payloads of our
// own writes lie in it, as their source.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "transport/lane/verbs/verbs_card.h"

namespace paceline {

class VerbsMemory {
 public:
  explicit VerbsMemory(VerbsCard* card) : card_(card) {}
  ~VerbsMemory();
  VerbsMemory(const VerbsMemory&) = delete;
  VerbsMemory& operator=(const VerbsMemory&) = delete;

  // The card's key for peers, with a bit that makes it differ from 0; 0: the card does not take this memory, and
  // problem() says why. Memory of a GPU is registered by its dma-buf, or without one by its address, for which the
  // kernel needs a module that knows it (nvidia_peermem).
  uint64_t Register(const LaneMemory& memory);
  const std::string& problem() const { return problem_; }
  // When it returns, no write with this key places anything.
  void Deregister(uint64_t key);
  static uint32_t RemoteKey(uint64_t key) { return static_cast<uint32_t>(key); }

  // The card's local key of bytes of host memory that lie in one registration.
  std::optional<uint32_t> LocalKey(const uint8_t* data, size_t bytes) const;
  // That of the registration with this key.
  std::optional<uint32_t> LocalKeyOf(uint64_t key) const;

 private:
  VerbsCard* card_;
  absl::flat_hash_map<uint64_t, ibv_mr*> by_key_;
  std::multimap<uintptr_t, ibv_mr*> by_base_;  // host memory alone: of a GPU's no address is looked up
  std::string problem_;
  mutable const ibv_mr* last_ = nullptr;  // what was asked for last is asked for again
};

}  // namespace paceline
