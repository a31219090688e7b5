// A lane around another lane that makes its network a bad one: packets that arrive are lost, doubled, delayed,
// reordered or damaged, at random from a seed. For tests and experiments on real networks; the simulated fabric has its
// own faults.
//
// Everything happens on arrival, where the time is known and where sending in bursts is not disturbed; with both ends
// impaired, both directions are. Writes placed by a remote card cannot be taken back and pass untouched.
//
// Thread rule: as every lane. Ownership: owns the inner lane, and copies of the packets that it holds back (at most
// kMaxHeld; what comes beyond is dropped and counted).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/random.h"
#include "transport/lane/impair/impairment.h"
#include "transport/lane/lane.h"

namespace paceline {

struct ImpairCounters {
  uint64_t lost_packets = 0, lost_bytes = 0;  // bytes: headers and payload
  uint64_t duplicated_packets = 0, reordered_packets = 0;
  uint64_t corrupted_packets = 0, corrupted_bytes = 0;
};

class ImpairLane final : public Lane {
 public:
  static constexpr size_t kMaxHeld = 65536;

  static absl::StatusOr<std::unique_ptr<ImpairLane>> Create(std::unique_ptr<Lane> inner, const Impairment& impairment);
  ~ImpairLane() override;

  const ImpairCounters& impair_counters() const { return impaired_; }

  std::string_view name() const override { return name_; }
  const LaneCapabilities& capabilities() const override { return capabilities_; }
  const LaneAddress& address() const override { return inner_->address(); }
  LaneStatus status() const override { return inner_->status(); }
  const LaneCounters& counters() const override { return inner_->counters(); }
  uint32_t OpenPeer(const LaneAddress& address) override { return inner_->OpenPeer(address); }
  void ClosePeer(uint32_t peer) override { inner_->ClosePeer(peer); }
  size_t room() const override { return inner_->room(); }
  size_t RoomTo(uint32_t peer) override { return inner_->RoomTo(peer); }
  size_t Send(std::span<const TxSegment> segments) override { return inner_->Send(segments); }
  size_t Receive(std::span<RxSegment> out, Time now) override;
  uint64_t RegisterMemory(const LaneMemory& memory) override { return inner_->RegisterMemory(memory); }
  void DeregisterMemory(uint64_t key) override { inner_->DeregisterMemory(key); }
  // What is damaged or held up here the processor has to read.
  bool LendMemory(const LaneMemory& memory) override { return !memory.on_device() && inner_->LendMemory(memory); }
  void ReturnMemory(const LaneMemory& memory) override { inner_->ReturnMemory(memory); }
  std::string memory_problem() const override { return inner_->memory_problem(); }
  void ResetPath(uint32_t peer, uint32_t connection, uint16_t entropy) override {
    inner_->ResetPath(peer, connection, entropy);
  }
  void EndWrites(uint32_t peer, uint32_t connection) override { inner_->EndWrites(peer, connection); }
  void FenceWrites(uint32_t connection) override { inner_->FenceWrites(connection); }
  // Also readable when a packet that was held back is due.
  int wait_descriptor() const override { return epoll_; }
  bool PrepareToWait() override { return inner_->PrepareToWait(); }

 private:
  struct Held {
    Time due;
    uint64_t order = 0;  // among equal times: first come, first out
    RxSegment segment;
    LaneAddress source;
    std::vector<uint8_t> bytes;
  };

  ImpairLane(std::unique_ptr<Lane> inner, const Impairment& impairment);
  absl::Status OpenDescriptors();
  void Hold(const RxSegment& segment, Time due);
  bool Pass(RxSegment& segment, Time now);
  size_t TakeDue(std::span<RxSegment> out, Time now);
  void SetTimer();

  std::unique_ptr<Lane> inner_;
  Impairment impairment_;
  std::string name_;
  LaneCapabilities capabilities_;
  Random random_;
  ImpairCounters impaired_;
  std::vector<std::unique_ptr<Held>> held_;       // a heap, earliest first
  std::vector<std::unique_ptr<Held>> delivered_;  // given out by the last Receive
  std::vector<std::unique_ptr<Held>> spare_;
  uint64_t next_order_ = 0;
  int epoll_ = -1;
  int timer_ = -1;
  Time timer_at_ = Time::Never();
};

}  // namespace paceline
