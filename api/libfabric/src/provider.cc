// What libfabric finds in the library: fi_prov_ini, and behind it the list of what is offered and the way to open it.
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "api/libfabric/src/fabric.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/info.h"
#include "api/libfabric/src/interfaces.h"
#include "api/libfabric/src/names.h"
#include "api/libfabric/src/parameters.h"

namespace paceline::libfabric {
namespace {

extern fi_provider provider;

// Of fi_getinfo, set by libfabric's own providers that look for one to stand on (ofi_rxm: unconnected endpoints made of
// connected ones, or ofi_rxd: of FI_EP_DGRAM). What they would add is here already, and would be listed before it.
constexpr uint64_t kAskedByProvider = 1ull << 59;

// What was named, and addresses of ours that the program has put into its hints. An own address there is in any case,
// as programs look at it.
void SetAddresses(fi_info& info, const Interface& interface, const Named& named, const fi_info* hints) {
  const auto ours = [](const void* address, size_t size) { return address != nullptr && size == Address::kBytes; };
  if (!named.names_own() && hints != nullptr && ours(hints->src_addr, hints->src_addrlen)) {
    GiveAddress(Address::From(hints->src_addr), &info.src_addr, &info.src_addrlen);
  } else if (const auto own = ListeningAddress(interface, named)) {
    GiveAddress(*own, &info.src_addr, &info.src_addrlen);
  }
  if (named.peer.has_value()) {
    GiveAddress(*named.peer, &info.dest_addr, &info.dest_addrlen);
  } else if (hints != nullptr && ours(hints->dest_addr, hints->dest_addrlen)) {
    GiveAddress(Address::From(hints->dest_addr), &info.dest_addr, &info.dest_addrlen);
  }
}

int GetInfo(uint32_t version, const char* node, const char* service, uint64_t flags, const fi_info* hints,
            fi_info** result) {
  fi_info** last = result;
  *result = nullptr;
  const auto named = Resolve(node, service, flags, hints);
  if (!named.has_value()) {
    FI_INFO(&provider, FI_LOG_CORE, "node \"%s\", service \"%s\": not found or not reachable\n",
            node == nullptr ? "" : node, service == nullptr ? "" : service);
    return -FI_ENODATA;
  }
  const std::vector<Interface> interfaces = ListInterfaces();
  for (const fi_ep_type type : {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM}) {
    if (type != FI_EP_RDM && (flags & kAskedByProvider) != 0) continue;
    for (const Interface& interface : interfaces) {
      if (!named->interface.empty() && interfaces.size() > 1 && interface.name != named->interface) continue;
      const char* why = nullptr;
      if (OwnedInfo info = NewInfo(type, interface, version, hints, &why)) {
        SetAddresses(*info, interface, *named, hints);
        *last = info.release();
        last = &(*last)->next;
      } else if (why != nullptr) {
        FI_INFO(&provider, FI_LOG_CORE, "%s is not offered with %s: %s\n", interface.name.c_str(),
                fi_tostr(&type, FI_TYPE_EP_TYPE), why);
      }
    }
  }
  return *result == nullptr ? -FI_ENODATA : 0;
}

fi_provider provider = {
    .version = kProviderVersion,
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .context = {},
    .name = kProviderName,
    .getinfo = GetInfo,
    .fabric = OpenFabric,
    .cleanup = [] {},
};

}  // namespace

const fi_provider* Provider() { return &provider; }

}  // namespace paceline::libfabric

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() {
  paceline::libfabric::DefineParameters();
  return const_cast<fi_provider*>(paceline::libfabric::Provider());
}
