#include "api/libfabric/src/counter.h"

#include <new>

#include "api/libfabric/src/deferred.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/objects.h"

namespace paceline::libfabric {
namespace {

Counter* Of(fid_cntr* counter) { return static_cast<Counter*>(counter); }

int Close(fid* object) {
  auto* counter = FromFid<Counter, fid_cntr>(object);
  if (counter->in_use()) return -FI_EBUSY;
  counter->membership().Leave();
  const Domain::Guard guard(counter->domain());
  delete counter;
  return 0;
}

int Control(fid* object, int command, void* argument) {
  auto* counter = FromFid<Counter, fid_cntr>(object);
  return AnswerWait(command, argument, counter->wait_object(), [counter] { return counter->Descriptor(); });
}

template <uint64_t Counter::*kField, bool kAdd>
int Change(fid_cntr* counter, uint64_t value) {
  Of(counter)->Change(kField, value, kAdd);
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops), .close = Close, .bind = NotSupported(), .control = Control, .ops_open = NotSupported()};
fi_ops_cntr calls = {
    .size = sizeof(fi_ops_cntr),
    .read = [](fid_cntr* counter) { return Of(counter)->Read(); },
    .readerr = [](fid_cntr* counter) { return Of(counter)->ReadErrors(); },
    .add = Change<&Counter::value_, true>,
    .set = Change<&Counter::value_, false>,
    .wait = [](fid_cntr* counter, uint64_t threshold, int timeout) { return Of(counter)->Wait(threshold, timeout); },
    .adderr = Change<&Counter::errors_, true>,
    .seterr = Change<&Counter::errors_, false>,
};

}  // namespace

Counter::Counter(Domain* domain, fi_wait_obj wait) : fid_cntr{}, domain_(domain), wait_(wait) { ++domain_->references; }
Counter::~Counter() {
  domain_->deferred().Forget(this);
  --domain_->references;
}

uint64_t Counter::Read() {
  const Domain::Guard guard(domain_);
  domain_->Progress();
  return value_;
}

uint64_t Counter::ReadErrors() {
  const Domain::Guard guard(domain_);
  domain_->Progress();
  return errors_;
}

void Counter::Change(uint64_t Counter::*field, uint64_t value, bool add) {
  const Domain::Guard guard(domain_);
  this->*field = add ? this->*field + value : value;
  descriptor_.Raise();
  domain_->deferred().Run();
}

int Counter::Wait(uint64_t threshold, int timeout) {
  uint64_t errors = 0;
  {
    const Domain::Guard guard(domain_);
    errors = errors_;
  }
  domain_->WaitUntil([&] { return value_ >= threshold || errors_ != errors; }, timeout);
  const Domain::Guard guard(domain_);
  if (value_ >= threshold) return 0;
  return errors_ != errors ? -FI_EAVAIL : -FI_ETIMEDOUT;
}

int Counter::TryWait() {
  const Domain::Guard guard(domain_);
  if (descriptor_.Lower()) return -FI_EAGAIN;  // the program may have read it before it changed
  domain_->Progress();
  return domain_->Arm() ? 0 : -FI_EAGAIN;
}

int Counter::Descriptor() {
  const Domain::Guard guard(domain_);
  const int context = domain_->descriptor();
  return descriptor_.Get({&context, 1});
}

int OpenCounter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** result, void* context) {
  const fi_cntr_attr wanted = attributes == nullptr ? fi_cntr_attr{} : *attributes;
  if (wanted.events != FI_CNTR_EVENTS_COMP) return -FI_ENOSYS;
  if (wanted.wait_obj == FI_WAIT_MUTEX_COND || wanted.wait_obj == FI_WAIT_POLLFD) return -FI_ENOSYS;
  const bool joins = wanted.wait_obj == FI_WAIT_SET;
  if (joins && wanted.wait_set == nullptr) return -FI_EINVAL;
  auto* counter = new (std::nothrow) Counter(static_cast<Domain*>(domain), ChosenWait(wanted.wait_obj));
  if (counter == nullptr) return -FI_ENOMEM;
  counter->fid = {.fclass = FI_CLASS_CNTR, .context = context, .ops = &object_calls};
  counter->ops = &calls;
  if (joins) {
    if (const int error = counter->membership().Join(wanted.wait_set, &counter->fid, counter->Descriptor());
        error != 0) {
      Close(&counter->fid);
      return error;
    }
  }
  *result = counter;
  return 0;
}

}  // namespace paceline::libfabric
