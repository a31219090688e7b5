#include "transport/lane/verbs/verbs_card.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "transport/lane/verbs/verbs_flow.h"

namespace paceline {
namespace {

constexpr uint32_t kLeastPaths = 8;
constexpr std::array<uint32_t, 3> kInlineBytes = {128, 64, 0};  // asked for until the card agrees
constexpr uint32_t kRefill = 64;
constexpr size_t kPolled = 64;
constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kEcnCapable = 2;  // ECT(0)
// RC only: 4.096 us * 2^14 = 67 ms, seven times, then the QP fails.
constexpr uint8_t kAckTimeout = 14;
constexpr uint8_t kRetries = 7;
constexpr uint8_t kReceiverNotReadyTimer = 12;  // 0.64 ms

absl::Status Failed(const VerbsPort& port, const char* call, int error) {
  const std::string text = absl::StrCat("verbs lane ", port.name(), ": ", call, ": ", std::strerror(error));
  if (error == ENOMEM || error == EPERM) {
    return absl::ResourceExhaustedError(
        absl::StrCat(text, " (is the limit of locked memory, ulimit -l, high enough?)"));
  }
  return absl::UnavailableError(text);
}

ibv_mtu MtuCode(uint32_t bytes) {
  uint32_t code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && 256u << (code - IBV_MTU_256 + 1) <= bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

bool SetNonBlocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0; }

}  // namespace

absl::StatusOr<std::unique_ptr<VerbsCard>> VerbsCard::Open(VerbsCalls& calls, const VerbsPort& port,
                                                           const VerbsCardOptions& options) {
  std::unique_ptr<VerbsCard> card(new VerbsCard(calls, port));
  if (absl::Status status = card->Start(options); !status.ok()) return status;
  return card;
}

absl::Status VerbsCard::Start(const VerbsCardOptions& options) {
  options_ = options;
  context_ = OpenVerbsDevice(*calls_, port_.device);
  if (context_ == nullptr) return Failed(port_, "ibv_open_device", errno);
  ibv_device_attr limits{};
  if (const int error = calls_->QueryDevice(context_, &limits); error != 0) {
    return Failed(port_, "ibv_query_device", error);
  }
  if (limits.max_srq_wr <= 0) return absl::UnimplementedError("the card has no shared receive queues");
  options_.arrivals = std::min(options_.arrivals, static_cast<uint32_t>(limits.max_srq_wr));
  // Every work request may end in a completion: room for all, and the queue never overruns.
  // Those of datagrams may be there twice, when their QP has been started again.
  const uint32_t fixed = options_.arrivals + 2 * (options_.datagrams_in + options_.datagrams_out);
  const uint32_t most = static_cast<uint32_t>(std::max(limits.max_cqe, 0));
  const uint32_t needed = fixed + kLeastPaths * options_.writes_per_path;
  if (most < needed) {
    return absl::UnimplementedError(absl::StrCat("verbs lane ", port_.name(), ": completion queues of ", most,
                                                 " entries; ", needed, " are needed"));
  }
  options_.paths = std::min(options_.paths, (most - fixed) / options_.writes_per_path);

  pd_ = calls_->AllocPd(context_);
  if (pd_ == nullptr) return Failed(port_, "ibv_alloc_pd", errno);
  channel_ = calls_->CreateCompChannel(context_);
  if (channel_ == nullptr) return Failed(port_, "ibv_create_comp_channel", errno);
  if (!SetNonBlocking(channel_->fd) || !SetNonBlocking(context_->async_fd)) return Failed(port_, "fcntl", errno);
  const auto entries = static_cast<int>(fixed + options_.paths * options_.writes_per_path);
  cq_ = MakeTimedCq(entries);
  if (cq_ == nullptr) cq_ = calls_->CreateCq(context_, entries, channel_);
  if (cq_ == nullptr) return Failed(port_, "ibv_create_cq", errno);
  ibv_srq_init_attr shared{};
  shared.attr.max_wr = options_.arrivals;
  shared.attr.max_sge = 1;
  srq_ = calls_->CreateSrq(pd_, &shared);
  if (srq_ == nullptr) return Failed(port_, "ibv_create_srq", errno);
  RefillArrivals();
  if (arrivals_posted_ < options_.arrivals) return Failed(port_, "ibv_post_srq_recv", ENOMEM);
  return absl::OkStatus();
}

ibv_cq* VerbsCard::MakeTimedCq(int entries) {
  const VerbsClockFacts facts = calls_->QueryClock(context_);
  if (facts.mask == 0 || facts.kilohertz == 0) return nullptr;
  CardClock clock(facts.mask, facts.kilohertz);
  CardClockReading reading;
  if (calls_->ReadClock(context_, &reading) != 0) return nullptr;
  clock.OnReading(reading.ticks, reading.before, reading.after);
  ibv_cq* cq = calls_->CreateTimedCq(context_, entries, channel_);
  if (cq != nullptr) clock_ = clock;
  return cq;
}

void VerbsCard::ReadClock() {
  CardClockReading reading;
  if (timed() && calls_->ReadClock(context_, &reading) == 0) {
    clock_->OnReading(reading.ticks, reading.before, reading.after);
  }
}

VerbsCard::~VerbsCard() {
  if (srq_ != nullptr) calls_->DestroySrq(srq_);
  if (cq_ != nullptr) calls_->DestroyCq(cq_);
  if (channel_ != nullptr) calls_->DestroyCompChannel(channel_);
  if (pd_ != nullptr) calls_->DeallocPd(pd_);
  if (context_ != nullptr) calls_->CloseDevice(context_);
}

absl::StatusOr<ibv_mr*> VerbsCard::Register(void* base, size_t bytes, int access) {
  ibv_mr* mr = calls_->RegMr(pd_, base, bytes, access);
  if (mr == nullptr) return Failed(port_, "ibv_reg_mr", errno);
  return mr;
}

absl::StatusOr<ibv_mr*> VerbsCard::RegisterDmaBuf(const LaneMemory& memory, int access) {
  ibv_mr* mr = calls_->RegDmabufMr(pd_, memory.dma_buf_offset, memory.bytes, reinterpret_cast<uint64_t>(memory.base),
                                   memory.dma_buf, access);
  if (mr == nullptr) return Failed(port_, "ibv_reg_dmabuf_mr", errno);
  return mr;
}

// Cards that cannot carry so many bytes in a work request make no QP at all.
ibv_qp* VerbsCard::CreateQp(ibv_qp_init_attr* init) {
  ibv_qp* qp = nullptr;
  for (size_t i = 0; i < kInlineBytes.size() && qp == nullptr; ++i) {
    init->cap.max_inline_data = kInlineBytes[i];
    qp = calls_->CreateQp(pd_, init);
  }
  return qp;
}

absl::StatusOr<ibv_qp*> VerbsCard::MakeDatagramQp(uint32_t* inline_bytes) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_UD;
  init.cap.max_send_wr = options_.datagrams_out;
  init.cap.max_recv_wr = options_.datagrams_in;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  ibv_qp* qp = CreateQp(&init);
  if (qp == nullptr) return Failed(port_, "ibv_create_qp (UD)", errno);
  *inline_bytes = init.cap.max_inline_data;
  const absl::Status status = StartDatagramQp(qp);
  if (status.ok()) return qp;
  Destroy(qp);
  return status;
}

absl::Status VerbsCard::StartDatagramQp(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  int error = calls_->ModifyQp(qp, &attributes, IBV_QP_STATE);
  if (error == 0) {
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = port_.number;
    attributes.qkey = kVerbsQueueKey;
    error = calls_->ModifyQp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  }
  if (error == 0) {
    attributes.qp_state = IBV_QPS_RTR;
    error = calls_->ModifyQp(qp, &attributes, IBV_QP_STATE);
  }
  if (error == 0) {
    attributes.qp_state = IBV_QPS_RTS;
    error = calls_->ModifyQp(qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
  }
  return error == 0 ? absl::OkStatus() : Failed(port_, "ibv_modify_qp (UD)", error);
}

absl::StatusOr<ibv_qp*> VerbsCard::MakePathQp(ibv_qp_type type, uint32_t* inline_bytes) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.srq = srq_;
  init.qp_type = type;
  init.cap.max_send_wr = options_.writes_per_path;
  init.cap.max_send_sge = 1;
  ibv_qp* qp = CreateQp(&init);
  if (qp == nullptr) return Failed(port_, "ibv_create_qp", errno);
  *inline_bytes = init.cap.max_inline_data;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port_.number;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int error =
      calls_->ModifyQp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error == 0) return qp;
  Destroy(qp);
  return Failed(port_, "ibv_modify_qp (INIT)", error);
}

ibv_ah_attr VerbsCard::Route(const VerbsGid& gid, uint16_t lid, uint32_t flow_label, bool ecn_capable) const {
  ibv_ah_attr route{};
  route.port_num = port_.number;
  route.dlid = lid;
  route.is_global = 1;  // also within an InfiniBand subnet: the receiver learns the sender's GID from it
  std::memcpy(route.grh.dgid.raw, gid.data(), gid.size());
  route.grh.sgid_index = port_.gid_index;
  route.grh.hop_limit = kHopLimit;
  route.grh.traffic_class = options_.traffic_class | (ecn_capable ? kEcnCapable : 0);
  if (port_.ethernet) route.grh.flow_label = flow_label;
  return route;
}

absl::Status VerbsCard::ReadyToReceive(ibv_qp* qp, ibv_qp_type type, const Remote& remote) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = MtuCode(std::min(remote.mtu, port_.mtu));
  attributes.dest_qp_num = remote.qp_number;
  attributes.rq_psn = remote.psn;
  attributes.ah_attr = Route(remote.gid, remote.lid, remote.flow_label, false);  // a mark on a write nobody would see
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_RC) {
    attributes.min_rnr_timer = kReceiverNotReadyTimer;
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  const int error = calls_->ModifyQp(qp, &attributes, mask);
  return error == 0 ? absl::OkStatus() : Failed(port_, "ibv_modify_qp (RTR)", error);
}

absl::Status VerbsCard::ReadyToSend(ibv_qp* qp, ibv_qp_type type, uint32_t psn, uint32_t flow_label) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = psn;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_RC) {
    attributes.timeout = kAckTimeout;
    attributes.retry_cnt = kRetries;
    attributes.rnr_retry = kRetries;  // 7: for ever
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  const int error = calls_->ModifyQp(qp, &attributes, mask);
  if (error != 0) return Failed(port_, "ibv_modify_qp (RTS)", error);
  ChooseUdpPort(qp, flow_label);
  return absl::OkStatus();
}

// Says in so many words what the flow label says, to cards whose driver does not listen to that. They work without.
void VerbsCard::ChooseUdpPort(ibv_qp* qp, uint32_t flow_label) {
  if (!port_.ethernet || !takes_udp_ports_) return;
  const int error = calls_->SetUdpPort(qp, VerbsUdpPort(flow_label));
  if (error == 0) return;
  takes_udp_ports_ = false;
  if (error == EOPNOTSUPP) return;
  std::fprintf(stderr, "paceline: verbs lane %s: the card takes no UDP source ports (%s); it chooses them itself.\n",
               port_.name().c_str(), std::strerror(error));
}

bool VerbsCard::Stop(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return calls_->ModifyQp(qp, &attributes, IBV_QP_STATE) == 0;
}

size_t VerbsCard::Poll(std::span<VerbsCompletion> out) {
  if (drained_next_ < drained_.size()) {
    const size_t count = std::min(out.size(), drained_.size() - drained_next_);
    std::copy_n(drained_.begin() + static_cast<ptrdiff_t>(drained_next_), count, out.begin());
    drained_next_ += count;
    if (drained_next_ == drained_.size()) {
      drained_.clear();
      drained_next_ = 0;
    }
    return count;
  }
  return PollCard(out);
}

size_t VerbsCard::PollCard(std::span<VerbsCompletion> out) {
  const auto most = static_cast<int>(std::min(out.size(), kPolled));
  if (timed()) return static_cast<size_t>(std::max(calls_->PollTimedCq(cq_, most, out.data()), 0));
  std::array<ibv_wc, kPolled> list;
  const int count = calls_->PollCq(cq_, most, list.data());
  for (int i = 0; i < count; ++i) static_cast<ibv_wc&>(out[i]) = list[i];
  return static_cast<size_t>(std::max(count, 0));
}

bool VerbsCard::Drain() {
  std::array<VerbsCompletion, kPolled> list;
  for (;;) {
    const size_t count = PollCard(list);
    if (count == 0) break;
    drained_.insert(drained_.end(), list.begin(), list.begin() + static_cast<ptrdiff_t>(count));
  }
  return drained_next_ < drained_.size();
}

void VerbsCard::PutBehind(uint64_t id) {
  Drain();
  VerbsCompletion& last = drained_.emplace_back();
  last = {};
  last.wr_id = id;
}

void VerbsCard::RefillArrivals() {
  // A write with immediate takes a receive, and nothing of it: the payload goes where the write says.
  std::array<ibv_recv_wr, kRefill> list;
  while (arrivals_posted_ + kRefill <= options_.arrivals) {
    for (size_t i = 0; i < list.size(); ++i) {
      list[i] = {};
      list[i].wr_id = WorkId(VerbsWork::kWriteArrived, 0);
      list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    if (calls_->PostSrqRecv(srq_, list.data(), &bad) != 0) {
      arrivals_posted_ += static_cast<uint32_t>(bad == nullptr ? 0 : bad - list.data());
      return;
    }
    arrivals_posted_ += kRefill;
  }
}

}  // namespace paceline
