#include "api/libfabric/src/cq.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/objects.h"

namespace paceline::libfabric {
namespace {

Cq* Of(fid_cq* cq) { return static_cast<Cq*>(cq); }

// The formats are each the beginning of the next longer one, and all of the error entry.
static_assert(offsetof(fi_cq_err_entry, tag) == offsetof(fi_cq_tagged_entry, tag));

size_t SizeOf(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
      return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    default:
      return sizeof(fi_cq_tagged_entry);
  }
}

int Close(fid* object) {
  auto* cq = FromFid<Cq, fid_cq>(object);
  if (cq->in_use()) return -FI_EBUSY;
  cq->membership().Leave();
  const Domain::Guard guard(cq->domain());
  delete cq;
  return 0;
}

int Control(fid* object, int command, void* argument) {
  auto* cq = FromFid<Cq, fid_cq>(object);
  return AnswerWait(command, argument, cq->wait_object(), [cq] { return cq->Descriptor(); });
}

const char* ErrorText(fid_cq*, int provider_error, const void*, char* buffer, size_t size) {
  return GiveText(api::OperationStatusName(static_cast<api::OperationStatus>(provider_error)), buffer, size);
}

fi_ops object_calls = {
    .size = sizeof(fi_ops), .close = Close, .bind = NotSupported(), .control = Control, .ops_open = NotSupported()};
fi_ops_cq calls = {
    .size = sizeof(fi_ops_cq),
    .read = [](fid_cq* cq, void* out, size_t count) { return Of(cq)->Read(out, count, nullptr); },
    .readfrom = [](fid_cq* cq, void* out, size_t count,
                   fi_addr_t* sources) { return Of(cq)->Read(out, count, sources); },
    .readerr = [](fid_cq* cq, fi_cq_err_entry* out, uint64_t) { return Of(cq)->ReadError(out); },
    .sread = [](fid_cq* cq, void* out, size_t count, const void*,
                int timeout) { return Of(cq)->WaitRead(out, count, nullptr, timeout); },
    .sreadfrom = [](fid_cq* cq, void* out, size_t count, fi_addr_t* sources, const void*,
                    int timeout) { return Of(cq)->WaitRead(out, count, sources, timeout); },
    .signal =
        [](fid_cq* cq) {
          Of(cq)->Signal();
          return 0;
        },
    .strerror = ErrorText,
};

}  // namespace

Cq::Cq(Domain* domain, const fi_cq_attr& attributes)
    : fid_cq{},
      domain_(domain),
      format_(attributes.format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_TAGGED : attributes.format),
      wait_(ChosenWait(attributes.wait_obj)),
      room_(std::max(attributes.size, kLeastCqSize)) {
  ++domain_->references;
}

Cq::~Cq() {
  if (entries_.size() >= room_) domain_->OnQueueRead();
  --domain_->references;
}

void Cq::Pop() {
  if (entries_.size() == room_) domain_->OnQueueRead();
  entries_.pop_front();
}

ssize_t Cq::Read(void* out, size_t count, fi_addr_t* sources) {
  const Domain::Guard guard(domain_);
  if (entries_.empty() || domain_->owes()) domain_->Progress();
  return Take(out, count, sources);
}

ssize_t Cq::Take(void* out, size_t count, fi_addr_t* sources) {
  if (entries_.empty()) return -FI_EAGAIN;
  const size_t size = SizeOf(format_);
  auto* at = static_cast<uint8_t*>(out);
  size_t taken = 0;
  for (; taken < count && !entries_.empty() && entries_.front().fields.err == 0; ++taken, at += size) {
    std::memcpy(at, &entries_.front().fields, size);
    if (sources != nullptr) sources[taken] = entries_.front().source;
    Pop();
  }
  if (taken > 0 || count == 0) return static_cast<ssize_t>(taken);
  return -FI_EAVAIL;
}

ssize_t Cq::WaitRead(void* out, size_t count, fi_addr_t* sources, int timeout) {
  domain_->WaitUntil([this] { return !entries_.empty() || signalled_; }, timeout);
  const Domain::Guard guard(domain_);
  signalled_ = false;
  return Take(out, count, sources);
}

ssize_t Cq::ReadError(fi_cq_err_entry* out) {
  const Domain::Guard guard(domain_);
  if (entries_.empty() || entries_.front().fields.err == 0) return -FI_EAGAIN;
  GiveError(entries_.front().fields, {}, domain_->fabric()->api_version, out);
  Pop();
  return 1;
}

int Cq::TryWait() {
  const Domain::Guard guard(domain_);
  descriptor_.Lower();
  domain_->Progress();
  return entries_.empty() && domain_->Arm() ? 0 : -FI_EAGAIN;
}

int Cq::Descriptor() {
  const Domain::Guard guard(domain_);
  const int context = domain_->descriptor();
  return descriptor_.Get({&context, 1});
}

void Cq::Signal() {
  const Domain::Guard guard(domain_);
  signalled_ = true;
  descriptor_.Raise();
  domain_->Interrupt();
}

bool Cq::IsEmpty() {
  const Domain::Guard guard(domain_);
  return entries_.empty();
}

int OpenCq(fid_domain* domain, fi_cq_attr* attributes, fid_cq** result, void* context) {
  const fi_cq_attr wanted = attributes == nullptr ? fi_cq_attr{} : *attributes;
  if (wanted.wait_obj != FI_WAIT_NONE && wanted.wait_obj != FI_WAIT_UNSPEC && wanted.wait_obj != FI_WAIT_FD &&
      wanted.wait_obj != FI_WAIT_YIELD && wanted.wait_obj != FI_WAIT_SET) {
    return -FI_ENOSYS;
  }
  const bool joins = wanted.wait_obj == FI_WAIT_SET;
  if (joins && wanted.wait_set == nullptr) return -FI_EINVAL;
  auto* cq = new (std::nothrow) Cq(static_cast<Domain*>(domain), wanted);
  if (cq == nullptr) return -FI_ENOMEM;
  cq->fid = {.fclass = FI_CLASS_CQ, .context = context, .ops = &object_calls};
  cq->ops = &calls;
  if (joins) {
    if (const int error = cq->membership().Join(wanted.wait_set, &cq->fid, cq->Descriptor()); error != 0) {
      Close(&cq->fid);
      return error;
    }
  }
  *result = cq;
  return 0;
}

}  // namespace paceline::libfabric
