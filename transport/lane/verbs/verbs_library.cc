#include "transport/lane/verbs/verbs_library.h"

#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/lane/verbs/verbs_mlx5.h"

namespace paceline {
namespace {

constexpr char kLibrary[] = "libibverbs.so.1";

// ibv_reg_mr and ibv_query_port are macros as well; their names without parentheses are the functions.
class VerbsLibrary final : public VerbsCalls {
 public:
  // Empty: all symbols were found. Otherwise what is missing.
  std::string Load() {
    library_ = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return absl::StrCat(kLibrary, " is not installed (Debian: libibverbs1)");
    Find(get_device_list_, "ibv_get_device_list");
    Find(free_device_list_, "ibv_free_device_list");
    Find(open_device_, "ibv_open_device");
    Find(close_device_, "ibv_close_device");
    Find(query_device_, "ibv_query_device");
    Find(query_port_, "ibv_query_port");
    Find(query_gid_, "_ibv_query_gid_ex");
    Find(get_async_event_, "ibv_get_async_event");
    Find(ack_async_event_, "ibv_ack_async_event");
    Find(alloc_pd_, "ibv_alloc_pd");
    Find(dealloc_pd_, "ibv_dealloc_pd");
    Find(reg_mr_, "ibv_reg_mr");
    reg_dmabuf_mr_ = reinterpret_cast<RegDmabufMrFunction*>(dlsym(library_, "ibv_reg_dmabuf_mr"));  // may be absent
    Find(dereg_mr_, "ibv_dereg_mr");
    Find(create_ah_, "ibv_create_ah");
    Find(destroy_ah_, "ibv_destroy_ah");
    Find(create_comp_channel_, "ibv_create_comp_channel");
    Find(destroy_comp_channel_, "ibv_destroy_comp_channel");
    Find(create_cq_, "ibv_create_cq");
    Find(destroy_cq_, "ibv_destroy_cq");
    Find(get_cq_event_, "ibv_get_cq_event");
    Find(ack_cq_events_, "ibv_ack_cq_events");
    Find(create_srq_, "ibv_create_srq");
    Find(destroy_srq_, "ibv_destroy_srq");
    Find(create_qp_, "ibv_create_qp");
    Find(modify_qp_, "ibv_modify_qp");
    Find(destroy_qp_, "ibv_destroy_qp");
    Find(fork_init_, "ibv_fork_init");
    if (!missing_.empty()) return absl::StrCat(kLibrary, " is too old: it has no ", missing_);
    // Of effect before the first registration alone, and only where the kernel leaves something to do. It fails where
    // the program has registered memory of its own before, and has then chosen for itself.
    fork_init_();
    return "";
  }

  ibv_device** GetDeviceList(int* count) override { return get_device_list_(count); }
  void FreeDeviceList(ibv_device** list) override { free_device_list_(list); }
  ibv_context* OpenDevice(ibv_device* device) override { return open_device_(device); }
  int CloseDevice(ibv_context* context) override { return close_device_(context); }
  int QueryDevice(ibv_context* context, ibv_device_attr* attributes) override {
    return query_device_(context, attributes);
  }
  int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) override {
    // The library's own symbol fills in all but the last fields, which the lane does not read.
    *attributes = {};
    return query_port_(context, port, reinterpret_cast<_compat_ibv_port_attr*>(attributes));
  }
  int QueryGid(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry) override {
    return query_gid_(context, port, index, entry, 0, sizeof(*entry));
  }
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) override { return get_async_event_(context, event); }
  void AckAsyncEvent(ibv_async_event* event) override { ack_async_event_(event); }

  ibv_pd* AllocPd(ibv_context* context) override { return alloc_pd_(context); }
  int DeallocPd(ibv_pd* pd) override { return dealloc_pd_(pd); }
  ibv_mr* RegMr(ibv_pd* pd, void* base, size_t bytes, int access) override { return reg_mr_(pd, base, bytes, access); }
  ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access) override {
    if (reg_dmabuf_mr_ != nullptr) return reg_dmabuf_mr_(pd, offset, bytes, iova, fd, access);
    errno = EOPNOTSUPP;
    return nullptr;
  }
  int DeregMr(ibv_mr* mr) override { return dereg_mr_(mr); }
  ibv_ah* CreateAh(ibv_pd* pd, ibv_ah_attr* attributes) override { return create_ah_(pd, attributes); }
  int DestroyAh(ibv_ah* ah) override { return destroy_ah_(ah); }

  ibv_comp_channel* CreateCompChannel(ibv_context* context) override { return create_comp_channel_(context); }
  int DestroyCompChannel(ibv_comp_channel* channel) override { return destroy_comp_channel_(channel); }
  ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) override {
    return create_cq_(context, entries, nullptr, channel, 0);
  }
  int DestroyCq(ibv_cq* cq) override { return destroy_cq_(cq); }
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq) override {
    void* unused = nullptr;
    return get_cq_event_(channel, cq, &unused);
  }
  void AckCqEvents(ibv_cq* cq, unsigned count) override { ack_cq_events_(cq, count); }
  int ReqNotifyCq(ibv_cq* cq) override { return ibv_req_notify_cq(cq, 0); }
  int PollCq(ibv_cq* cq, int most, ibv_wc* completions) override { return ibv_poll_cq(cq, most, completions); }

  VerbsClockFacts QueryClock(ibv_context* context) override {
    ibv_device_attr_ex attributes{};
    // As verbs_get_ctx_op, which is no standard C++: a library may be older than the header.
    verbs_context* extended = verbs_get_ctx(context);
    if (extended == nullptr || extended->sz < sizeof(*extended) - offsetof(verbs_context, query_device_ex)) return {};
    if (extended->query_device_ex == nullptr) return {};
    if (extended->query_device_ex(context, nullptr, &attributes, sizeof(attributes)) != 0) return {};
    return {attributes.completion_timestamp_mask, attributes.hca_core_clock};
  }
  int ReadClock(ibv_context* context, CardClockReading* reading) override;
  ibv_cq* CreateTimedCq(ibv_context* context, int entries, ibv_comp_channel* channel) override {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = static_cast<uint32_t>(entries);
    attributes.channel = channel;
    attributes.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
                          IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    ibv_cq_ex* cq = ibv_create_cq_ex(context, &attributes);
    return cq == nullptr ? nullptr : ibv_cq_ex_to_cq(cq);
  }
  int PollTimedCq(ibv_cq* cq, int most, VerbsCompletion* completions) override;

  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attributes) override { return create_srq_(pd, attributes); }
  int DestroySrq(ibv_srq* srq) override { return destroy_srq_(srq); }
  int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) override {
    return ibv_post_srq_recv(srq, first, bad);
  }
  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attributes) override { return create_qp_(pd, attributes); }
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) override { return modify_qp_(qp, attributes, mask); }
  int DestroyQp(ibv_qp* qp) override { return destroy_qp_(qp); }
  int SetUdpPort(ibv_qp* qp, uint16_t port) override { return SetMlx5UdpPort(qp, port); }
  int PostSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override { return ibv_post_send(qp, first, bad); }
  int PostRecv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override { return ibv_post_recv(qp, first, bad); }

 private:
  using RegDmabufMrFunction = ibv_mr*(ibv_pd*, uint64_t, size_t, uint64_t, int, int);

  template <typename Function>
  void Find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) absl::StrAppend(&missing_, missing_.empty() ? "" : ", ", name);
  }

  void* library_ = nullptr;
  std::string missing_;
  decltype(ibv_get_device_list)* get_device_list_ = nullptr;
  decltype(ibv_free_device_list)* free_device_list_ = nullptr;
  decltype(ibv_open_device)* open_device_ = nullptr;
  decltype(ibv_fork_init)* fork_init_ = nullptr;
  decltype(ibv_close_device)* close_device_ = nullptr;
  decltype(ibv_query_device)* query_device_ = nullptr;
  decltype(ibv_query_port)* query_port_ = nullptr;
  decltype(_ibv_query_gid_ex)* query_gid_ = nullptr;
  decltype(ibv_get_async_event)* get_async_event_ = nullptr;
  decltype(ibv_ack_async_event)* ack_async_event_ = nullptr;
  decltype(ibv_alloc_pd)* alloc_pd_ = nullptr;
  decltype(ibv_dealloc_pd)* dealloc_pd_ = nullptr;
  decltype(ibv_reg_mr)* reg_mr_ = nullptr;
  RegDmabufMrFunction* reg_dmabuf_mr_ = nullptr;
  decltype(ibv_dereg_mr)* dereg_mr_ = nullptr;
  decltype(ibv_create_ah)* create_ah_ = nullptr;
  decltype(ibv_destroy_ah)* destroy_ah_ = nullptr;
  decltype(ibv_create_comp_channel)* create_comp_channel_ = nullptr;
  decltype(ibv_destroy_comp_channel)* destroy_comp_channel_ = nullptr;
  decltype(ibv_create_cq)* create_cq_ = nullptr;
  decltype(ibv_destroy_cq)* destroy_cq_ = nullptr;
  decltype(ibv_get_cq_event)* get_cq_event_ = nullptr;
  decltype(ibv_ack_cq_events)* ack_cq_events_ = nullptr;
  decltype(ibv_create_srq)* create_srq_ = nullptr;
  decltype(ibv_destroy_srq)* destroy_srq_ = nullptr;
  decltype(ibv_create_qp)* create_qp_ = nullptr;
  decltype(ibv_modify_qp)* modify_qp_ = nullptr;
  decltype(ibv_destroy_qp)* destroy_qp_ = nullptr;
};

int VerbsLibrary::ReadClock(ibv_context* context, CardClockReading* reading) {
  int error = 0;
  const auto read = ReadCardClock([&](uint64_t* ticks) {
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    error = ibv_query_rt_values_ex(context, &values);
    *ticks = static_cast<uint64_t>(values.raw_clock.tv_sec) * 1'000'000'000 +
             static_cast<uint64_t>(values.raw_clock.tv_nsec);  // cards leave the seconds 0
    return error == 0;
  });
  if (read) *reading = *read;
  return error;
}

void ReadCompletion(ibv_cq_ex* cq, VerbsCompletion& completion) {
  completion = {};
  completion.wr_id = cq->wr_id;
  completion.status = cq->status;
  completion.qp_num = ibv_wc_read_qp_num(cq);
  if (cq->status != IBV_WC_SUCCESS) return;  // the rest means nothing
  completion.opcode = ibv_wc_read_opcode(cq);
  completion.byte_len = ibv_wc_read_byte_len(cq);
  completion.wc_flags = ibv_wc_read_wc_flags(cq);
  if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) completion.imm_data = ibv_wc_read_imm_data(cq);
  completion.src_qp = ibv_wc_read_src_qp(cq);
  completion.slid = static_cast<uint16_t>(ibv_wc_read_slid(cq));
  completion.ticks = ibv_wc_read_completion_ts(cq);
}

int VerbsLibrary::PollTimedCq(ibv_cq* cq, int most, VerbsCompletion* completions) {
  auto* const timed = reinterpret_cast<ibv_cq_ex*>(cq);  // the inverse of ibv_cq_ex_to_cq
  ibv_poll_cq_attr attributes{};
  if (const int error = ibv_start_poll(timed, &attributes); error != 0) return error == ENOENT ? 0 : -error;
  int count = 0;
  do {
    ReadCompletion(timed, completions[count++]);
  } while (count < most && ibv_next_poll(timed) == 0);
  ibv_end_poll(timed);
  return count;
}

}  // namespace

absl::StatusOr<VerbsCalls*> LoadVerbsLibrary() {
  // Never destroyed: devices may be open when the process ends. Not on the heap: a plugin may be unloaded before.
  alignas(VerbsLibrary) static std::array<std::byte, sizeof(VerbsLibrary)> memory;
  static VerbsLibrary* const library = new (memory.data()) VerbsLibrary;
  static const std::string problem = library->Load();
  if (!problem.empty()) return absl::UnavailableError(problem);
  return library;
}

}  // namespace paceline
