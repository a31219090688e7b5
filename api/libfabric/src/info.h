// What the provider offers, as libfabric describes it, and what is left of that under a program's hints.
//
// Thread rule: functions without state.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <string>

#include "api/libfabric/src/address.h"
#include "api/libfabric/src/interfaces.h"
#include "paceline/types.h"

namespace paceline::libfabric {

inline constexpr const char* kProviderName = "paceline";
inline constexpr uint32_t kProviderVersion = FI_VERSION(1, 0);
inline constexpr uint32_t kAddressFormat = FI_PROV_SPECIFIC | 0x5043;  // address.h
inline constexpr size_t kInjectBytes = 16384;           // what a send copies so that the program goes on at once
inline constexpr size_t kCopiedBytes = 4096;            // the same, where the program did not ask for it by FI_INJECT
inline constexpr size_t kMostInjectedBytes = 16 << 20;  // of a domain, copied and not yet acknowledged
inline constexpr size_t kQueueSize = 1024;
inline constexpr size_t kMostQueueSize = 4096;              // operations that a connection takes
inline constexpr size_t kLeastCqSize = 2 * kMostQueueSize;  // entries of a completion queue, whatever less is asked for
inline constexpr size_t kIoVectors = 8;                     // pieces of local memory of one operation
inline constexpr size_t kMaxContexts = 16;                  // of each kind, of a scalable endpoint; a power of two
inline constexpr int kMaxContextBits = 8;                   // of addresses, to name receive contexts
inline constexpr uint64_t kMaxMessageBytes = 1ull << 40;
inline constexpr uint64_t kMaxDatagramBytes = kInjectBytes;  // of a message of FI_EP_DGRAM
inline constexpr size_t kDefaultMinMultiReceive = 64;

// Order among the atomics of an endpoint towards a peer, for who asks for it: they then go one by one.
inline constexpr uint64_t kAtomicOrder =
    FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

// Messages without a tag travel with this bit and no other; programs have the 63 below it.
inline constexpr uint64_t kUntagged = 1ull << 63;
inline constexpr uint64_t kTagFormat = 0x5555'5555'5555'5555;

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using OwnedInfo = std::unique_ptr<fi_info, InfoDeleter>;  // of libfabric's allocation

// Of connected endpoints (FI_EP_MSG).
inline bool IsConnected(const fi_info& info) { return info.ep_attr != nullptr && info.ep_attr->type == FI_EP_MSG; }

// Of endpoints for short messages and nothing else (FI_EP_DGRAM).
inline bool IsDatagram(const fi_info& info) { return info.ep_attr != nullptr && info.ep_attr->type == FI_EP_DGRAM; }

// A new fi_info for endpoints of this type (FI_EP_RDM, FI_EP_MSG or FI_EP_DGRAM) in a domain on this interface.
// nullptr: the hints ask for what is not offered, `why` says what.
OwnedInfo NewInfo(fi_ep_type type, const Interface& interface, uint32_t version, const fi_info* hints,
                  const char** why);

// Puts the address where a fi_info has one, in the place of what is there; false: there is no memory.
bool GiveAddress(const Address& address, void** to, size_t* size);

// Capabilities with what those of `caps` imply.
uint64_t ImpliedCapabilities(uint64_t caps);

}  // namespace paceline::libfabric
