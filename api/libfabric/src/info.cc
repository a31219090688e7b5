#include "api/libfabric/src/info.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace paceline::libfabric {
namespace {

constexpr uint64_t kTransmitCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_TRIGGER | FI_NAMED_RX_CTX;
constexpr uint64_t kReceiveCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE |
                                  FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV | FI_TRIGGER | FI_RMA_EVENT |
                                  FI_NAMED_RX_CTX;
// What needs addresses of peers, or several contexts.
constexpr uint64_t kUnconnectedOnly = FI_SOURCE | FI_DIRECTED_RECV | FI_NAMED_RX_CTX;
// What is not a message without a tag, or needs several contexts.
constexpr uint64_t kNoDatagram = FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |
                                 FI_REMOTE_WRITE | FI_RMA_EVENT | FI_NAMED_RX_CTX;
constexpr uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr uint64_t kCaps = kTransmitCaps | kReceiveCaps | kDomainCaps;
constexpr uint64_t kAskedForOnly = FI_RMA_EVENT | FI_TRIGGER | FI_NAMED_RX_CTX;  // cost something, or mean nothing else
constexpr uint64_t kTransmitFlags =
    FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
constexpr uint64_t kReceiveFlags = FI_COMPLETION | FI_MULTI_RECV;
constexpr uint64_t kOrder = FI_ORDER_SAS;
constexpr int kRegistration = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;

template <typename Value>
bool Within(Value asked, Value offered) {
  return (asked & ~offered) == 0;
}

uint64_t CapsOf(fi_ep_type type) {
  switch (type) {
    case FI_EP_MSG:
      return kCaps & ~kUnconnectedOnly;
    case FI_EP_DGRAM:
      return kCaps & ~kNoDatagram;
    default:
      return kCaps;
  }
}

uint64_t OrderOf(fi_ep_type type) { return type == FI_EP_DGRAM ? kOrder : kOrder | kAtomicOrder; }

uint64_t MaxMessageBytes(fi_ep_type type) { return type == FI_EP_DGRAM ? kMaxDatagramBytes : kMaxMessageBytes; }

// nullptr: fine.
const char* CheckEndpoint(const fi_ep_attr& hints, fi_ep_type type) {
  if (hints.type != FI_EP_UNSPEC && hints.type != type) return "endpoint type";
  if (hints.protocol != FI_PROTO_UNSPEC) return "protocol: only FI_PROTO_UNSPEC";
  if (hints.max_msg_size > MaxMessageBytes(type)) return "max_msg_size: at most 1 TiB, or 16384 with FI_EP_DGRAM";
  for (const size_t count : {hints.tx_ctx_cnt, hints.rx_ctx_cnt}) {
    if (count == FI_SHARED_CONTEXT) continue;
    if (count > kMaxContexts) return "transmit and receive contexts: at most 16 each";
    if (count > 1 && type != FI_EP_RDM) return "transmit and receive contexts: one each, but of FI_EP_RDM";
  }
  if (hints.auth_key_size != 0) return "authorization keys: use PACELINE_KEY_FILE";
  return nullptr;
}

const char* CheckTransmit(const fi_tx_attr& hints, fi_ep_type type) {
  if (!Within(hints.caps, CapsOf(type) & (kTransmitCaps | kDomainCaps))) return "capabilities of the transmit side";
  if (!Within(hints.op_flags, kTransmitFlags)) return "default flags of the transmit side";
  if (!Within(hints.msg_order, OrderOf(type))) return "message order: only FI_ORDER_SAS and FI_ORDER_ATOMIC_*";
  if (hints.inject_size > kInjectBytes) return "inject_size: at most 16384";
  if (hints.comp_order != FI_ORDER_NONE) return "order of completions: none";
  if (hints.size > kMostQueueSize) return "size of the transmit side: at most 4096";
  if (hints.iov_limit > kIoVectors) return "iov_limit: at most 8";
  if (hints.rma_iov_limit > 1) return "rma_iov_limit: at most 1";
  return nullptr;
}

const char* CheckReceive(const fi_rx_attr& hints, fi_ep_type type) {
  if (!Within(hints.caps, CapsOf(type) & (kReceiveCaps | kDomainCaps))) return "capabilities of the receive side";
  if (!Within(hints.op_flags, kReceiveFlags)) return "default flags of the receive side";
  if (!Within(hints.msg_order, OrderOf(type))) return "message order: only FI_ORDER_SAS and FI_ORDER_ATOMIC_*";
  if (hints.comp_order != FI_ORDER_NONE) return "order of completions: none";
  if (hints.size > kMostQueueSize) return "size of the receive side: at most 4096";
  if (hints.iov_limit > kIoVectors) return "iov_limit: at most 8";
  return nullptr;
}

const char* CheckDomain(const fi_domain_attr& hints, const std::string& name) {
  if (hints.name != nullptr && name != hints.name) return "domain name";
  if (hints.mr_key_size > 8) return "mr_key_size: at most 8";
  if (hints.cq_data_size > 8) return "cq_data_size: at most 8";
  if (!Within(hints.caps, kDomainCaps)) return "capabilities of the domain";
  if (hints.auth_key_size != 0) return "authorization keys: use PACELINE_KEY_FILE";
  return nullptr;
}

// A fabric is a network. Programs take endpoints of one fabric to reach each other: Open MPI gives the ranks of a host
// its domains in turn.
std::string FabricName(const Interface& interface) {
  return interface.networks.empty() ? kProviderName : interface.networks;
}

const char* Check(const fi_info& hints, const Interface& interface, fi_ep_type type) {
  if (!Within(hints.caps, CapsOf(type))) return "capabilities";
  if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != kAddressFormat) return "address format";
  const char* why = nullptr;
  if (hints.ep_attr != nullptr) why = CheckEndpoint(*hints.ep_attr, type);
  if (why == nullptr && hints.tx_attr != nullptr) why = CheckTransmit(*hints.tx_attr, type);
  if (why == nullptr && hints.rx_attr != nullptr) why = CheckReceive(*hints.rx_attr, type);
  if (why == nullptr && hints.domain_attr != nullptr) why = CheckDomain(*hints.domain_attr, interface.name);
  if (why == nullptr && hints.fabric_attr != nullptr && hints.fabric_attr->name != nullptr &&
      FabricName(interface) != hints.fabric_attr->name) {
    why = "fabric name";
  }
  return why;
}

// Random keys, which nobody can guess, where the program can do with them; so it names memory by addresses too. Not
// with FI_RMA_EVENT: programs that tell regions apart by what is written there give their peers no keys, but agree on
// them beforehand.
int RegistrationMode(const fi_info* hints, uint32_t version) {
  if (hints == nullptr || hints->domain_attr == nullptr)
    return FI_VERSION_LT(version, FI_VERSION(1, 5)) ? FI_MR_SCALABLE : 0;
  const int asked = hints->domain_attr->mr_mode;
  if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE) return asked;
  if (FI_VERSION_LT(version, FI_VERSION(1, 5))) return FI_MR_SCALABLE;
  return (hints->caps & FI_RMA_EVENT) != 0 ? 0 : asked & kRegistration;
}

void FillDomain(fi_domain_attr& domain, const fi_domain_attr* hints, const std::string& name) {
  domain.name = strdup(name.c_str());
  domain.threading = FI_THREAD_SAFE;
  domain.control_progress = domain.data_progress = FI_PROGRESS_MANUAL;
  domain.av_type = FI_AV_UNSPEC;  // both
  if (hints != nullptr) {
    if (hints->threading != FI_THREAD_UNSPEC) domain.threading = hints->threading;
    if (hints->control_progress != FI_PROGRESS_UNSPEC) domain.control_progress = hints->control_progress;
    if (hints->data_progress != FI_PROGRESS_UNSPEC) domain.data_progress = hints->data_progress;
    if (hints->av_type != FI_AV_UNSPEC) domain.av_type = hints->av_type;
  }
  domain.resource_mgmt = FI_RM_ENABLED;
  domain.mr_key_size = 8;
  domain.cq_data_size = 8;
  domain.cq_cnt = domain.ep_cnt = domain.tx_ctx_cnt = domain.rx_ctx_cnt = domain.cntr_cnt = 1024;
  domain.max_ep_tx_ctx = domain.max_ep_rx_ctx = kMaxContexts;
  domain.max_ep_stx_ctx = domain.max_ep_srx_ctx = 1024;
  domain.mr_iov_limit = 1;
  domain.mr_cnt = 1u << 20;
  domain.caps = kDomainCaps;
}

}  // namespace

uint64_t ImpliedCapabilities(uint64_t caps) {
  if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & (FI_SEND | FI_RECV)) == 0) caps |= FI_SEND | FI_RECV;
  constexpr uint64_t kOneSided = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((caps & (FI_RMA | FI_ATOMIC)) != 0 && (caps & kOneSided) == 0) caps |= kOneSided;
  return caps;
}

bool GiveAddress(const Address& address, void** to, size_t* size) {
  void* bytes = std::malloc(Address::kBytes);  // libfabric frees it
  if (bytes == nullptr) return false;
  std::memcpy(bytes, address.bytes.data(), Address::kBytes);
  std::free(std::exchange(*to, bytes));
  *size = Address::kBytes;
  return true;
}

OwnedInfo NewInfo(fi_ep_type type, const Interface& interface, uint32_t version, const fi_info* hints,
                  const char** why) {
  if (hints != nullptr) {
    *why = Check(*hints, interface, type);
    if (*why != nullptr) return nullptr;
  }
  OwnedInfo info(fi_allocinfo());
  if (info == nullptr) return nullptr;
  const uint64_t all = CapsOf(type) & ~kAskedForOnly;
  info->caps = hints == nullptr || hints->caps == 0 ? all : ImpliedCapabilities(hints->caps) | kDomainCaps;
  info->addr_format = kAddressFormat;
  fi_tx_attr& tx = *info->tx_attr;
  tx.caps = info->caps & kTransmitCaps;
  tx.op_flags = hints == nullptr || hints->tx_attr == nullptr ? 0 : hints->tx_attr->op_flags;
  tx.msg_order = kOrder | (hints == nullptr || hints->tx_attr == nullptr ? 0 : hints->tx_attr->msg_order);
  tx.inject_size = kInjectBytes;
  tx.size = hints == nullptr || hints->tx_attr == nullptr ? kQueueSize : std::max(kQueueSize, hints->tx_attr->size);
  tx.iov_limit = kIoVectors;
  tx.rma_iov_limit = 1;
  fi_rx_attr& rx = *info->rx_attr;
  rx.caps = info->caps & kReceiveCaps;
  rx.op_flags = hints == nullptr || hints->rx_attr == nullptr ? 0 : hints->rx_attr->op_flags;
  rx.msg_order = kOrder | (hints == nullptr || hints->rx_attr == nullptr ? 0 : hints->rx_attr->msg_order);
  rx.size = hints == nullptr || hints->rx_attr == nullptr ? kQueueSize : std::max(kQueueSize, hints->rx_attr->size);
  rx.iov_limit = kIoVectors;
  fi_ep_attr& ep = *info->ep_attr;
  ep.type = type;
  ep.protocol = FI_PROTO_UNSPEC;
  ep.protocol_version = 1;
  ep.max_msg_size = MaxMessageBytes(type);
  ep.mem_tag_format = kTagFormat;
  if ((tx.msg_order & kAtomicOrder) != 0) {
    ep.max_order_raw_size = ep.max_order_war_size = ep.max_order_waw_size = api::kMaxAtomicBytes;
  }
  ep.tx_ctx_cnt = ep.rx_ctx_cnt = 1;
  if (hints != nullptr && hints->ep_attr != nullptr) {
    if (hints->ep_attr->tx_ctx_cnt != 0) ep.tx_ctx_cnt = hints->ep_attr->tx_ctx_cnt;
    if (hints->ep_attr->rx_ctx_cnt != 0) ep.rx_ctx_cnt = hints->ep_attr->rx_ctx_cnt;
  }
  FillDomain(*info->domain_attr, hints == nullptr ? nullptr : hints->domain_attr, interface.name);
  info->domain_attr->mr_mode = RegistrationMode(hints, version);
  info->fabric_attr->name = strdup(FabricName(interface).c_str());
  info->fabric_attr->prov_version = kProviderVersion;
  info->fabric_attr->api_version = version;
  return info;
}

}  // namespace paceline::libfabric
