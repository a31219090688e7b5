// What is posted to the cards in memory, and the wire between them.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/support/fake_verbs_objects.h"

namespace paceline::support {
namespace {

constexpr uint32_t kRouteBytes = 40;

bool Covers(const ibv_mr& mr, uint64_t address, uint64_t bytes) {
  const auto base = reinterpret_cast<uint64_t>(mr.addr);
  return address >= base && bytes <= mr.length && address - base <= mr.length - bytes;
}

}  // namespace

int FakeVerbs::PostRecv(ibv_qp* handle, ibv_recv_wr* first, ibv_recv_wr**) {
  auto& qp = *static_cast<Qp*>(handle);
  for (; first != nullptr; first = first->next) {
    qp.receives.push_back({first->wr_id, first->sg_list[0].addr, first->sg_list[0].length});
  }
  if (qp.receives.size() > qp.most_receives) Violate("a receive queue overran");
  return 0;
}

int FakeVerbs::PostSend(ibv_qp* handle, ibv_send_wr* first, ibv_send_wr** bad) {
  auto& qp = *static_cast<Qp*>(handle);
  for (; first != nullptr; first = first->next) {
    *bad = first;
    if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_ERR) {
      Violate("work was posted to a QP that takes none");
      return EINVAL;
    }
    if (qp.posted - qp.retired >= qp.most_sends) Violate("a send queue overran");
    ++qp.posted;
    ibv_wc done{};
    done.wr_id = first->wr_id;
    done.opcode = first->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
    done.qp_num = qp.qp_num;
    done.vendor_err = static_cast<uint32_t>(qp.posted);
    if (qp.state == IBV_QPS_ERR || !devices_[qp.device].up) {
      qp.state = IBV_QPS_ERR;
      done.status = IBV_WC_WR_FLUSH_ERR;
      Complete(*Cq::Of(qp.send_cq), done);
      continue;
    }
    Packet packet;
    packet.from_qp = qp.qp_num;
    packet.from_device = qp.device;
    packet.write = qp.qp_type != IBV_QPT_UD;
    packet.has_immediate = first->opcode != IBV_WR_SEND;
    packet.immediate = first->imm_data;
    packet.remote_address = first->wr.rdma.remote_addr;
    packet.remote_key = first->wr.rdma.rkey;
    packet.to_qp = qp.to_qp;
    packet.traffic_class = qp.traffic_class;
    if (!packet.write) {
      const auto& route = *static_cast<Ah*>(first->wr.ud.ah);
      packet.to_qp = first->wr.ud.remote_qpn;
      packet.to_device = route.to_device;
      packet.traffic_class = route.traffic_class;
    }
    for (int i = 0; i < first->num_sge; ++i) {
      const ibv_sge& piece = first->sg_list[i];
      const auto mr = mrs_.find(piece.lkey);
      const bool inside = mr != mrs_.end() && Covers(*mr->second, piece.addr, piece.length);
      const bool inlined = (first->send_flags & IBV_SEND_INLINE) != 0;
      if (inlined && piece.length > std::min(Qp::kInlineBytes, most_inline_)) Violate("more inline than the QP takes");
      if (!inlined && !inside) Violate("a payload outside of registered memory");
      const auto* bytes = reinterpret_cast<const uint8_t*>(piece.addr);
      if (!inlined && inside) {
        bytes = mr->second->bytes + (piece.addr - reinterpret_cast<uint64_t>(mr->second->addr));
        if (mr->second->mapped != nullptr) ++dma_buf_reads_;
      }
      packet.bytes.insert(packet.bytes.end(), bytes, bytes + piece.length);
    }
    wire_.push_back(std::move(packet));
    if ((first->send_flags & IBV_SEND_SIGNALED) != 0) Complete(*Cq::Of(qp.send_cq), done);
  }
  return 0;
}

// ---- the wire

void FakeVerbs::Deliver() {
  while (!wire_.empty()) {
    Packet packet = std::move(wire_.front());
    wire_.pop_front();
    const Fate fate = hook ? hook(packet) : Fate::kDeliver;
    if (fate == Fate::kPark) parked_.push_back(packet);
    if (fate != Fate::kDeliver) continue;
    Qp* to = FindQp(packet.to_qp);
    if (to == nullptr || !devices_[to->device].up || !devices_[packet.from_device].up) continue;
    if (to->state != IBV_QPS_RTR && to->state != IBV_QPS_RTS) continue;
    packet.write ? DeliverWrite(packet, *to) : DeliverDatagram(packet, *to);
  }
}

void FakeVerbs::DeliverWrite(const Packet& packet, Qp& to) {
  if (to.to_device != packet.from_device || to.srq == nullptr) return;
  auto& srq = *static_cast<Srq*>(to.srq);
  if (srq.receives.empty()) return;
  if (!packet.bytes.empty()) {
    const auto mr = mrs_.find(packet.remote_key);
    if (mr == mrs_.end() || !Covers(*mr->second, packet.remote_address, packet.bytes.size())) return;
    std::memcpy(mr->second->bytes + (packet.remote_address - reinterpret_cast<uint64_t>(mr->second->addr)),
                packet.bytes.data(), packet.bytes.size());
  }
  ++writes_placed_;
  ibv_wc arrived{};
  arrived.wr_id = srq.receives.front().id;
  srq.receives.pop_front();
  arrived.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  arrived.byte_len = static_cast<uint32_t>(packet.bytes.size());
  arrived.imm_data = packet.immediate;
  arrived.qp_num = to.qp_num;
  arrived.wc_flags = IBV_WC_WITH_IMM;
  Complete(*Cq::Of(to.recv_cq), arrived);
}

void FakeVerbs::WriteRoute(const Packet& packet, uint8_t* at) const {
  const std::array<uint8_t, 16> source = GidOf(packet.from_device);
  std::memset(at, 0, kRouteBytes);
  if (ipv6_) {
    at[0] = static_cast<uint8_t>(0x60 | packet.traffic_class >> 4);
    at[1] = static_cast<uint8_t>(packet.traffic_class << 4);
    std::memcpy(at + 8, source.data(), source.size());
  } else {  // an IPv4 header in the second half; the first is undefined, and may look like an IPv6 header
    std::memset(at, 0x66, 20);
    at[20] = 0x45;
    at[21] = packet.traffic_class;
    std::memcpy(at + 32, source.data() + 12, 4);
  }
}

void FakeVerbs::DeliverDatagram(const Packet& packet, Qp& to) {
  if (to.qp_type != IBV_QPT_UD || to.device != packet.to_device || to.receives.empty()) return;
  const Receive receive = to.receives.front();
  to.receives.pop_front();
  ibv_wc arrived{};
  arrived.wr_id = receive.id;
  arrived.opcode = IBV_WC_RECV;
  arrived.qp_num = to.qp_num;
  arrived.src_qp = packet.from_qp;
  if (receive.bytes < kRouteBytes + packet.bytes.size()) {
    arrived.status = IBV_WC_LOC_LEN_ERR;
  } else {
    auto* at = reinterpret_cast<uint8_t*>(receive.address);
    WriteRoute(packet, at);
    if (!packet.bytes.empty()) std::memcpy(at + kRouteBytes, packet.bytes.data(), packet.bytes.size());
    arrived.byte_len = static_cast<uint32_t>(kRouteBytes + packet.bytes.size());
    arrived.wc_flags = IBV_WC_GRH;
    if (packet.has_immediate) {
      arrived.wc_flags |= IBV_WC_WITH_IMM;
      arrived.imm_data = packet.immediate;
    }
  }
  Complete(*Cq::Of(to.recv_cq), arrived);
}

}  // namespace paceline::support
