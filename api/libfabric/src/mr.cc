#include "api/libfabric/src/mr.h"

#include <rdma/fi_endpoint.h>
#include <sys/random.h>

#include <new>
#include <vector>

#include "api/libfabric/src/counter.h"
#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

class Memory : public fid_mr {
 public:
  Memory(Domain* domain, api::RegionId region) : fid_mr{}, domain_(domain), region_(region) { ++domain_->references; }
  ~Memory() {
    const Domain::Guard guard(domain_);
    if (region_ != 0) domain_->paceline().DeregisterMemory(region_);
    domain_->SetCountersOf(region_, {});
    counters_.clear();
    --domain_->references;
  }

  // Counters of what peers do with it; endpoints need not be told.
  int Bind(fid_t other, uint64_t flags) {
    if (other->fclass == FI_CLASS_EP) return 0;
    if (other->fclass != FI_CLASS_CNTR || (flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) return -FI_EINVAL;
    if (!domain_->has_remote_events()) return -FI_EOPNOTSUPP;
    const Domain::Guard guard(domain_);
    counters_.push_back({.kinds = flags, .counter = FromFid<Counter, fid_cntr>(other)});
    domain_->SetCountersOf(region_, counters_);
    return 0;
  }

 private:
  Domain* domain_;
  api::RegionId region_;  // 0: for local use only
  std::vector<CounterBinding> counters_;
};

int Close(fid* object) {
  delete FromFid<Memory, fid_mr>(object);
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = Close,
    .bind = [](fid* object, fid* other, uint64_t flags) { return FromFid<Memory, fid_mr>(object)->Bind(other, flags); },
    .control = [](fid*, int command, void*) { return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS; },
    .ops_open = NotSupported()};

uint8_t AccessOf(uint64_t flags) {
  uint8_t access = api::kLocalOnly;
  if ((flags & FI_REMOTE_READ) != 0) access |= api::kRemoteRead;
  if ((flags & FI_REMOTE_WRITE) != 0) access |= api::kRemoteWrite | api::kRemoteAtomic;
  return access;
}

// Keys of the program's choice where it has one, else random.
int NewKey(const Domain& domain, uint64_t requested, uint64_t* key) {
  *key = requested;
  const bool ours = domain.mr_mode() == FI_MR_BASIC || (domain.mr_mode() & FI_MR_PROV_KEY) != 0;
  return ours && getrandom(key, sizeof(*key), 0) != sizeof(*key) ? -FI_EOTHER : 0;
}

int Register(fid* object, const fi_mr_attr* attributes, uint64_t flags, fid_mr** result) {
  if (object->fclass != FI_CLASS_DOMAIN || attributes->iov_count != 1) return -FI_EINVAL;
  // The kind of memory is of no account without FI_HMEM, which is not offered: programs leave it unset.
  auto* domain = FromFid<Domain, fid_domain>(object);
  if ((flags & FI_RMA_EVENT) != 0 && !domain->has_remote_events()) return -FI_EBADFLAGS;
  const Domain::Guard guard(domain);
  const iovec& memory = *attributes->mr_iov;
  uint64_t key = 0;
  if (const int error = NewKey(*domain, attributes->requested_key, &key); error != 0) return error;
  const bool by_address = domain->mr_mode() == FI_MR_BASIC || (domain->mr_mode() & FI_MR_VIRT_ADDR) != 0;
  const uint64_t origin = by_address ? reinterpret_cast<uint64_t>(memory.iov_base) : attributes->offset;
  uint8_t access = AccessOf(attributes->access);
  api::RegionId region = 0;
  // What peers may not reach, or where there is nothing, needs no key of its own: programs register all of it under the
  // same.
  if (access != api::kLocalOnly && memory.iov_len > 0) {
    if (domain->has_remote_events()) access |= api::kRemoteEvents;
    const auto registered = domain->paceline().RegisterMemoryAs(key, origin, memory.iov_base, memory.iov_len, access);
    if (!registered.ok()) {
      return registered.status().code() == api::StatusCode::kAlreadyExists ? -FI_ENOKEY : -ErrorOf(registered.status());
    }
    region = *registered;
  }
  auto* object_of = new (std::nothrow) Memory(domain, region);
  if (object_of == nullptr) return -FI_ENOMEM;
  object_of->fid = {.fclass = FI_CLASS_MR, .context = attributes->context, .ops = &object_calls};
  object_of->mem_desc = object_of;
  object_of->key = key;
  *result = object_of;
  return 0;
}

int RegisterVector(fid* object, const iovec* vector, size_t count, uint64_t access, uint64_t offset,
                   uint64_t requested_key, uint64_t flags, fid_mr** result, void* context) {
  const fi_mr_attr attributes = {.mr_iov = vector,
                                 .iov_count = count,
                                 .access = access,
                                 .offset = offset,
                                 .requested_key = requested_key,
                                 .context = context,
                                 .auth_key_size = 0,
                                 .auth_key = nullptr,
                                 .iface = FI_HMEM_SYSTEM,
                                 .device = {}};
  return Register(object, &attributes, flags, result);
}

int RegisterOne(fid* object, const void* base, size_t bytes, uint64_t access, uint64_t offset, uint64_t requested_key,
                uint64_t flags, fid_mr** result, void* context) {
  const iovec one = {.iov_base = const_cast<void*>(base), .iov_len = bytes};
  return RegisterVector(object, &one, 1, access, offset, requested_key, flags, result, context);
}

}  // namespace

fi_ops_mr memory_calls = {.size = sizeof(fi_ops_mr), .reg = RegisterOne, .regv = RegisterVector, .regattr = Register};

}  // namespace paceline::libfabric
