#include "api/libfabric/src/scalable.h"

#include <rdma/fi_cm.h>
#include <sys/random.h>

#include <memory>
#include <new>

#include "api/libfabric/src/av.h"
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/use.h"
#include "transport/base/intrusive_list.h"

namespace paceline::libfabric {
namespace {

class Scalable : public fid_ep {
 public:
  Scalable(Domain* domain, const fi_info& info, uint64_t service)
      : fid_ep{},
        domain_(domain),
        transmit_(Endpoint::TraitsOf(info, Endpoint::Role::kTransmit)),
        receive_(Endpoint::TraitsOf(info, Endpoint::Role::kReceive)) {
    if (receive_.service == 0) receive_.service = service;
    ++domain_->references;
  }
  ~Scalable() { --domain_->references; }

  Domain* domain() const { return domain_; }
  bool has_parts() const { return !parts_.empty(); }

  int Bind(fid_t other) {
    if (other->fclass != FI_CLASS_AV) return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
    const Domain::Guard guard(domain_);
    av_ = FromFid<Av, fid_av>(other);
    for (Endpoint* part = parts_.front(); part != nullptr; part = parts_.Next(part)) part->Bind(other, 0);
    return 0;
  }
  int Open(int index, const Endpoint::Traits& defaults, uint64_t caps, uint64_t flags, fid_ep** result, void* context) {
    if (index < 0 || index >= static_cast<int>(kMaxContexts)) return -FI_EINVAL;
    Endpoint::Traits traits = defaults;
    const bool transmits = traits.role == Endpoint::Role::kTransmit;
    if (caps != 0) traits.caps = caps;
    (transmits ? traits.transmit_flags : traits.receive_flags) = flags;
    if (!transmits) traits.service += static_cast<uint64_t>(index);
    const Domain::Guard guard(domain_);
    Endpoint* part = NewEndpoint(domain_, traits, transmits ? FI_CLASS_TX_CTX : FI_CLASS_RX_CTX, context);
    if (part == nullptr) return -FI_ENOMEM;
    if (av_) part->Bind(&av_->fid, 0);
    parts_.PushBack(part);
    const bool is_first = !transmits && index == 0;
    part->links().ShareIdentity(identity_, is_first);
    *result = part;
    return 0;
  }
  const Endpoint::Traits& transmit() const { return transmit_; }
  const Endpoint::Traits& receive() const { return receive_; }

  int GetName(void* address, size_t* size) {
    const Domain::Guard guard(domain_);
    if (identity_->bytes[8] == 0) return -FI_EOPBADSTATE;  // its first receive context listens nowhere yet
    return GiveName(*identity_, address, size);
  }

 private:
  Domain* domain_;
  const Endpoint::Traits transmit_;
  Endpoint::Traits receive_;
  Use<Av> av_;
  IntrusiveList<Endpoint, &Endpoint::part> parts_;                   // those that are open
  std::shared_ptr<Address> identity_ = std::make_shared<Address>();  // the first receive context's, for all
};

Scalable* Of(fid* object) { return FromFid<Scalable, fid_ep>(object); }

int Close(fid* object) {
  Scalable* scalable = Of(object);
  const Domain::Guard guard(scalable->domain());
  if (scalable->has_parts()) return -FI_EBUSY;
  delete scalable;
  return 0;
}

fi_ops object_calls = {.size = sizeof(fi_ops),
                       .close = Close,
                       .bind = [](fid* object, fid* other, uint64_t) { return Of(object)->Bind(other); },
                       // Its parts are enabled one by one.
                       .control = [](fid*, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; },
                       .ops_open = NotSupported()};

int OpenTransmit(fid_ep* object, int index, fi_tx_attr* attributes, fid_ep** result, void* context) {
  auto* scalable = static_cast<Scalable*>(object);
  const fi_tx_attr wanted = attributes == nullptr ? fi_tx_attr{} : *attributes;
  const uint64_t flags = attributes == nullptr ? scalable->transmit().transmit_flags : wanted.op_flags;
  return scalable->Open(index, scalable->transmit(), wanted.caps, flags, result, context);
}

int OpenReceive(fid_ep* object, int index, fi_rx_attr* attributes, fid_ep** result, void* context) {
  auto* scalable = static_cast<Scalable*>(object);
  const fi_rx_attr wanted = attributes == nullptr ? fi_rx_attr{} : *attributes;
  const uint64_t flags = attributes == nullptr ? scalable->receive().receive_flags : wanted.op_flags;
  return scalable->Open(index, scalable->receive(), wanted.caps, flags, result, context);
}

fi_ops_ep calls = {
    .size = sizeof(fi_ops_ep),
    .cancel = NotSupported(),
    .getopt = NotSupported(),
    .setopt = NotSupported(),
    .tx_ctx = OpenTransmit,
    .rx_ctx = OpenReceive,
    .rx_size_left = NotSupported(),
    .tx_size_left = NotSupported(),
};
fi_ops_cm cm_calls = {
    .size = sizeof(fi_ops_cm),
    .setname = NotSupported(),
    .getname = [](fid_t object, void* address, size_t* size) { return Of(object)->GetName(address, size); },
    .getpeer = NotSupported(),
    .connect = NotSupported(),
    .listen = NotSupported(),
    .accept = NotSupported(),
    .reject = NotSupported(),
    .shutdown = NotSupported(),
    .join = NotSupported(),
};

class SharedTransmit : public fid_stx {
 public:
  explicit SharedTransmit(Domain* domain) : fid_stx{}, domain_(domain) { ++domain_->references; }
  ~SharedTransmit() { --domain_->references; }

 private:
  Domain* domain_;
};

fi_ops shared_calls = OnlyClose([](fid* object) {
  delete FromFid<SharedTransmit, fid_stx>(object);
  return 0;
});

}  // namespace

int OpenScalable(fid_domain* domain, fi_info* info, fid_ep** result, void* context) {
  if (IsConnected(*info) || IsDatagram(*info)) return -FI_EINVAL;
  uint64_t service = 0;
  if (getrandom(&service, sizeof(service), 0) != sizeof(service)) return -FI_EOTHER;
  service = (service | 1ull << 63) & ~(uint64_t{kMaxContexts} - 1);  // room for all contexts, and never 0
  auto* scalable = new (std::nothrow) Scalable(static_cast<Domain*>(domain), *info, service);
  if (scalable == nullptr) return -FI_ENOMEM;
  scalable->fid = {.fclass = FI_CLASS_SEP, .context = context, .ops = &object_calls};
  scalable->ops = &calls;
  scalable->cm = &cm_calls;
  *result = scalable;
  return 0;
}

int OpenSharedTransmit(fid_domain* domain, fi_tx_attr*, fid_stx** result, void* context) {
  auto* shared = new (std::nothrow) SharedTransmit(static_cast<Domain*>(domain));
  if (shared == nullptr) return -FI_ENOMEM;
  shared->fid = {.fclass = FI_CLASS_STX_CTX, .context = context, .ops = &shared_calls};
  *result = shared;
  return 0;
}

}  // namespace paceline::libfabric
