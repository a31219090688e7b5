// What libfabric finds in the library: fi_prov_ini, and behind it the list of what is offered and the way to open it.
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "api/libfabric/src/fabric.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/info.h"
#include "api/libfabric/src/interfaces.h"

namespace paceline::libfabric {
namespace {

extern fi_provider provider;

int GetInfo(uint32_t version, const char* node, const char* /*service*/, uint64_t flags, const fi_info* hints,
            fi_info** result) {
  std::string wanted;
  if (node != nullptr) wanted = InterfaceFor(node, (flags & FI_SOURCE) != 0);
  fi_info** last = result;
  *result = nullptr;
  const std::vector<Interface> interfaces = ListInterfaces();
  for (const Interface& interface : interfaces) {
    if (node != nullptr && interfaces.size() > 1 && interface.name != wanted) continue;
    const char* why = nullptr;
    *last = NewInfo(interface.name, version, hints, &why);
    if (*last != nullptr) {
      last = &(*last)->next;
    } else if (why != nullptr) {
      FI_INFO(&provider, FI_LOG_CORE, "%s is not offered: %s\n", interface.name.c_str(), why);
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
  return const_cast<fi_provider*>(paceline::libfabric::Provider());
}
