#include "api/libfabric/src/endpoint.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "api/libfabric/src/alias.h"
#include "api/libfabric/src/atomic.h"
#include "api/libfabric/src/av.h"
#include "api/libfabric/src/cm_message.h"
#include "api/libfabric/src/deferred.h"
#include "api/libfabric/src/fabric.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/names.h"
#include "api/libfabric/src/objects.h"

namespace paceline::libfabric {
namespace {

constexpr int kLingerMillis = 250;  // a peer that does not answer holds nobody up for longer

Endpoint* Of(fid* object) { return FromFid<EndpointFid, fid_ep>(object)->endpoint; }

int Close(fid* object) {
  Endpoint* endpoint = Of(object);
  {
    const Domain::Guard guard(endpoint->domain());
    if (endpoint->is_shared() || endpoint->in_use()) return -FI_EBUSY;
  }
  delete endpoint;
  return 0;
}

int Control(fid* object, int command, void* argument) {
  if (command == FI_ENABLE) return Of(object)->Enable();
  return command == FI_ALIAS ? OpenAlias(Of(object), *static_cast<struct fi_alias*>(argument)) : -FI_ENOSYS;
}

fi_ops object_calls = {.size = sizeof(fi_ops),
                       .close = Close,
                       .bind = [](fid* object, fid* other, uint64_t flags) { return Of(object)->Bind(other, flags); },
                       .control = Control,
                       .ops_open = NotSupported()};
fi_ops_ep calls = {
    .size = sizeof(fi_ops_ep),
    .cancel = [](fid_t object, void* context) { return Of(object)->Cancel(context); },
    .getopt =
        [](fid_t object, int level, int name, void* value, size_t* size) {
          return level == FI_OPT_ENDPOINT ? Of(object)->GetOption(name, value, size) : -FI_ENOPROTOOPT;
        },
    .setopt =
        [](fid_t object, int level, int name, const void* value, size_t size) {
          return level == FI_OPT_ENDPOINT ? Of(object)->SetOption(name, value, size) : -FI_ENOPROTOOPT;
        },
    .tx_ctx = NotSupported(),
    .rx_ctx = NotSupported(),
    .rx_size_left = NotSupported(),
    .tx_size_left = NotSupported(),
};

}  // namespace

Endpoint::Traits Endpoint::TraitsOf(const fi_info& info, Role role) {
  Traits traits = {.role = role, .connected = IsConnected(info), .datagram = IsDatagram(info), .caps = info.caps};
  if (info.tx_attr != nullptr) {
    traits.transmit_flags = info.tx_attr->op_flags;
    traits.ordered_atomics = (info.tx_attr->msg_order & kAtomicOrder) != 0;
  }
  if (info.rx_attr != nullptr) traits.receive_flags = info.rx_attr->op_flags;
  if (!traits.connected && info.src_addr != nullptr && info.src_addrlen == Address::kBytes) {
    traits.service = NamedService(Address::From(info.src_addr));
  }
  return traits;
}

Endpoint::Endpoint(Domain* domain, const Traits& traits)
    : EndpointFid{{}, this, traits.transmit_flags, traits.receive_flags},
      domain_(domain),
      traits_(traits),
      receives_(domain->paceline().NewReceiveQueue()),
      links_(&domain->paceline(), &receives_) {
  ++domain_->references;
}

Endpoint::~Endpoint() {
  {
    const Domain::Guard guard(domain_);
    if (enabled_) domain_->Remove(this);
    if (shared_ != nullptr) std::erase(shared_->sharers_, this);
    part.Unlink();
    domain_->deferred().Forget(this);
    if (av_) av_->Remove(this);
    // What is left completes untold, as libfabric has it.
    transmit_queue_ = receive_queue_ = {};
    counters_.clear();
    av_ = {};
    links_.Close();
    if (session_ != nullptr) session_->Close();
  }
  domain_->WaitUntil([this] { return links_.closed() && (session_ == nullptr || session_->closed()); }, kLingerMillis);
  {
    const Domain::Guard guard(domain_);
    links_.Abort();
    if (session_ != nullptr) session_->Abort();
    if (Eq* eq = event_queue(); eq != nullptr) eq->Forget(&fid);
    receives_ = {};
  }
  if (eq_) eq_->Unwatch(domain_);
  domain_->WaitForLast([this] { return operations_.empty(); });  // a progress thread may tell of them a moment later
  --domain_->references;
}

int Endpoint::Bind(fid_t other, uint64_t flags) {
  if (other->fclass == FI_CLASS_EQ) return BindEq(FromFid<Eq, fid_eq>(other));
  const Domain::Guard guard(domain_);
  if (enabled_) return -FI_EOPBADSTATE;
  switch (other->fclass) {
    case FI_CLASS_AV:
      if (traits_.connected) return 0;  // programs bind one whatever the type: it means nothing
      if (av_) av_->Remove(this);
      av_ = FromFid<Av, fid_av>(other);
      links_.BindAv(av_.get());
      av_->Add(this);
      return 0;
    case FI_CLASS_CQ: {
      const Queue queue = {.cq = FromFid<Cq, fid_cq>(other), .selective = (flags & FI_SELECTIVE_COMPLETION) != 0};
      if ((flags & FI_TRANSMIT) != 0) transmit_queue_ = queue;
      if ((flags & FI_RECV) != 0) receive_queue_ = queue;
      return (flags & (FI_TRANSMIT | FI_RECV)) == 0 ? -FI_EINVAL : 0;
    }
    case FI_CLASS_CNTR:
      counters_.push_back({.kinds = flags, .counter = FromFid<Counter, fid_cntr>(other)});
      return 0;
    case FI_CLASS_SRX_CTX:
      if (shared_ != nullptr) std::erase(shared_->sharers_, this);
      shared_ = Of(other);
      shared_->sharers_.push_back(this);
      links_.UseReceives(&shared_->receives_);
      if (session_ != nullptr) session_->UseReceives(&shared_->receives_);
      return 0;
    case FI_CLASS_STX_CTX:  // connections are each endpoint's own; nothing else would be shared
      return 0;
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::Enable() {
  const Domain::Guard guard(domain_);
  if (enabled_) return -FI_EOPBADSTATE;
  if (traits_.role == Role::kSharedReceive) {
    enabled_ = true;
    domain_->Add(this);
    return 0;
  }
  if (!traits_.connected && !av_) return -FI_ENOAV;
  if (traits_.connected && event_queue() == nullptr) return -FI_ENOEQ;
  const auto counts = [&](uint64_t kinds) {
    return std::any_of(counters_.begin(), counters_.end(),
                       [&](const CounterBinding& binding) { return (binding.kinds & kinds) != 0; });
  };
  const bool sends = traits_.role != Role::kReceive && (traits_.caps & FI_SEND) != 0;
  const bool receives = traits_.role != Role::kTransmit && (traits_.caps & FI_RECV) != 0;
  if (sends && !transmit_queue_.cq && !counts(FI_SEND)) return -FI_ENOCQ;
  if (receives && !receive_queue_.cq && !counts(FI_RECV)) return -FI_ENOCQ;
  if (session_ != nullptr) {
    if (const int error = session_->Open(); error != 0) return error;
  } else if (traits_.role != Role::kTransmit) {
    if (const int error = links_.Listen(traits_.service); error != 0) return -error;
  }
  enabled_ = true;
  domain_->Add(this);
  return 0;
}

int Endpoint::GetName(void* address, size_t* size) {
  const Domain::Guard guard(domain_);
  if (!enabled_) return -FI_EOPBADSTATE;
  return GiveName(session_ == nullptr ? links_.own_address() : session_->own_address(), address, size);
}

fi_addr_t Endpoint::OneNameOf(fi_addr_t peer) const { return av_ ? av_->FirstOf(peer) : FI_ADDR_UNSPEC; }

int Endpoint::GetOption(int name, void* value, size_t* size) const {
  const Domain::Guard guard(domain_);
  if (name == FI_OPT_CM_DATA_SIZE && traits_.connected) return GiveSize(kCmDataBytes, value, size);
  return name == FI_OPT_MIN_MULTI_RECV ? GiveSize(min_multi_receive_, value, size) : -FI_ENOPROTOOPT;
}

int Endpoint::SetOption(int name, const void* value, size_t size) {
  const Domain::Guard guard(domain_);
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (size != sizeof(size_t)) return -FI_EINVAL;
  std::memcpy(&min_multi_receive_, value, sizeof(size_t));
  min_multi_receive_ = std::max<size_t>(min_multi_receive_, 1);
  return 0;
}

bool Endpoint::Reports(const Queue& queue, uint64_t asked) {
  return queue.cq && (asked & kSilent) == 0 && (!queue.selective || (asked & FI_COMPLETION) != 0);
}

Operation* Endpoint::NewOperation(void* context, uint64_t flags, uint64_t kind) {
  Operation* operation = domain_->NewOperation();
  operations_.PushBack(operation);
  operation->endpoint = this;
  operation->context = context;
  operation->flags = kind;
  operation->asked = flags;
  operation->counter = domain_->deferred().completion_counter();
  if (operation->counter != nullptr) operation->counter->Hold();
  return operation;
}

uint8_t* Endpoint::Stage(Operation* operation, size_t bytes) {
  operation->staging = std::make_unique<Staging>();
  operation->staging->bytes = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  return operation->staging->bytes.get();
}

Endpoint* Endpoint::ReceiverOf(uint32_t connection) {
  if (traits_.role != Role::kSharedReceive) return this;
  for (Endpoint* sharer : sharers_) {
    if (sharer->Has(connection)) return sharer;
  }
  return connection != 0 || sharers_.empty() ? this : sharers_.front();
}

Counter* Endpoint::CounterOf(uint64_t flags) const {
  for (const CounterBinding& binding : counters_) {
    if ((binding.kinds & flags & (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) {
      return binding.counter.get();
    }
  }
  return nullptr;
}

void Endpoint::Release(Operation* operation) {
  if (operation->counter != nullptr) operation->counter->LetGo();
  if (operation->ordered_on != 0) atomics_under_way_.erase(operation->ordered_on);
  domain_->Delete(operation);
}

void Endpoint::Complete(Operation* operation, const api::Completion& completion) {
  if (!operation->told) Tell(operation, completion);
  if (completion.released) Release(operation);
}

void Endpoint::Tell(Operation* operation, const api::Completion& completion) {
  const bool receive = (operation->flags & FI_RECV) != 0;
  api::OperationStatus status = completion.status;
  if (operation->discard && status == api::OperationStatus::kTruncated) status = api::OperationStatus::kOk;
  const bool success = status == api::OperationStatus::kOk;
  Endpoint& told = *ReceiverOf(completion.connection);
  if (Counter* counter = told.CounterOf(operation->flags); counter != nullptr) counter->Count(success);
  if (operation->counter != nullptr) operation->counter->Count(success);
  const bool has_arrived = success || status == api::OperationStatus::kTruncated;  // as far as there is room
  if (operation->staging != nullptr && !operation->staging->to.empty() && has_arrived) {
    Scatter(operation->staging->bytes.get(), completion.bytes, operation->staging->to);
  }
  const Queue& queue = receive ? told.receive_queue_ : told.transmit_queue_;
  Cq* cq = queue.cq.get();
  if (cq != nullptr && (Reports(queue, operation->asked) || (!success && (operation->asked & kSilent) == 0))) {
    Cq::Entry entry;
    fi_cq_err_entry& fields = entry.fields;
    fields.op_context = operation->context;
    fields.flags = operation->flags;
    fields.tag = completion.tag & ~kUntagged;
    if (receive) {
      const uint64_t room = operation->room - std::min(operation->room, completion.offset);
      fields.len = operation->discard ? 0 : std::min(completion.bytes, room);
      fields.buf = static_cast<uint8_t*>(operation->buffer) + completion.offset;
      if (completion.has_immediate) fields.flags |= FI_REMOTE_CQ_DATA;
      if (completion.has_immediate) fields.data = completion.immediate;
      if ((operation->flags & FI_MULTI_RECV) != 0 && !completion.released) fields.flags &= ~FI_MULTI_RECV;
      entry.source = told.links_.PeerOf(completion.connection);
    }
    if (!success) {
      fields.err = ErrorOf(status);
      fields.prov_errno = static_cast<int>(status);
      if (status == api::OperationStatus::kTruncated) fields.olen = completion.bytes - fields.len;
    }
    cq->Push(entry);
  }
}

void Endpoint::TellUnposted(void* context, uint64_t kind, int error) {
  const Endpoint& told = *ReceiverOf(0);
  if (Counter* counter = told.CounterOf(kind); counter != nullptr) counter->Count(false);
  const Queue& queue = (kind & FI_RECV) != 0 ? told.receive_queue_ : told.transmit_queue_;
  if (!queue.cq) return;
  queue.cq->Push({.fields = {.op_context = context, .flags = kind, .err = error, .prov_errno = error}});
}

bool Endpoint::TakeRemoteAccess(const api::Completion& completion, uint64_t kind) {
  if (!Has(completion.connection)) return false;
  if (Counter* counter = CounterOf(kind); counter != nullptr) counter->Count(true);
  if (!receive_queue_.cq || !completion.has_immediate) return true;
  Cq::Entry entry;
  entry.fields.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
  entry.fields.len = completion.bytes;
  entry.fields.data = completion.immediate;
  entry.source = links_.PeerOf(completion.connection);
  receive_queue_.cq->Push(entry);
  return true;
}

Endpoint* NewEndpoint(Domain* domain, const Endpoint::Traits& traits, size_t fclass, void* context) {
  const Domain::Guard guard(domain);
  auto* endpoint = new (std::nothrow) Endpoint(domain, traits);
  if (endpoint == nullptr) return nullptr;
  endpoint->fid = {.fclass = fclass, .context = context, .ops = &object_calls};
  endpoint->ops = &calls;
  endpoint->cm = &connection_calls;
  endpoint->msg = &message_calls;
  endpoint->tagged = &tagged_calls;
  endpoint->rma = &rma_calls;
  endpoint->atomic = &atomic_calls;
  return endpoint;
}

int OpenEndpoint(fid_domain* object, fi_info* info, fid_ep** result, void* context) {
  auto* domain = static_cast<Domain*>(object);
  const Endpoint::Traits traits = Endpoint::TraitsOf(*info, Endpoint::Role::kWhole);
  std::unique_ptr<Request> request;
  if (traits.connected && info->handle != nullptr) {
    request = RequestsOf(domain->fabric()).Take(info->handle);
    if (request == nullptr) return -FI_EINVAL;  // answered, or nobody's
  }
  Endpoint* endpoint = NewEndpoint(domain, traits, FI_CLASS_EP, context);
  if (endpoint == nullptr) return -FI_ENOMEM;
  if (traits.connected) {
    const bool has_target = info->dest_addr != nullptr && info->dest_addrlen == Address::kBytes;
    endpoint->MakeConnected(std::move(request),
                            has_target ? std::optional(Address::From(info->dest_addr)) : std::nullopt);
  }
  *result = endpoint;
  return 0;
}

int OpenSharedReceive(fid_domain* domain, fi_rx_attr* attributes, fid_ep** result, void* context) {
  const fi_rx_attr wanted = attributes == nullptr ? fi_rx_attr{} : *attributes;
  Endpoint* endpoint =
      NewEndpoint(static_cast<Domain*>(domain),
                  {.role = Endpoint::Role::kSharedReceive, .caps = wanted.caps, .receive_flags = wanted.op_flags},
                  FI_CLASS_SRX_CTX, context);
  if (endpoint == nullptr) return -FI_ENOMEM;
  *result = endpoint;
  return endpoint->Enable();
}

}  // namespace paceline::libfabric
