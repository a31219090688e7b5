// RDMA cards in memory, behind the calls of libibverbs: so the verbs lane runs without a card, without a clock, and the
// same way each time. One port a card, Ethernet, GID ::ffff:10.0.0.N. As on the wire, a write names the QP that it goes
// to and not the one that it comes from.
//
// What is sent stands on the wire until somebody polls a completion queue; then all of it is delivered in order. A hook
// may drop, park or change what passes. UC and UD lose what finds no QP, no receive or no memory, without a word, as
// cards do. Queues that overrun, work posted to a QP that takes none, and the like, are noted as violations.
//
// Thread rule: one thread. The lanes must go before the cards.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transport/lane/verbs/verbs_calls.h"

namespace paceline::support {

class FakeVerbs final : public VerbsCalls {
 public:
  struct Packet {
    uint32_t from_qp = 0;
    uint32_t to_qp = 0;
    uint32_t from_device = 0;
    uint64_t to_device = 0;
    bool write = false;  // else a datagram
    bool has_immediate = false;
    uint32_t immediate = 0;  // big endian
    uint64_t remote_address = 0;
    uint32_t remote_key = 0;
    uint8_t traffic_class = 0;
    std::vector<uint8_t> bytes;
  };
  enum class Fate { kDeliver, kDrop, kPark };

  explicit FakeVerbs(uint32_t devices, int max_cqe = 65536);
  ~FakeVerbs() override;

  std::function<Fate(Packet&)> hook;
  void ReleaseParked();
  void SetPort(uint32_t device, bool up);
  // The card says something of itself, as that its completion queue is broken.
  void TellDevice(uint32_t device, ibv_event_type type);
  // From here on the card changes no QP any more, or refuses so many calls: whatever state they are in they keep.
  void Jam(uint32_t device, uint32_t calls = ~0u) { devices_[device].refused_calls = calls; }
  // The QP fails, and its card says so. Receives that were posted to it come back.
  void FailQp(uint32_t number);
  // From here on a connected QP gets the number of the last one that was destroyed, as some cards give them.
  void ReuseNumbers() { reuse_numbers_ = true; }
  // Numbers of the connected QPs of a device that nobody has stopped, the oldest first.
  std::vector<uint32_t> PathQps(uint32_t device) const;
  ibv_qp_type TypeOf(uint32_t qp_number) const;
  // From here on the card answers the choice of a UDP source port with this; before: EOPNOTSUPP.
  void AnswerUdpPorts(uint32_t device, int error) { devices_[device].udp_port_error = error; }
  uint32_t FlowLabelOf(uint32_t qp_number) const;
  // 0: nobody has chosen one.
  uint16_t UdpPortOf(uint32_t qp_number) const;
  // From here on the card has a clock, by which completions are told: it stood at 1000 when `host`'s was at 0, says
  // that it counts at `kilohertz`, and counts `per_million` faster.
  void OfferClock(uint32_t device, uint64_t kilohertz, double per_million, std::function<Time()> host);
  uint64_t TicksOf(uint32_t device) const;
  // From here on cards say that they have so many ports, which are all alike.
  void CountPorts(uint8_t ports) { ports_ = ports; }
  // From here on cards make no QPs that shall carry more bytes than so many in their work requests.
  void LimitInline(uint32_t bytes) { most_inline_ = bytes; }
  // From here on cards take no dma-bufs.
  void RefuseDmaBufs() { takes_dma_bufs_ = false; }
  // How memory came to be registered, in order, as (address, bytes, by dma-buf).
  struct Registration {
    uint64_t address = 0;
    size_t bytes = 0;
    bool by_dma_buf = false;
  };
  const std::vector<Registration>& registrations() const { return registrations_; }
  // Payloads that a card has read out of dma-bufs.
  uint64_t dma_buf_reads() const { return dma_buf_reads_; }
  void SetGids(uint32_t device, bool present) { devices_[device].gids = present; }
  // From here on the cards' addresses are 2001:db8::N instead.
  void UseIpv6() { ipv6_ = true; }
  // From here on the cards' ports are InfiniBand's, with this LID.
  void UseInfiniBand(uint16_t lid) { lid_ = lid; }

  const std::vector<std::string>& violations() const { return violations_; }
  // Objects made and not destroyed.
  size_t objects() const;
  uint64_t writes_placed() const { return writes_placed_; }

  ibv_device** GetDeviceList(int* count) override;
  void FreeDeviceList(ibv_device** list) override { delete[] list; }
  ibv_context* OpenDevice(ibv_device* device) override;
  int CloseDevice(ibv_context* context) override;
  int QueryDevice(ibv_context* context, ibv_device_attr* attributes) override;
  int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) override;
  int QueryGid(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry) override;
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) override;
  void AckAsyncEvent(ibv_async_event*) override {}
  ibv_pd* AllocPd(ibv_context* context) override;
  int DeallocPd(ibv_pd* pd) override;
  ibv_mr* RegMr(ibv_pd* pd, void* base, size_t bytes, int access) override;
  ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access) override;
  int DeregMr(ibv_mr* mr) override;
  ibv_ah* CreateAh(ibv_pd* pd, ibv_ah_attr* attributes) override;
  int DestroyAh(ibv_ah* ah) override;
  ibv_comp_channel* CreateCompChannel(ibv_context* context) override;
  int DestroyCompChannel(ibv_comp_channel* channel) override;
  ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) override;
  int DestroyCq(ibv_cq* cq) override;
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq) override;
  void AckCqEvents(ibv_cq*, unsigned) override {}
  int ReqNotifyCq(ibv_cq* cq) override;
  int PollCq(ibv_cq* cq, int most, ibv_wc* completions) override;
  VerbsClockFacts QueryClock(ibv_context* context) override;
  int ReadClock(ibv_context* context, CardClockReading* reading) override;
  ibv_cq* CreateTimedCq(ibv_context* context, int entries, ibv_comp_channel* channel) override;
  int PollTimedCq(ibv_cq* cq, int most, VerbsCompletion* completions) override;
  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attributes) override;
  int DestroySrq(ibv_srq* srq) override;
  int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) override;
  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attributes) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) override;
  int DestroyQp(ibv_qp* qp) override;
  int SetUdpPort(ibv_qp* qp, uint16_t port) override;
  int PostSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override;
  int PostRecv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override;

 private:
  struct Cq;
  struct Srq;
  struct Qp;
  struct Context;
  struct Ah;
  struct Device {
    ibv_device device{};
    bool up = true;
    bool gids = true;
    uint32_t refused_calls = 0;
    int udp_port_error = EOPNOTSUPP;
    uint64_t kilohertz = 0;  // of its clock; 0: it has none
    double per_million = 0;
    std::function<Time()> host;
    std::vector<uint32_t> free_numbers;  // of its connected QPs, the last destroyed at the end
    std::set<Context*> open;
  };
  // What the card knows of a registration beside what its owner sees: where it reaches the bytes.
  struct Mr : ibv_mr {
    uint8_t* bytes = nullptr;
    uint8_t* mapped = nullptr;  // of a dma-buf: from the beginning of it
    size_t mapped_bytes = 0;
  };
  struct Receive {
    uint64_t id = 0;
    uint64_t address = 0;
    uint32_t bytes = 0;
  };

  void Violate(const std::string& what) { violations_.push_back(what); }
  void Deliver();
  void DeliverWrite(const Packet& packet, Qp& to);
  void DeliverDatagram(const Packet& packet, Qp& to);
  void Complete(Cq& cq, const ibv_wc& completion);
  int Poll(Cq& cq, int most, VerbsCompletion* completions);
  void Fail(Qp& qp);
  static void Tell(Context* context, const ibv_async_event& event);
  Qp* FindQp(uint32_t number);
  std::array<uint8_t, 16> GidOf(uint32_t device) const;
  // Puts the network header in front of what arrives.
  void WriteRoute(const Packet& packet, uint8_t* at) const;
  ibv_mr* Add(Mr* mr, ibv_pd* pd, uint64_t address, size_t bytes);

  int max_cqe_;
  uint8_t ports_ = 1;
  uint32_t most_inline_ = 1024;
  std::vector<Device> devices_;
  std::deque<Packet> wire_;
  std::vector<Packet> parked_;
  std::map<uint32_t, Qp*> qps_;
  std::map<uint32_t, Mr*> mrs_;  // by key
  std::vector<Registration> registrations_;
  bool takes_dma_bufs_ = true;
  bool ipv6_ = false;
  uint16_t lid_ = 0;  // 0: they are of Ethernet
  uint64_t dma_buf_reads_ = 0;
  std::set<const void*> others_;  // contexts, domains, channels, queues, routes
  uint32_t next_qp_ = 17;
  bool reuse_numbers_ = false;
  uint32_t next_key_ = 0x100;
  uint64_t writes_placed_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace paceline::support
