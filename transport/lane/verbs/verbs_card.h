// An open RDMA card as the lane uses it: one port, a protection domain, one completion queue with its channel, and the
// receive queue that all paths share. Makes queue pairs and takes them through their states.
//
// Thread rule: the engine's thread. Ownership: whoever makes a QP, an address handle or a registration ends it before
// the card goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/lane/card_clock.h"
#include "transport/lane/lane.h"
#include "transport/lane/verbs/verbs_address.h"
#include "transport/lane/verbs/verbs_calls.h"
#include "transport/lane/verbs/verbs_devices.h"

namespace paceline {

// What a work request was for, in the highest byte of its identifier; the rest is the maker's.
// kFenced is the lane's own, and no card's: VerbsCard::PutBehind.
enum class VerbsWork : uint8_t { kNothing, kDatagramSent, kDatagramArrived, kWriteSent, kWriteArrived, kFenced };
inline uint64_t WorkId(VerbsWork work, uint64_t rest) { return uint64_t{static_cast<uint8_t>(work)} << 56 | rest; }
inline VerbsWork WorkOf(uint64_t id) { return static_cast<VerbsWork>(id >> 56); }
inline uint64_t WorkRest(uint64_t id) { return id & ((uint64_t{1} << 56) - 1); }

// Of the datagram QPs of all lanes: who does not know it sends them nothing.
inline constexpr uint32_t kVerbsQueueKey = 0x50414345;

struct VerbsCardOptions {
  uint32_t datagrams_out = 256;    // of one lane, on their way to the card
  uint32_t datagrams_in = 512;     // buffers for datagrams that arrive
  uint32_t arrivals = 4096;        // receives for writes that arrive, shared by all paths
  uint32_t writes_per_path = 128;  // on their way to the card
  uint32_t targets = 1024;         // paths on which peers write to us
  uint32_t paths = 256;       // on which we write; fewer where the card's completion queue is too short for all of them
  uint8_t traffic_class = 0;  // of all that leaves, in the IP header or the GRH; without the two bits of ECN
};

class VerbsCard {
 public:
  // Opens the card. `options` are cut to what it can do.
  static absl::StatusOr<std::unique_ptr<VerbsCard>> Open(VerbsCalls& calls, const VerbsPort& port,
                                                         const VerbsCardOptions& options);
  ~VerbsCard();
  VerbsCard(const VerbsCard&) = delete;
  VerbsCard& operator=(const VerbsCard&) = delete;

  VerbsCalls& calls() const { return *calls_; }
  ibv_context* context() const { return context_; }
  ibv_pd* pd() const { return pd_; }
  ibv_cq* cq() const { return cq_; }
  ibv_comp_channel* channel() const { return channel_; }
  const VerbsPort& port() const { return port_; }
  const VerbsCardOptions& options() const { return options_; }

  // The error names the call and what the card said.
  absl::StatusOr<ibv_mr*> Register(void* base, size_t bytes, int access);
  // The same for memory in a dma-buf, of which the card uses the addresses from memory.base on.
  absl::StatusOr<ibv_mr*> RegisterDmaBuf(const LaneMemory& memory, int access);

  // A QP for datagrams, with receives of its own, ready to send. `inline_bytes`: how many bytes a datagram may carry
  // in its work request.
  absl::StatusOr<ibv_qp*> MakeDatagramQp(uint32_t* inline_bytes);
  // Takes it back to its beginning and makes it ready again: nothing is posted to it.
  absl::Status StartDatagramQp(ibv_qp* qp);
  // A connected QP (IBV_QPT_UC or IBV_QPT_RC) in the state INIT.
  absl::StatusOr<ibv_qp*> MakePathQp(ibv_qp_type type, uint32_t* inline_bytes);
  struct Remote {
    VerbsGid gid{};
    uint16_t lid = 0;
    uint32_t qp_number = 0;
    uint32_t psn = 0;  // what the peer's first packet has
    uint32_t mtu = 0;  // bytes
    uint32_t flow_label = 0;
  };
  absl::Status ReadyToReceive(ibv_qp* qp, ibv_qp_type type, const Remote& remote);
  absl::Status ReadyToSend(ibv_qp* qp, ibv_qp_type type, uint32_t psn, uint32_t flow_label);
  // Nothing that was on its way to this QP is taken in from here on. False: the card has not done it, so it is not
  // known.
  bool Stop(ibv_qp* qp);
  void Destroy(ibv_qp* qp) { calls_->DestroyQp(qp); }

  // The next completions, at most as many as `out` holds.
  size_t Poll(std::span<VerbsCompletion> out);
  // Takes in all completions that there are now; Poll hands them out. False: there were none.
  bool Drain();
  // Poll hands it out, as a completion with this identifier, behind all that there are now.
  void PutBehind(uint64_t id);
  // What Drain has taken in and Poll has not handed out.
  std::span<VerbsCompletion> drained() { return std::span(drained_).subspan(drained_next_); }

  // Whether completions have times by the card's clock.
  bool timed() const { return clock_.has_value(); }
  // Compares that with the host's, on timed cards: to be called every few milliseconds, and after a sleep.
  void ReadClock();
  // When a completion without an error came, on timed cards; never after `now`. Else `now`.
  Time CameAt(const VerbsCompletion& completion, Time now) const {
    return timed() ? std::min(clock_->ToHost(completion.ticks), now) : now;
  }

  // `flow_label`: see verbs_flow.h; on InfiniBand without meaning. `ecn_capable`: switches may mark what goes there.
  ibv_ah_attr Route(const VerbsGid& gid, uint16_t lid, uint32_t flow_label, bool ecn_capable) const;

  // Posts receives for writes until there are options().arrivals of them.
  void RefillArrivals();
  void OnWriteArrived() { --arrivals_posted_; }

 private:
  VerbsCard(VerbsCalls& calls, const VerbsPort& port) : calls_(&calls), port_(port) {}
  absl::Status Start(const VerbsCardOptions& options);
  // nullptr: its completions have no times.
  ibv_cq* MakeTimedCq(int entries);
  size_t PollCard(std::span<VerbsCompletion> out);
  // Fills in how many bytes a work request may carry; nullptr with errno.
  ibv_qp* CreateQp(ibv_qp_init_attr* init);
  void ChooseUdpPort(ibv_qp* qp, uint32_t flow_label);

  VerbsCalls* calls_;
  VerbsPort port_;
  VerbsCardOptions options_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  uint32_t arrivals_posted_ = 0;
  std::optional<CardClock> clock_;
  std::vector<VerbsCompletion> drained_;
  size_t drained_next_ = 0;
  bool takes_udp_ports_ = true;  // as far as is known
};

}  // namespace paceline
