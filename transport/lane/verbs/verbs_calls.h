// The calls of libibverbs that the lane makes, each with the meaning of its manual page (ibv_..., rdma-core) where
// nothing else is said. The lane knows no other way to a card: the library is behind verbs_library.h, and tests put
// cards of their own here.
//
// Thread rule: as libibverbs; an object made here is used by one thread at a time.
// Ownership: the lane destroys what it has made, before the calls themselves go.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "transport/lane/card_clock_reading.h"

namespace paceline {

// A completion, and when it came: what the card's clock showed, on queues of CreateTimedCq.
struct VerbsCompletion : ibv_wc {
  uint64_t ticks;
};

// What a card says of its clock (ibv_query_device_ex).
struct VerbsClockFacts {
  uint64_t mask = 0;       // the bits that it counts with; 0: completions have no times
  uint64_t kilohertz = 0;  // 0: not known
};

class VerbsCalls {
 public:
  virtual ~VerbsCalls() = default;

  virtual ibv_device** GetDeviceList(int* count) = 0;
  virtual void FreeDeviceList(ibv_device** list) = 0;
  virtual ibv_context* OpenDevice(ibv_device* device) = 0;
  virtual int CloseDevice(ibv_context* context) = 0;
  virtual int QueryDevice(ibv_context* context, ibv_device_attr* attributes) = 0;
  virtual int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) = 0;
  virtual int QueryGid(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry) = 0;
  virtual int GetAsyncEvent(ibv_context* context, ibv_async_event* event) = 0;
  virtual void AckAsyncEvent(ibv_async_event* event) = 0;

  virtual ibv_pd* AllocPd(ibv_context* context) = 0;
  virtual int DeallocPd(ibv_pd* pd) = 0;
  virtual ibv_mr* RegMr(ibv_pd* pd, void* base, size_t bytes, int access) = 0;
  // nullptr with errno EOPNOTSUPP also where the library does not have it: before rdma-core 34.
  virtual ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access) = 0;
  virtual int DeregMr(ibv_mr* mr) = 0;
  virtual ibv_ah* CreateAh(ibv_pd* pd, ibv_ah_attr* attributes) = 0;
  virtual int DestroyAh(ibv_ah* ah) = 0;

  virtual ibv_comp_channel* CreateCompChannel(ibv_context* context) = 0;
  virtual int DestroyCompChannel(ibv_comp_channel* channel) = 0;
  virtual ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) = 0;
  virtual int DestroyCq(ibv_cq* cq) = 0;
  virtual int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq) = 0;
  virtual void AckCqEvents(ibv_cq* cq, unsigned count) = 0;
  virtual int ReqNotifyCq(ibv_cq* cq) = 0;
  virtual int PollCq(ibv_cq* cq, int most, ibv_wc* completions) = 0;

  virtual VerbsClockFacts QueryClock(ibv_context* context) = 0;
  // 0 or an error (ibv_query_rt_values_ex).
  virtual int ReadClock(ibv_context* context, CardClockReading* reading) = 0;
  // A queue whose completions have times (ibv_create_cq_ex); nullptr with errno EOPNOTSUPP where there are none. It is
  // polled with PollTimedCq alone, which fills in what the lane needs: of completions with an error wr_id, status and
  // qp_num, of others also opcode, byte_len, imm_data, src_qp, wc_flags, slid and the time.
  virtual ibv_cq* CreateTimedCq(ibv_context* context, int entries, ibv_comp_channel* channel) = 0;
  virtual int PollTimedCq(ibv_cq* cq, int most, VerbsCompletion* completions) = 0;

  virtual ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attributes) = 0;
  virtual int DestroySrq(ibv_srq* srq) = 0;
  virtual int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) = 0;
  virtual ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attributes) = 0;
  virtual int ModifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) = 0;
  virtual int DestroyQp(ibv_qp* qp) = 0;
  // mlx5dv_modify_qp_udp_sport, of a connected QP that is ready to send. EOPNOTSUPP where there is no such thing.
  virtual int SetUdpPort(ibv_qp* qp, uint16_t port) = 0;
  virtual int PostSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) = 0;
  virtual int PostRecv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) = 0;
};

}  // namespace paceline
