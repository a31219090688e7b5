#include "api/libfabric/src/alias.h"

#include <new>

#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

struct Alias : EndpointFid {
  explicit Alias(Endpoint* of) : EndpointFid(*of), use(of) {}
  Use<Endpoint> use;
};

int Close(fid* object) {
  delete FromFid<Alias, fid_ep>(object);
  return 0;
}

fi_ops object_calls = OnlyClose(Close);

}  // namespace

int OpenAlias(Endpoint* endpoint, const struct fi_alias& asked) {
  const uint64_t side = asked.flags & (FI_TRANSMIT | FI_RECV);
  if (side != FI_TRANSMIT && side != FI_RECV) return -FI_EINVAL;
  auto* alias = new (std::nothrow) Alias(endpoint);
  if (alias == nullptr) return -FI_ENOMEM;
  alias->fid.ops = &object_calls;
  (side == FI_TRANSMIT ? alias->transmit_flags : alias->receive_flags) = asked.flags & ~side;
  *asked.fid = &alias->fid;
  return 0;
}

}  // namespace paceline::libfabric
