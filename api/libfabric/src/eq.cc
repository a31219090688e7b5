#include "api/libfabric/src/eq.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/objects.h"

namespace paceline::libfabric {
namespace {

Eq* Of(fid_eq* eq) { return static_cast<Eq*>(eq); }

int Close(fid* object) {
  auto* eq = FromFid<Eq, fid_eq>(object);
  if (eq->in_use()) return -FI_EBUSY;
  delete eq;
  return 0;
}

int Control(fid* object, int command, void* argument) {
  auto* eq = FromFid<Eq, fid_eq>(object);
  return AnswerWait(command, argument, eq->wait_object(), [eq] { return eq->Descriptor(); });
}

const char* ErrorText(fid_eq*, int provider_error, const void*, char* buffer, size_t size) {
  const char* text = provider_error < 0 ? api::CloseCodeName(static_cast<api::CloseCode>(-provider_error))
                                        : fi_strerror(provider_error);
  return GiveText(text, buffer, size);
}

fi_ops object_calls = {
    .size = sizeof(fi_ops), .close = Close, .bind = NotSupported(), .control = Control, .ops_open = NotSupported()};
fi_ops_eq calls = {
    .size = sizeof(fi_ops_eq),
    .read = [](fid_eq* eq, uint32_t* event, void* bytes, size_t size,
               uint64_t flags) { return Of(eq)->Read(event, bytes, size, flags); },
    .readerr = [](fid_eq* eq, fi_eq_err_entry* error, uint64_t flags) { return Of(eq)->ReadError(error, flags); },
    .write = [](fid_eq* eq, uint32_t event, const void* bytes, size_t size, uint64_t) -> ssize_t {
      return Of(eq)->may_be_written() ? Of(eq)->Write(event, bytes, size) : -FI_EINVAL;
    },
    .sread = [](fid_eq* eq, uint32_t* event, void* bytes, size_t size, int timeout,
                uint64_t flags) { return Of(eq)->WaitRead(event, bytes, size, timeout, flags); },
    .strerror = ErrorText,
};

}  // namespace

Eq::Eq(const fi_eq_attr& attributes, uint32_t api_version)
    : fid_eq{},
      api_version_(api_version),
      writable_((attributes.flags & FI_WRITE) != 0),
      wait_(ChosenWait(attributes.wait_obj)) {}

void Eq::Watch(Domain* domain) {
  const std::lock_guard domains_lock(domains_mutex_);
  for (Watched& watched : domains_) {
    if (watched.domain == domain && ++watched.times > 1) return;
  }
  domains_.push_back({.domain = domain, .times = 1});
  const std::lock_guard lock(mutex_);
  descriptor_.Put(domain->descriptor());
}

void Eq::Unwatch(Domain* domain) {
  const std::lock_guard domains_lock(domains_mutex_);
  const auto found =
      std::find_if(domains_.begin(), domains_.end(), [&](const Watched& watched) { return watched.domain == domain; });
  if (found == domains_.end() || --found->times > 0) return;
  domains_.erase(found);
  const std::lock_guard lock(mutex_);
  descriptor_.TakeOut(domain->descriptor());
}

void Eq::Progress() {
  const std::lock_guard domains_lock(domains_mutex_);
  for (const Watched& watched : domains_) {
    const Domain::Guard guard(watched.domain);
    watched.domain->Progress();
  }
}

bool Eq::Arm() {
  const std::lock_guard domains_lock(domains_mutex_);
  return std::all_of(domains_.begin(), domains_.end(), [](const Watched& watched) {
    const Domain::Guard guard(watched.domain);
    return watched.domain->Arm();
  });
}

void Eq::Push(Event event) {
  const std::lock_guard lock(mutex_);
  PushLocked(std::move(event));
}

void Eq::PushLocked(Event event) {
  const fid_t about = event.about;
  events_.push_back(std::move(event));
  descriptor_.Raise();
  EndWait(about);
}

bool Eq::IsAwaiting(const Address& peer) const {
  return std::any_of(due_.begin(), due_.end(), [&](const Due& due) { return AreOfOneContext(due.peer, peer); });
}

void Eq::Await(fid_t endpoint, const Address& peer) {
  const std::lock_guard lock(mutex_);
  due_.push_back({.endpoint = endpoint, .peer = peer});
}

void Eq::EndWait(fid_t endpoint) {
  if (std::erase_if(due_, [&](const Due& due) { return due.endpoint == endpoint; }) == 0) return;
  for (auto next = held_.begin(); next != held_.end();) {
    if (IsAwaiting(next->from)) {
      ++next;
      continue;
    }
    events_.push_back(std::move(next->request));
    descriptor_.Raise();
    next = held_.erase(next);
  }
}

void Eq::WriteRequest(fid_t passive, OwnedInfo info, const Address& from, std::span<const uint8_t> data) {
  Event request = ConnectionEvent(FI_CONNREQ, passive, std::move(info), data);
  const std::lock_guard lock(mutex_);
  if (IsAwaiting(from)) {
    held_.push_back({.request = std::move(request), .from = from});
  } else {
    PushLocked(std::move(request));
  }
}

void Eq::Pop() {
  events_.pop_front();
  if (events_.empty()) descriptor_.Lower();
}

ssize_t Eq::Write(uint32_t event, const void* bytes, size_t size) {
  const auto* begin = static_cast<const uint8_t*>(bytes);
  Push({.event = event, .bytes = std::vector<uint8_t>(begin, begin + size), .least = size});
  return static_cast<ssize_t>(size);
}

void Eq::WriteError(const fi_eq_err_entry& error, std::vector<uint8_t> detail) {
  Push({.is_error = true, .bytes = std::move(detail), .about = error.fid, .error = error});
}

void Eq::WriteConnection(uint32_t event, fid_t endpoint, std::span<const uint8_t> data) {
  Push(ConnectionEvent(event, endpoint, nullptr, data));
}

Eq::Event Eq::ConnectionEvent(uint32_t event, fid_t about, OwnedInfo info, std::span<const uint8_t> data) {
  const fi_eq_cm_entry entry = {.fid = about, .info = info.get()};
  std::vector<uint8_t> bytes(sizeof(entry) + data.size());
  std::memcpy(bytes.data(), &entry, sizeof(entry));
  std::copy(data.begin(), data.end(), bytes.begin() + sizeof(entry));
  return {.event = event, .bytes = std::move(bytes), .least = sizeof(entry), .about = about, .info = std::move(info)};
}

void Eq::Forget(fid_t object) {
  const std::lock_guard lock(mutex_);
  std::erase_if(events_, [&](const Event& event) { return event.about == object; });
  std::erase_if(held_, [&](const Held& held) { return held.request.about == object; });
  EndWait(object);
  if (events_.empty()) descriptor_.Lower();
}

ssize_t Eq::Read(uint32_t* event, void* bytes, size_t size, uint64_t flags) {
  const ssize_t got = Take(event, bytes, size, flags);
  if (got != -FI_EAGAIN) return got;
  Progress();
  return Take(event, bytes, size, flags);
}

ssize_t Eq::Take(uint32_t* event, void* bytes, size_t size, uint64_t flags) {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return -FI_EAGAIN;
  Event& first = events_.front();
  if (first.is_error) return -FI_EAVAIL;
  if (size < first.least) return -FI_ETOOSMALL;
  *event = first.event;
  const size_t read = std::min(size, first.bytes.size());
  std::memcpy(bytes, first.bytes.data(), read);
  if ((flags & FI_PEEK) == 0) {
    static_cast<void>(first.info.release());
    Pop();
  }
  return static_cast<ssize_t>(read);
}

ssize_t Eq::ReadError(fi_eq_err_entry* error, uint64_t flags) {
  const std::lock_guard lock(mutex_);
  if (events_.empty() || !events_.front().is_error) return -FI_EAGAIN;
  detail_ = events_.front().bytes;
  GiveError(events_.front().error, detail_, api_version_, error);
  if ((flags & FI_PEEK) == 0) Pop();
  return sizeof(*error);
}

ssize_t Eq::WaitRead(uint32_t* event, void* bytes, size_t size, int timeout, uint64_t flags) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(std::max(timeout, 0));
  pollfd waiting = {.fd = Descriptor(), .events = POLLIN, .revents = 0};
  if (waiting.fd < 0) return waiting.fd;
  while (true) {
    const ssize_t got = Read(event, bytes, size, flags);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (got != -FI_EAGAIN || (timeout >= 0 && left <= 0)) return got;
    if (!Arm()) continue;
    // A signal ends it, as libfabric has it.
    if (poll(&waiting, 1, timeout < 0 ? -1 : static_cast<int>(left)) < 0) return Read(event, bytes, size, flags);
  }
}

int Eq::TryWait() {
  Progress();
  if (!Arm()) return -FI_EAGAIN;
  const std::lock_guard lock(mutex_);
  return events_.empty() ? 0 : -FI_EAGAIN;
}

int Eq::Descriptor() {
  const std::lock_guard domains_lock(domains_mutex_);
  std::vector<int> contexts;
  for (const Watched& watched : domains_) contexts.push_back(watched.domain->descriptor());
  const std::lock_guard lock(mutex_);
  return descriptor_.Get(contexts);
}

int OpenEq(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** result, void* context) {
  const fi_eq_attr wanted = attributes == nullptr ? fi_eq_attr{} : *attributes;
  if (wanted.wait_obj != FI_WAIT_NONE && wanted.wait_obj != FI_WAIT_UNSPEC && wanted.wait_obj != FI_WAIT_FD) {
    return -FI_ENOSYS;
  }
  auto* eq = new (std::nothrow) Eq(wanted, fabric->api_version);
  if (eq == nullptr) return -FI_ENOMEM;
  eq->fid = {.fclass = FI_CLASS_EQ, .context = context, .ops = &object_calls};
  eq->ops = &calls;
  *result = eq;
  return 0;
}

}  // namespace paceline::libfabric
