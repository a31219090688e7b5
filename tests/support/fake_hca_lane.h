// A lane that behaves as an RDMA card does, over the scripted network: a write is placed into registered memory the
// moment it lands, without asking the endpoint, which learns only (connection, immediate, length, path). What the
// network drops is gone without a word. One path keeps its order, as one queue pair does; when a path is reset, its
// writes take another way, and once the first of them has come, what is left on the old way is refused. A fence refuses
// what is under way on all ways that were opened before it.
//
// Memory of a GPU it reaches through its dma-buf alone, as a payload by the key that the segment names.
//
// It also watches the safety rule: memory that the user has got back (a completion was polled) must not be written any
// more. The harness says which memory that is with Protect and lifts it with Unprotect when the user lends it again.
// Breaking the rule is noted as a violation of the network.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "tests/support/scripted_lane.h"

namespace paceline::support {

// Capabilities of a placing lane in tests: 4 KB writes, 16 paths, no marks and no trimming seen.
LaneCapabilities HcaLaneCapabilities();

class FakeHcaLane final : public ScriptedLane {
 public:
  FakeHcaLane(ScriptedNetwork* network, const LaneCapabilities& capabilities) : ScriptedLane(network, capabilities) {}
  ~FakeHcaLane() override;

  uint64_t RegisterMemory(const LaneMemory& memory) override;
  void DeregisterMemory(uint64_t key) override;

  void ResetPath(uint32_t peer, uint32_t connection, uint16_t entropy) override {
    GiveUp(ways_[{peer, connection, entropy}]);
  }
  void EndWrites(uint32_t peer, uint32_t connection) override;
  void FenceWrites(uint32_t connection) override;

  // What becomes of fences; a card is to keep what it says.
  enum class Fences : uint8_t {
    kHold,
    kNever,   // it cannot promise them, and says nothing
    kBroken,  // it says that they hold, and they do not
  };
  void set_fences(Fences fences) { fences_ = fences; }

  // From here on it registers no memory of GPUs.
  void RefuseDevices() { refuses_devices_ = true; }

  void Protect(const void* base, size_t bytes);
  void Unprotect(const void* base, size_t bytes);

  size_t regions() const { return regions_.size(); }
  uint64_t writes_placed() const { return writes_placed_; }
  // Writes that named no region of this card (revoked in the meantime), or left its bounds: refused by the card.
  uint64_t writes_refused() const { return writes_refused_; }
  // Calls of EndWrites, and of FenceWrites.
  uint64_t writes_ended() const { return writes_ended_; }
  uint64_t writes_fenced() const { return writes_fenced_; }

 private:
  struct Region {
    uintptr_t base = 0;
    size_t bytes = 0;
    uint8_t* reach = nullptr;   // where the card finds the bytes
    uint8_t* mapped = nullptr;  // of a dma-buf, from its beginning
    size_t mapped_bytes = 0;

    bool Holds(uint64_t address, uint64_t count) const {
      return address >= base && count <= bytes && address - base <= bytes - count;
    }
  };
  static void Unmap(const Region& region);
  // One after the other, of a path.
  struct Way {
    uint32_t number = 0;
    uint64_t opened = 0;  // NetworkPacket::opened
    bool open = false;
  };
  static void GiveUp(Way& way) {
    ++way.number;
    way.open = false;
  }
  bool Place(const NetworkPacket& packet) override;
  const uint8_t* PayloadOf(const TxSegment& segment) override;
  void TakeWay(const TxSegment& segment, NetworkPacket& packet) override;

  std::map<uint64_t, Region> regions_;
  std::map<uintptr_t, size_t> protected_;                                    // start to length, disjoint
  std::map<std::tuple<uint32_t, uint32_t, uint16_t>, Way> ways_;             // by peer, connection, entropy
  std::map<std::tuple<uint32_t, uint32_t, uint16_t>, uint32_t> newest_way_;  // that came, by port, connection, entropy
  std::map<uint32_t, uint64_t> fenced_;  // by connection: ways that were opened before are refused
  Fences fences_ = Fences::kHold;
  bool refuses_devices_ = false;
  uint64_t next_key_ = 0x1001;
  uint64_t writes_placed_ = 0;
  uint64_t writes_refused_ = 0;
  uint64_t writes_ended_ = 0;
  uint64_t writes_fenced_ = 0;
};

}  // namespace paceline::support
