// What only connected endpoints (FI_EP_MSG) have: asking for a connection, accepting one, what their event queue hears.
#include "api/libfabric/src/endpoint.h"
#include "api/libfabric/src/eq.h"
#include "api/libfabric/src/fid.h"

namespace paceline::libfabric {
namespace {

Endpoint* Of(fid_ep* object) { return FidOf(object)->endpoint; }

Session::Data DataOf(const void* bytes, size_t size) { return {static_cast<const uint8_t*>(bytes), size}; }

}  // namespace

fi_ops_cm connection_calls = {
    .size = sizeof(fi_ops_cm),
    .setname = NotSupported(),
    .getname = [](fid_t object, void* address,
                  size_t* size) { return FromFid<EndpointFid, fid_ep>(object)->endpoint->GetName(address, size); },
    .getpeer = [](fid_ep* object, void* address, size_t* size) { return Of(object)->GetPeer(address, size); },
    .connect =
        [](fid_ep* object, const void* address, const void* data, size_t size) {
          if (address == nullptr) return Of(object)->Connect(nullptr, DataOf(data, size));
          const Address to = Address::From(address);
          return Of(object)->Connect(&to, DataOf(data, size));
        },
    .listen = NotSupported(),
    .accept = [](fid_ep* object, const void* data, size_t size) { return Of(object)->Accept(DataOf(data, size)); },
    .reject = NotSupported(),
    .shutdown = [](fid_ep* object, uint64_t flags) { return flags == 0 ? Of(object)->Shutdown() : -FI_EINVAL; },
    .join = NotSupported(),
};

void Endpoint::MakeConnected(std::unique_ptr<Request> request, std::optional<Address> target) {
  session_ = std::make_unique<Session>(&domain_->paceline(), &receives_, std::move(request), target);
}

int Endpoint::BindEq(Eq* eq) {
  if (session_ == nullptr) return 0;  // nothing happens to an endpoint without connections of the program's own
  {
    const Domain::Guard guard(domain_);
    if (enabled_ || eq_) return -FI_EOPBADSTATE;
    eq_ = eq;
  }
  eq->Watch(domain_);
  return 0;
}

int Endpoint::Connect(const Address* to, Session::Data data) {
  if (session_ == nullptr) return -FI_ENOSYS;
  const Domain::Guard guard(domain_);
  if (const int error = enabled_ ? 0 : Enable(); error != 0) return error;
  return session_->Connect(to, data);
}

int Endpoint::Accept(Session::Data data) {
  if (session_ == nullptr) return -FI_ENOSYS;
  const Domain::Guard guard(domain_);
  if (const int error = enabled_ ? 0 : Enable(); error != 0) return error;
  if (const int error = session_->Accept(data); error != 0) return error;
  event_queue()->Await(&fid, session_->other_address());  // (what is due is found out under the same guard)
  return 0;
}

int Endpoint::Shutdown() {
  if (session_ == nullptr) return -FI_ENOSYS;
  const Domain::Guard guard(domain_);
  if (const int error = session_->Shutdown(); error != 0) return error;
  event_queue()->Await(&fid, session_->other_address());
  CancelReceives();
  domain_->Progress();
  return 0;
}

int Endpoint::GetPeer(void* address, size_t* size) {
  if (session_ == nullptr) return -FI_ENOSYS;
  const Domain::Guard guard(domain_);
  const Address* peer = session_->peer_address();
  return peer == nullptr ? -FI_ENOTCONN : GiveName(*peer, address, size);
}

void Endpoint::CareForSession() {
  while (auto news = session_->Poll()) {
    Eq* eq = event_queue();
    if (news->error != 0) {
      const fi_eq_err_entry entry = {
          .fid = &fid, .context = fid.context, .data = 0, .err = news->error, .prov_errno = ProviderError(news->code)};
      eq->WriteError(entry, std::move(news->data));
    } else {
      eq->WriteConnection(news->event, &fid, news->data);
    }
    if (session_->is_over()) CancelReceives();
  }
}

// Nobody can send to these any more.
void Endpoint::CancelReceives() {
  for (Operation* operation = operations_.front(); operation != nullptr; operation = operations_.Next(operation)) {
    if (operation->id != 0) receives_.Cancel(operation->id);
  }
}

}  // namespace paceline::libfabric
