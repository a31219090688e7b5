#include "api/libfabric/src/fabric.h"

#include <rdma/fi_eq.h>

#include <new>

#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/eq.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/passive.h"
#include "api/libfabric/src/wait_set.h"

namespace paceline::libfabric {
namespace {

struct Fabric : fid_fabric {
  Requests requests;
};

int Close(fid* object) {
  delete FromFid<Fabric, fid_fabric>(object);
  return 0;
}

int TryWait(fid_fabric*, fid** objects, int count) {
  for (int i = 0; i < count; ++i) {
    if (const int result = TryWaitFor(objects[i]); result != 0) return result;
  }
  return 0;
}

fi_ops object_calls = OnlyClose(Close);
fi_ops_fabric calls = {.size = sizeof(fi_ops_fabric),
                       .domain = OpenDomain,
                       .passive_ep = OpenPassive,
                       .eq_open = OpenEq,
                       .wait_open = OpenWaitSet,
                       .trywait = TryWait,
                       .domain2 = NotSupported()};

}  // namespace

Requests& RequestsOf(fid_fabric* fabric) { return static_cast<Fabric*>(fabric)->requests; }

int OpenFabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  auto* object = new (std::nothrow) Fabric();
  if (object == nullptr) return -FI_ENOMEM;
  object->fid = {.fclass = FI_CLASS_FABRIC, .context = context, .ops = &object_calls};
  object->ops = &calls;
  object->api_version = attributes->api_version;
  *fabric = object;
  return 0;
}

}  // namespace paceline::libfabric
