#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/support/fake_verbs_objects.h"

namespace paceline::support {
namespace {

void Ring(int fd) {
  const uint64_t one = 1;
  if (write(fd, &one, sizeof(one)) != sizeof(one)) std::abort();
}

void Quiet(int fd) {
  uint64_t count;
  if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN) std::abort();
}

}  // namespace

FakeVerbs::FakeVerbs(uint32_t devices, int max_cqe) : max_cqe_(max_cqe), devices_(devices) {
  for (uint32_t i = 0; i < devices; ++i) {
    std::snprintf(devices_[i].device.name, sizeof(devices_[i].device.name), "fake%u", i);
  }
}

FakeVerbs::~FakeVerbs() = default;

size_t FakeVerbs::objects() const { return qps_.size() + mrs_.size() + others_.size(); }

// ---- what a test does to the cards

void FakeVerbs::ReleaseParked() {
  for (Packet& packet : parked_) wire_.push_back(std::move(packet));
  parked_.clear();
}

void FakeVerbs::SetPort(uint32_t device, bool up) {
  devices_[device].up = up;
  TellDevice(device, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void FakeVerbs::TellDevice(uint32_t device, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = 1;
  for (Context* context : devices_[device].open) Tell(context, event);
}

void FakeVerbs::FailQp(uint32_t number) {
  Qp* qp = FindQp(number);
  Fail(*qp);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_QP_FATAL;
  event.element.qp = qp;
  Tell(Context::Of(qp->context), event);
}

std::vector<uint32_t> FakeVerbs::PathQps(uint32_t device) const {
  std::vector<uint32_t> numbers;
  for (const auto& [number, qp] : qps_) {
    if (qp->device == device && qp->qp_type != IBV_QPT_UD && !qp->stopped) numbers.push_back(number);
  }
  return numbers;
}

ibv_qp_type FakeVerbs::TypeOf(uint32_t qp_number) const { return qps_.at(qp_number)->qp_type; }
uint32_t FakeVerbs::FlowLabelOf(uint32_t qp_number) const { return qps_.at(qp_number)->flow_label; }
uint16_t FakeVerbs::UdpPortOf(uint32_t qp_number) const { return qps_.at(qp_number)->udp_port; }

void FakeVerbs::Tell(Context* context, const ibv_async_event& event) {
  context->events.push_back(event);
  Ring(context->context.async_fd);
}

void FakeVerbs::OfferClock(uint32_t device, uint64_t kilohertz, double per_million, std::function<Time()> host) {
  devices_[device].kilohertz = kilohertz;
  devices_[device].per_million = per_million;
  devices_[device].host = std::move(host);
}

uint64_t FakeVerbs::TicksOf(uint32_t device) const {
  const Device& its = devices_[device];
  if (its.kilohertz == 0) return 0;
  const double nanos_per_tick = 1e6 / static_cast<double>(its.kilohertz) / (1 + its.per_million / 1e6);
  return 1000 + static_cast<uint64_t>(static_cast<double>(its.host().nanos()) / nanos_per_tick);
}

VerbsClockFacts FakeVerbs::QueryClock(ibv_context* context) {
  const uint64_t kilohertz = devices_[Context::Of(context)->number].kilohertz;
  return {kilohertz > 0 ? ~uint64_t{0} : 0, kilohertz};
}

int FakeVerbs::ReadClock(ibv_context* context, CardClockReading* reading) {
  const uint32_t number = Context::Of(context)->number;
  if (devices_[number].kilohertz == 0) return EOPNOTSUPP;
  const Time now = devices_[number].host();
  *reading = {TicksOf(number), now, now};
  return 0;
}

// ---- devices

ibv_device** FakeVerbs::GetDeviceList(int* count) {
  auto** list = new ibv_device*[devices_.size() + 1];
  for (size_t i = 0; i < devices_.size(); ++i) list[i] = &devices_[i].device;
  list[devices_.size()] = nullptr;
  *count = static_cast<int>(devices_.size());
  return list;
}

ibv_context* FakeVerbs::OpenDevice(ibv_device* device) {
  auto* context = new Context{};
  context->sz = sizeof(verbs_context);
  context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context->context.device = device;
  context->context.async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  while (&devices_[context->number].device != device) ++context->number;
  devices_[context->number].open.insert(context);
  others_.insert(context);
  return &context->context;
}

int FakeVerbs::CloseDevice(ibv_context* handle) {
  auto* context = Context::Of(handle);
  close(context->context.async_fd);
  devices_[context->number].open.erase(context);
  others_.erase(context);
  delete context;
  return 0;
}

int FakeVerbs::QueryDevice(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->phys_port_cnt = ports_;
  attributes->sys_image_guid = htobe64(0x0200000000000001);
  attributes->max_cqe = max_cqe_;
  attributes->max_srq_wr = 16384;
  return 0;
}

int FakeVerbs::QueryPort(ibv_context* context, uint8_t, ibv_port_attr* attributes) {
  *attributes = {};
  attributes->state = devices_[Context::Of(context)->number].up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes->active_mtu = IBV_MTU_4096;
  attributes->link_layer = lid_ != 0 ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  attributes->lid = lid_;
  attributes->active_speed = 64;
  attributes->active_width = 2;
  attributes->gid_tbl_len = 2;
  return 0;
}

std::array<uint8_t, 16> FakeVerbs::GidOf(uint32_t device) const {
  const auto last = static_cast<uint8_t>(device + 1);
  if (ipv6_) return {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
}

int FakeVerbs::QueryGid(ibv_context* context, uint32_t, uint32_t index, ibv_gid_entry* entry) {
  const uint32_t number = Context::Of(context)->number;
  if (index > 1 || !devices_[number].gids) return ENODATA;
  *entry = {};
  entry->gid_type = lid_ != 0 ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
  if (index == 0) {
    entry->gid.raw[0] = 0xfe, entry->gid.raw[1] = 0x80, entry->gid.raw[15] = static_cast<uint8_t>(number + 1);
  } else {
    const std::array<uint8_t, 16> gid = GidOf(number);
    std::memcpy(entry->gid.raw, gid.data(), gid.size());
  }
  return 0;
}

int FakeVerbs::GetAsyncEvent(ibv_context* handle, ibv_async_event* event) {
  auto* context = Context::Of(handle);
  if (context->events.empty()) {
    Quiet(context->context.async_fd);
    return -1;
  }
  *event = context->events.front();
  context->events.pop_front();
  return 0;
}

// ---- memory, routes, queues

ibv_pd* FakeVerbs::AllocPd(ibv_context* context) {
  auto* pd = new ibv_pd{};
  pd->context = context;
  others_.insert(pd);
  return pd;
}

int FakeVerbs::DeallocPd(ibv_pd* pd) {
  others_.erase(pd);
  delete pd;
  return 0;
}

ibv_mr* FakeVerbs::Add(Mr* mr, ibv_pd* pd, uint64_t address, size_t bytes) {
  mr->pd = pd;
  mr->addr = reinterpret_cast<void*>(address);
  mr->length = bytes;
  mr->lkey = mr->rkey = ++next_key_;
  mrs_[mr->rkey] = mr;
  registrations_.push_back({address, bytes, mr->mapped != nullptr});
  return mr;
}

ibv_mr* FakeVerbs::RegMr(ibv_pd* pd, void* base, size_t bytes, int) {
  auto* mr = new Mr{};
  mr->bytes = static_cast<uint8_t*>(base);
  return Add(mr, pd, reinterpret_cast<uint64_t>(base), bytes);
}

// As the kernel's: the addresses lie in their pages as the bytes lie in those of the dma-buf.
ibv_mr* FakeVerbs::RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int) {
  if (!takes_dma_bufs_) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const off_t begin = lseek(fd, 0, SEEK_CUR);  // of the dma-buf in the file that stands for it
  if (begin < 0) return nullptr;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes == 0 || offset % page != iova % page) {
    errno = EINVAL;
    return nullptr;
  }
  const size_t mapped_bytes = offset + bytes;
  void* mapped = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin);
  if (mapped == MAP_FAILED) return nullptr;
  auto* mr = new Mr{};
  mr->mapped = static_cast<uint8_t*>(mapped);
  mr->mapped_bytes = mapped_bytes;
  mr->bytes = mr->mapped + offset;
  return Add(mr, pd, iova, bytes);
}

int FakeVerbs::DeregMr(ibv_mr* handle) {
  auto* mr = static_cast<Mr*>(handle);
  mrs_.erase(mr->rkey);
  if (mr->mapped != nullptr) munmap(mr->mapped, mr->mapped_bytes);
  delete mr;
  return 0;
}

ibv_ah* FakeVerbs::CreateAh(ibv_pd* pd, ibv_ah_attr* attributes) {
  auto* ah = new Ah;
  ah->pd = pd;
  ah->to_device = attributes->grh.dgid.raw[15] - 1u;
  ah->traffic_class = attributes->grh.traffic_class;
  others_.insert(ah);
  return ah;
}

int FakeVerbs::DestroyAh(ibv_ah* ah) {
  others_.erase(ah);
  delete static_cast<Ah*>(ah);
  return 0;
}

ibv_comp_channel* FakeVerbs::CreateCompChannel(ibv_context* context) {
  auto* channel = new ibv_comp_channel{};
  channel->context = context;
  channel->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  others_.insert(channel);
  return channel;
}

int FakeVerbs::DestroyCompChannel(ibv_comp_channel* channel) {
  close(channel->fd);
  others_.erase(channel);
  delete channel;
  return 0;
}

ibv_cq* FakeVerbs::CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) {
  if (entries > max_cqe_) return nullptr;
  auto* cq = new Cq;
  cq->context = context;
  cq->channel = channel;
  cq->entries = static_cast<size_t>(entries);
  others_.insert(cq);
  return ibv_cq_ex_to_cq(cq);
}

ibv_cq* FakeVerbs::CreateTimedCq(ibv_context* context, int entries, ibv_comp_channel* channel) {
  ibv_cq* cq = devices_[Context::Of(context)->number].kilohertz > 0 ? CreateCq(context, entries, channel) : nullptr;
  if (cq != nullptr) Cq::Of(cq)->timed = true;
  return cq;
}

int FakeVerbs::DestroyCq(ibv_cq* handle) {
  Cq* cq = Cq::Of(handle);
  others_.erase(cq);
  delete cq;
  return 0;
}

int FakeVerbs::GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq) {
  uint64_t count;
  *cq = nullptr;
  return read(channel->fd, &count, sizeof(count)) == sizeof(count) ? 0 : -1;
}

int FakeVerbs::ReqNotifyCq(ibv_cq* cq) {
  Cq::Of(cq)->armed = true;
  return 0;
}

void FakeVerbs::Complete(Cq& cq, const ibv_wc& completion) {
  if (cq.completions.size() == cq.entries) Violate("a completion queue overran");
  VerbsCompletion& last = cq.completions.emplace_back();
  static_cast<ibv_wc&>(last) = completion;
  last.ticks = TicksOf(Context::Of(cq.context)->number);
  if (std::exchange(cq.armed, false)) Ring(cq.channel->fd);
}

int FakeVerbs::PollCq(ibv_cq* handle, int most, ibv_wc* completions) {
  Cq& cq = *Cq::Of(handle);
  if (cq.timed) Violate("a queue with times was polled as one without");
  VerbsCompletion one;
  int count = 0;
  for (; count < most && Poll(cq, 1, &one) == 1; ++count) completions[count] = one;
  return count;
}

int FakeVerbs::PollTimedCq(ibv_cq* handle, int most, VerbsCompletion* completions) {
  Cq& cq = *Cq::Of(handle);
  if (!cq.timed) Violate("a queue without times was polled as one with");
  const int count = Poll(cq, most, completions);
  for (int i = 0; i < count; ++i) {
    const VerbsCompletion& one = completions[i];
    if (one.status == IBV_WC_SUCCESS) continue;
    VerbsCompletion known{};
    known.wr_id = one.wr_id;
    known.status = one.status;
    known.qp_num = one.qp_num;
    completions[i] = known;
  }
  return count;
}

int FakeVerbs::Poll(Cq& cq, int most, VerbsCompletion* completions) {
  Deliver();
  int count = 0;
  for (; count < most && !cq.completions.empty(); ++count) {
    completions[count] = cq.completions.front();
    cq.completions.pop_front();
    // A polled completion of a send frees all that were posted before it; `vendor_err` carries its number.
    Qp* qp = FindQp(completions[count].qp_num);
    const bool sent = completions[count].opcode == IBV_WC_SEND || completions[count].opcode == IBV_WC_RDMA_WRITE;
    if (qp != nullptr && sent) qp->retired = std::max<uint64_t>(qp->retired, completions[count].vendor_err);
  }
  return count;
}

ibv_srq* FakeVerbs::CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  auto* srq = new Srq;
  srq->pd = pd;
  srq->most = attributes->attr.max_wr;
  others_.insert(srq);
  return srq;
}

int FakeVerbs::DestroySrq(ibv_srq* srq) {
  others_.erase(srq);
  delete static_cast<Srq*>(srq);
  return 0;
}

int FakeVerbs::PostSrqRecv(ibv_srq* handle, ibv_recv_wr* first, ibv_recv_wr**) {
  auto& srq = *static_cast<Srq*>(handle);
  for (; first != nullptr; first = first->next) srq.receives.push_back({first->wr_id, 0, 0});
  if (srq.receives.size() > srq.most) Violate("a shared receive queue overran");
  return 0;
}

// ---- queue pairs

FakeVerbs::Qp* FakeVerbs::FindQp(uint32_t number) {
  const auto found = qps_.find(number);
  return found == qps_.end() ? nullptr : found->second;
}

ibv_qp* FakeVerbs::CreateQp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (attributes->cap.max_inline_data > most_inline_) {
    errno = EINVAL;
    return nullptr;
  }
  auto* qp = new Qp;
  qp->context = pd->context;
  qp->device = Context::Of(pd->context)->number;
  qp->send_cq = attributes->send_cq;
  qp->recv_cq = attributes->recv_cq;
  qp->srq = attributes->srq;
  qp->qp_type = attributes->qp_type;
  qp->qp_num = ++next_qp_;
  if (qp->qp_type == IBV_QPT_UD) {
    // Datagram QPs get a number that was in use before, as the next process may.
    qp->qp_num = FindQp(2) == nullptr ? 2 : FindQp(3) == nullptr ? 3 : next_qp_;
  } else if (std::vector<uint32_t>& free = devices_[qp->device].free_numbers; reuse_numbers_ && !free.empty()) {
    qp->qp_num = free.back();
    free.pop_back();
  }
  qp->state = IBV_QPS_RESET;
  qp->most_sends = attributes->cap.max_send_wr;
  qp->most_receives = attributes->cap.max_recv_wr;
  attributes->cap.max_inline_data = std::min(Qp::kInlineBytes, most_inline_);
  qps_[qp->qp_num] = qp;
  return qp;
}

void FakeVerbs::Fail(Qp& qp) {
  qp.state = IBV_QPS_ERR;
  for (const Receive& receive : std::exchange(qp.receives, {})) {
    ibv_wc flushed{};
    flushed.wr_id = receive.id;
    flushed.status = IBV_WC_WR_FLUSH_ERR;
    flushed.qp_num = qp.qp_num;
    Complete(*Cq::Of(qp.recv_cq), flushed);
  }
}

int FakeVerbs::ModifyQp(ibv_qp* handle, ibv_qp_attr* attributes, int mask) {
  auto& qp = *static_cast<Qp*>(handle);
  if (devices_[qp.device].refused_calls > 0) {
    --devices_[qp.device].refused_calls;
    return EIO;
  }
  const ibv_qp_state next = attributes->qp_state;
  const bool allowed =
      next == IBV_QPS_RESET || next == IBV_QPS_ERR || (next == IBV_QPS_INIT && qp.state == IBV_QPS_RESET) ||
      (next == IBV_QPS_RTR && qp.state == IBV_QPS_INIT) || (next == IBV_QPS_RTS && qp.state == IBV_QPS_RTR);
  if (!allowed) Violate("a QP was to go into a state that does not follow its own");
  if ((mask & IBV_QP_DEST_QPN) != 0) qp.to_qp = attributes->dest_qp_num;
  if ((mask & IBV_QP_AV) != 0) {
    qp.to_device = attributes->ah_attr.grh.dgid.raw[15] - 1u;
    qp.traffic_class = attributes->ah_attr.grh.traffic_class;
    qp.flow_label = attributes->ah_attr.grh.flow_label;
    if (qp.flow_label >> 20 != 0) Violate("a flow label of more than 20 bits");
  }
  if (next == IBV_QPS_ERR) qp.stopped = true;
  if (next == IBV_QPS_RESET) {
    qp.receives.clear();
    qp.posted = qp.retired = 0;
  }
  if (next == IBV_QPS_RTR && qp.qp_type != IBV_QPT_UD && (mask & IBV_QP_DEST_QPN) == 0) Violate("RTR without a peer");
  qp.state = next;
  return allowed ? 0 : EINVAL;
}

int FakeVerbs::SetUdpPort(ibv_qp* handle, uint16_t port) {
  auto& qp = *static_cast<Qp*>(handle);
  if (qp.qp_type == IBV_QPT_UD || qp.state != IBV_QPS_RTS) Violate("a UDP source port for a QP that takes none");
  if (devices_[qp.device].udp_port_error == 0) qp.udp_port = port;
  return devices_[qp.device].udp_port_error;
}

int FakeVerbs::DestroyQp(ibv_qp* handle) {
  auto* qp = static_cast<Qp*>(handle);
  qps_.erase(qp->qp_num);
  if (qp->qp_type != IBV_QPT_UD) devices_[qp->device].free_numbers.push_back(qp->qp_num);
  // A card may forget what it had to say of the QP.
  for (ibv_cq* queue : {qp->send_cq, qp->recv_cq}) {
    std::erase_if(Cq::Of(queue)->completions, [qp](const ibv_wc& wc) { return wc.qp_num == qp->qp_num; });
  }
  delete qp;
  return 0;
}

}  // namespace paceline::support
