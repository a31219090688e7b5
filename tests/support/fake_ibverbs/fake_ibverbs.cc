// A stand-in for libibverbs: libibverbs.so.1 with the entry points that Paceline uses, over two cards in memory
// (tests/support/fake_verbs.h), fake0 and fake1, that reach each other. So whole programs run over the verbs lane, as
// long as both ends are in one process.
//
// FAKE_VERBS_DMA_BUF: "none": the cards take no dma-bufs; "fake0": only this one does; "full": they would, and have no
// room for any.
// FAKE_VERBS_SYSFS: a folder with one for each card ("fake0"), as /sys/class/infiniband.
// FAKE_VERBS_CLOCK: the cards have clocks, by the time that fake_verbs_set_time has set.
//
// Thread rule: any thread, one at a time.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "tests/support/fake_verbs.h"

// The header has macros and inline functions of these names over the library's own.
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

using paceline::support::FakeVerbs;

std::mutex mutex;
paceline::Time card_time;
int last_traffic_class = -1;
bool fork_is_safe = false;

FakeVerbs* MakeCards() {
  auto* cards = new FakeVerbs(2);
  cards->hook = [](const FakeVerbs::Packet& packet) {
    last_traffic_class = packet.traffic_class;
    return FakeVerbs::Fate::kDeliver;
  };
  for (uint32_t device = 0; std::getenv("FAKE_VERBS_CLOCK") != nullptr && device < 2; ++device) {
    cards->OfferClock(device, 1'000'000, 0, [] { return card_time; });
  }
  return cards;
}

// Never ended: cards may be open when the process ends.
FakeVerbs& Cards() {
  static auto* const cards = MakeCards();
  return *cards;
}

template <typename Call>
auto Locked(const Call& call) {
  const std::lock_guard lock(mutex);
  return call(Cards());
}

std::string DmaBufs() {
  const char* text = std::getenv("FAKE_VERBS_DMA_BUF");
  return text == nullptr ? "" : text;
}

// What the header's inline functions call by way of the context.
int PollCq(ibv_cq* cq, int most, ibv_wc* completions) {
  return Locked([&](FakeVerbs& cards) { return cards.PollCq(cq, most, completions); });
}
int ReqNotifyCq(ibv_cq* cq, int) {
  return Locked([&](FakeVerbs& cards) { return cards.ReqNotifyCq(cq); });
}
int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return Locked([&](FakeVerbs& cards) { return cards.PostSrqRecv(srq, first, bad); });
}
int PostSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  return Locked([&](FakeVerbs& cards) { return cards.PostSend(qp, first, bad); });
}
int PostRecv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return Locked([&](FakeVerbs& cards) { return cards.PostRecv(qp, first, bad); });
}

// A queue with times as its user sees it: one completion at a time.
paceline::VerbsCompletion current;

int NextPoll(ibv_cq_ex* cq) {
  const int count = Locked([&](FakeVerbs& cards) { return cards.PollTimedCq(ibv_cq_ex_to_cq(cq), 1, &current); });
  cq->wr_id = current.wr_id;
  cq->status = current.status;
  return count == 1 ? 0 : ENOENT;
}

ibv_cq_ex* CreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  ibv_cq* handle = Locked([&](FakeVerbs& cards) {
    return cards.CreateTimedCq(context, static_cast<int>(attributes->cqe), attributes->channel);
  });
  if (handle == nullptr) return nullptr;
  auto* cq = reinterpret_cast<ibv_cq_ex*>(handle);
  cq->start_poll = [](ibv_cq_ex* queue, ibv_poll_cq_attr*) { return NextPoll(queue); };
  cq->next_poll = NextPoll;
  cq->end_poll = [](ibv_cq_ex*) {};
  cq->read_opcode = [](ibv_cq_ex*) { return current.opcode; };
  cq->read_byte_len = [](ibv_cq_ex*) { return current.byte_len; };
  cq->read_imm_data = [](ibv_cq_ex*) { return current.imm_data; };
  cq->read_qp_num = [](ibv_cq_ex*) { return current.qp_num; };
  cq->read_src_qp = [](ibv_cq_ex*) { return current.src_qp; };
  cq->read_wc_flags = [](ibv_cq_ex*) { return static_cast<unsigned>(current.wc_flags); };
  cq->read_slid = [](ibv_cq_ex*) { return uint32_t{current.slid}; };
  cq->read_completion_ts = [](ibv_cq_ex*) { return current.ticks; };
  return cq;
}

int QueryDeviceEx(ibv_context* context, const ibv_query_device_ex_input*, ibv_device_attr_ex* attributes, size_t) {
  *attributes = {};
  const auto facts = Locked([&](FakeVerbs& cards) { return cards.QueryClock(context); });
  attributes->completion_timestamp_mask = facts.mask;
  attributes->hca_core_clock = facts.kilohertz;
  return 0;
}

int QueryRtValues(ibv_context* context, ibv_values_ex* values) {
  paceline::CardClockReading reading;
  const int error = Locked([&](FakeVerbs& cards) { return cards.ReadClock(context, &reading); });
  values->raw_clock = {0, static_cast<long>(reading.ticks)};
  return error;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): the library's names.
extern "C" {

int ibv_fork_init() {
  return Locked([](FakeVerbs& cards) {
    if (cards.objects() > 0) return EINVAL;  // as the library where something is registered
    fork_is_safe = true;
    return 0;
  });
}

ibv_device** ibv_get_device_list(int* count) {
  ibv_device** const list = Locked([&](FakeVerbs& cards) { return cards.GetDeviceList(count); });
  const char* sysfs = std::getenv("FAKE_VERBS_SYSFS");
  for (ibv_device** at = list; sysfs != nullptr && *at != nullptr; ++at) {
    std::snprintf((*at)->ibdev_path, sizeof((*at)->ibdev_path), "%s/%s", sysfs, (*at)->name);
  }
  return list;
}
void ibv_free_device_list(ibv_device** list) {
  Locked([&](FakeVerbs& cards) { cards.FreeDeviceList(list); });
}
ibv_context* ibv_open_device(ibv_device* device) {
  ibv_context* context = Locked([&](FakeVerbs& cards) { return cards.OpenDevice(device); });
  context->ops.poll_cq = PollCq;
  context->ops.req_notify_cq = ReqNotifyCq;
  context->ops.post_srq_recv = PostSrqRecv;
  context->ops.post_send = PostSend;
  context->ops.post_recv = PostRecv;
  verbs_context* extended = verbs_get_ctx(context);
  extended->create_cq_ex = CreateCqEx;
  extended->query_device_ex = QueryDeviceEx;
  extended->query_rt_values = QueryRtValues;
  return context;
}
int ibv_close_device(ibv_context* context) {
  return Locked([&](FakeVerbs& cards) { return cards.CloseDevice(context); });
}
int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  return Locked([&](FakeVerbs& cards) { return cards.QueryDevice(context, attributes); });
}
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attributes) {
  return Locked(
      [&](FakeVerbs& cards) { return cards.QueryPort(context, port, reinterpret_cast<ibv_port_attr*>(attributes)); });
}
int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry, uint32_t, size_t) {
  return Locked([&](FakeVerbs& cards) { return cards.QueryGid(context, port, index, entry); });
}
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return Locked([&](FakeVerbs& cards) { return cards.GetAsyncEvent(context, event); });
}
void ibv_ack_async_event(ibv_async_event* event) {
  Locked([&](FakeVerbs& cards) { cards.AckAsyncEvent(event); });
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return Locked([&](FakeVerbs& cards) { return cards.AllocPd(context); });
}
int ibv_dealloc_pd(ibv_pd* pd) {
  return Locked([&](FakeVerbs& cards) { return cards.DeallocPd(pd); });
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* base, size_t bytes, int access) {
  return Locked([&](FakeVerbs& cards) { return cards.RegMr(pd, base, bytes, access); });
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access) {
  const std::string who = DmaBufs();
  const bool full = who == "full";
  if ((full && fd >= 0) || (!full && !who.empty() && who != pd->context->device->name)) {
    errno = full ? ENOMEM : EOPNOTSUPP;
    return nullptr;
  }
  return Locked([&](FakeVerbs& cards) { return cards.RegDmabufMr(pd, offset, bytes, iova, fd, access); });
}
int ibv_dereg_mr(ibv_mr* mr) {
  return Locked([&](FakeVerbs& cards) { return cards.DeregMr(mr); });
}
ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  return Locked([&](FakeVerbs& cards) { return cards.CreateAh(pd, attributes); });
}
int ibv_destroy_ah(ibv_ah* ah) {
  return Locked([&](FakeVerbs& cards) { return cards.DestroyAh(ah); });
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return Locked([&](FakeVerbs& cards) { return cards.CreateCompChannel(context); });
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return Locked([&](FakeVerbs& cards) { return cards.DestroyCompChannel(channel); });
}
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
  return Locked([&](FakeVerbs& cards) { return cards.CreateCq(context, entries, channel); });
}
int ibv_destroy_cq(ibv_cq* cq) {
  return Locked([&](FakeVerbs& cards) { return cards.DestroyCq(cq); });
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  *cq_context = nullptr;
  return Locked([&](FakeVerbs& cards) { return cards.GetCqEvent(channel, cq); });
}
void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  Locked([&](FakeVerbs& cards) { cards.AckCqEvents(cq, count); });
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  ibv_srq* srq = Locked([&](FakeVerbs& cards) { return cards.CreateSrq(pd, attributes); });
  srq->context = pd->context;
  return srq;
}
int ibv_destroy_srq(ibv_srq* srq) {
  return Locked([&](FakeVerbs& cards) { return cards.DestroySrq(srq); });
}
ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  return Locked([&](FakeVerbs& cards) { return cards.CreateQp(pd, attributes); });
}
int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return Locked([&](FakeVerbs& cards) { return cards.ModifyQp(qp, attributes, mask); });
}
int ibv_destroy_qp(ibv_qp* qp) {
  return Locked([&](FakeVerbs& cards) { return cards.DestroyQp(qp); });
}

// What the cards have found wrong with how they were used; empty: nothing.
const char* fake_verbs_violation() {
  return Locked([](FakeVerbs& cards) { return cards.violations().empty() ? "" : cards.violations().front().c_str(); });
}

// What was made of the cards and is not destroyed yet: contexts, queues, registrations and the like.
size_t fake_verbs_objects() {
  return Locked([](FakeVerbs& cards) { return cards.objects(); });
}

// Whether memory that is registered stays in place when the process forks.
bool fake_verbs_fork_is_safe() {
  return Locked([](FakeVerbs&) { return fork_is_safe; });
}

// Of the last packet or write that has left a card; -1: none has.
int fake_verbs_traffic_class() {
  return Locked([](FakeVerbs&) { return last_traffic_class; });
}

// What the cards' clocks go by.
void fake_verbs_set_time(int64_t nanos) {
  const std::lock_guard lock(mutex);
  card_time = paceline::Time::FromNanos(nanos);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
