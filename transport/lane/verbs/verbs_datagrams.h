// Datagrams (UD) of a verbs lane: the transport's packets, and the lane's own few messages (verbs_messages.h). Both are
// SENDs; the lane's own carry an immediate, packets none.
//
// Thread rule: the engine's thread. Nothing is allocated once it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/lane/verbs/verbs_card.h"

namespace paceline {

class VerbsDatagrams {
 public:
  static absl::StatusOr<std::unique_ptr<VerbsDatagrams>> Create(VerbsCard* card);
  ~VerbsDatagrams();
  VerbsDatagrams(const VerbsDatagrams&) = delete;
  VerbsDatagrams& operator=(const VerbsDatagrams&) = delete;

  uint32_t qp_number() const { return qp_->qp_num; }
  // Header and payload of the largest.
  uint32_t max_bytes() const { return card_->port().mtu; }

  // Datagrams of the transport that may be sent now; some room beyond it is the lane's own.
  size_t room() const {
    const size_t free = card_->options().datagrams_out - in_flight();
    return free > kOwn ? free - kOwn : 0;
  }

  struct To {
    ibv_ah* route = nullptr;
    uint32_t qp_number = 0;
  };
  // Copies. False: no room at all, or too long. What was sent leaves with Flush. Whether switches may mark it the route
  // says.
  bool Send(const To& to, std::span<const uint8_t> header, std::span<const uint8_t> payload, bool own);
  void Flush();
  void OnSent(const ibv_wc& completion);

  struct Arrived {
    std::span<uint8_t> bytes;
    VerbsAddress source;
    bool own = false;
    bool marked = false;  // a switch on the way was congested (ECN)
  };
  // What a completion brought; its bytes stay until GiveBack. False: nothing that can be used.
  bool Take(const ibv_wc& completion, Arrived& arrived);
  void GiveBack();

  // The card has given up the QP: nothing leaves or arrives until it is started again, and what was on its way is lost.
  bool failed() const { return failed_; }
  absl::Status Restart();

 private:
  static constexpr size_t kOwn = 32;
  static constexpr uint32_t kSignalEvery = 16;
  static constexpr uint32_t kRouteBytes = 40;  // the card puts the network header in front of what arrives
  static constexpr size_t kBatch = 64;

  explicit VerbsDatagrams(VerbsCard* card) : card_(card) {}
  absl::Status Start();
  absl::Status PostAll();
  uint64_t Id(VerbsWork work, uint64_t number) const { return WorkId(work, (starts_ & 0xff) << 48 | number); }
  // The number, unless it is of an earlier start.
  bool ToNumber(uint64_t id, uint64_t& number) const;
  uint32_t in_flight() const { return static_cast<uint32_t>(sent_ - retired_); }
  uint32_t slot_bytes() const { return kRouteBytes + max_bytes(); }

  VerbsCard* card_;
  ibv_qp* qp_ = nullptr;
  ibv_mr* out_mr_ = nullptr;
  ibv_mr* in_mr_ = nullptr;
  uint32_t inline_bytes_ = 0;
  std::vector<uint8_t> out_;
  std::vector<uint8_t> in_;
  uint64_t sent_ = 0;     // datagrams, ever
  uint64_t retired_ = 0;  // of those, that the card needs no more
  std::vector<ibv_send_wr> batch_;
  std::vector<ibv_sge> batch_pieces_;
  std::vector<uint32_t> taken_;  // slots of in_
  bool failed_ = false;
  uint64_t starts_ = 0;  // completions of earlier ones are void
};

}  // namespace paceline
