#include "transport/lane/verbs/verbs_datagrams.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace paceline {
namespace {

constexpr int kEcnMask = 3;
constexpr int kEcnCongestionExperienced = 3;
constexpr uint32_t kOwnMark = 0x6c616e65;  // the immediate of the lane's own messages

// The network header in front of what arrived: a GRH, which IPv6's header looks like, or an IPv4 header at its end, and
// then what stands before that is undefined and may look like the other (InfiniBand specification, annex A17.4.5.1).
// Which of the two it is the lane's own address says: what goes there is of its kind.
constexpr size_t kIpv4At = 20;

VerbsGid SourceGid(const uint8_t* route, bool ipv4) {
  VerbsGid gid{};
  if (ipv4) {
    gid[10] = gid[11] = 0xff;
    std::memcpy(gid.data() + 12, route + kIpv4At + 12, 4);
  } else {
    std::memcpy(gid.data(), route + 8, gid.size());
  }
  return gid;
}

bool IsMarked(const uint8_t* route, bool ipv4) {
  const int traffic_class = ipv4 ? route[kIpv4At + 1] : route[0] << 4 | route[1] >> 4;
  return (traffic_class & kEcnMask) == kEcnCongestionExperienced;
}

}  // namespace

absl::StatusOr<std::unique_ptr<VerbsDatagrams>> VerbsDatagrams::Create(VerbsCard* card) {
  std::unique_ptr<VerbsDatagrams> datagrams(new VerbsDatagrams(card));
  if (absl::Status status = datagrams->Start(); !status.ok()) return status;
  return datagrams;
}

absl::Status VerbsDatagrams::Start() {
  const VerbsCardOptions& options = card_->options();
  out_.resize(size_t{options.datagrams_out} * max_bytes());
  in_.resize(size_t{options.datagrams_in} * slot_bytes());
  auto out = card_->Register(out_.data(), out_.size(), 0);
  if (!out.ok()) return out.status();
  out_mr_ = *out;
  auto in = card_->Register(in_.data(), in_.size(), IBV_ACCESS_LOCAL_WRITE);
  if (!in.ok()) return in.status();
  in_mr_ = *in;
  auto qp = card_->MakeDatagramQp(&inline_bytes_);
  if (!qp.ok()) return qp.status();
  qp_ = *qp;
  batch_.reserve(kBatch);
  batch_pieces_.reserve(kBatch);
  return PostAll();
}

absl::Status VerbsDatagrams::Restart() {
  if (absl::Status status = card_->StartDatagramQp(qp_); !status.ok()) return status;
  ++starts_;
  failed_ = false;
  retired_ = sent_;
  batch_.clear();
  batch_pieces_.clear();
  return PostAll();
}

absl::Status VerbsDatagrams::PostAll() {
  taken_.resize(card_->options().datagrams_in);
  std::iota(taken_.begin(), taken_.end(), 0u);
  GiveBack();
  return failed_ ? absl::UnavailableError("the card takes no receives for datagrams") : absl::OkStatus();
}

bool VerbsDatagrams::ToNumber(uint64_t id, uint64_t& number) const {
  const uint64_t rest = WorkRest(id);
  number = rest & ((uint64_t{1} << 48) - 1);
  return rest >> 48 == (starts_ & 0xff);
}

VerbsDatagrams::~VerbsDatagrams() {
  if (qp_ != nullptr) card_->Destroy(qp_);
  if (in_mr_ != nullptr) card_->calls().DeregMr(in_mr_);
  if (out_mr_ != nullptr) card_->calls().DeregMr(out_mr_);
}

bool VerbsDatagrams::Send(const To& to, std::span<const uint8_t> header, std::span<const uint8_t> payload, bool own) {
  const size_t bytes = header.size() + payload.size();
  const uint32_t slots = card_->options().datagrams_out;
  if (bytes > max_bytes() || in_flight() >= slots || failed_ || to.route == nullptr) return false;
  const size_t slot = sent_ % slots;
  uint8_t* const at = out_.data() + slot * max_bytes();
  if (!header.empty()) std::memcpy(at, header.data(), header.size());
  if (!payload.empty()) std::memcpy(at + header.size(), payload.data(), payload.size());
  if (batch_.size() == kBatch) Flush();
  batch_pieces_.push_back({reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(bytes), out_mr_->lkey});
  ibv_send_wr request{};
  request.wr_id = Id(VerbsWork::kDatagramSent, ++sent_);
  request.sg_list = &batch_pieces_.back();
  request.num_sge = bytes > 0 ? 1 : 0;
  request.opcode = own ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  request.imm_data = own ? htobe32(kOwnMark) : 0;
  if (sent_ % kSignalEvery == 0) request.send_flags |= IBV_SEND_SIGNALED;
  if (bytes <= inline_bytes_) request.send_flags |= IBV_SEND_INLINE;
  request.wr.ud.ah = to.route;
  request.wr.ud.remote_qpn = to.qp_number;
  request.wr.ud.remote_qkey = kVerbsQueueKey;
  batch_.push_back(request);
  if (batch_.size() > 1) batch_[batch_.size() - 2].next = &batch_.back();
  return true;
}

void VerbsDatagrams::Flush() {
  if (batch_.empty()) return;
  ibv_send_wr* bad = nullptr;
  // What the card refuses is never completed: the queue would stay shorter for good.
  if (card_->calls().PostSend(qp_, batch_.data(), &bad) != 0) failed_ = true;
  batch_.clear();
  batch_pieces_.clear();
}

void VerbsDatagrams::OnSent(const ibv_wc& completion) {
  uint64_t number = 0;
  if (!ToNumber(completion.wr_id, number)) return;
  if (completion.status != IBV_WC_SUCCESS) failed_ = true;
  retired_ = std::max(retired_, number);
}

bool VerbsDatagrams::Take(const ibv_wc& completion, Arrived& arrived) {
  uint64_t number = 0;
  if (!ToNumber(completion.wr_id, number)) return false;
  const auto slot = static_cast<uint32_t>(number);
  if (completion.status == IBV_WC_WR_FLUSH_ERR) {
    failed_ = true;
    return false;
  }
  taken_.push_back(slot);
  if (completion.status != IBV_WC_SUCCESS || (completion.wc_flags & IBV_WC_GRH) == 0 ||
      completion.byte_len < kRouteBytes || completion.byte_len > slot_bytes()) {
    return false;
  }
  uint8_t* const at = in_.data() + size_t{slot} * slot_bytes();
  arrived.bytes = {at + kRouteBytes, completion.byte_len - kRouteBytes};
  const bool ethernet = card_->port().ethernet;
  const bool ipv4 = ethernet && IsIpv4(card_->port().gid);
  arrived.source = {.gid = SourceGid(at, ipv4), .qp_number = completion.src_qp, .ethernet = ethernet};
  if (!ethernet) arrived.source.lid = completion.slid;
  arrived.marked = ethernet && IsMarked(at, ipv4);  // InfiniBand has marks as well, but not in this header
  arrived.own = (completion.wc_flags & IBV_WC_WITH_IMM) != 0 && be32toh(completion.imm_data) == kOwnMark;
  return true;
}

void VerbsDatagrams::GiveBack() {
  size_t next = 0;
  std::array<ibv_recv_wr, kBatch> list;
  std::array<ibv_sge, kBatch> pieces;
  while (next < taken_.size() && !failed_) {
    const size_t count = std::min(kBatch, taken_.size() - next);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t slot = taken_[next + i];
      uint8_t* const at = in_.data() + size_t{slot} * slot_bytes();
      pieces[i] = {reinterpret_cast<uint64_t>(at), slot_bytes(), in_mr_->lkey};
      list[i] = {};
      list[i].wr_id = Id(VerbsWork::kDatagramArrived, slot);
      list[i].sg_list = &pieces[i];
      list[i].num_sge = 1;
      list[i].next = i + 1 < count ? &list[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    if (card_->calls().PostRecv(qp_, list.data(), &bad) != 0) failed_ = true;
    next += count;
  }
  taken_.clear();
}

}  // namespace paceline
