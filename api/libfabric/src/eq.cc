#include "api/libfabric/src/eq.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <new>

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
  return AnswerWait(command, argument, eq->wait_object(), [eq] { return eq->descriptor(); });
}

const char* ErrorText(fid_eq*, int provider_error, const void*, char* buffer, size_t size) {
  return GiveText(fi_strerror(provider_error), buffer, size);
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

Eq::Eq(const fi_eq_attr& attributes, uint32_t api_version, int descriptor)
    : fid_eq{},
      api_version_(api_version),
      writable_((attributes.flags & FI_WRITE) != 0),
      wait_(ChosenWait(attributes.wait_obj)),
      descriptor_(descriptor) {}

Eq::~Eq() { close(descriptor_); }

void Eq::Push(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof(one));
}

void Eq::Pop() {
  events_.pop_front();
  uint64_t count;
  if (events_.empty()) [[maybe_unused]]
    const ssize_t got = read(descriptor_, &count, sizeof(count));
}

ssize_t Eq::Write(uint32_t event, const void* bytes, size_t size) {
  const auto* begin = static_cast<const uint8_t*>(bytes);
  Push({.event = event, .bytes = std::vector<uint8_t>(begin, begin + size)});
  return static_cast<ssize_t>(size);
}

void Eq::WriteError(const fi_eq_err_entry& error) { Push({.is_error = true, .error = error}); }

ssize_t Eq::Read(uint32_t* event, void* bytes, size_t size, uint64_t flags) {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return -FI_EAGAIN;
  const Event& first = events_.front();
  if (first.is_error) return -FI_EAVAIL;
  if (size < first.bytes.size()) return -FI_ETOOSMALL;
  *event = first.event;
  std::memcpy(bytes, first.bytes.data(), first.bytes.size());
  const auto read = static_cast<ssize_t>(first.bytes.size());
  if ((flags & FI_PEEK) == 0) Pop();
  return read;
}

ssize_t Eq::ReadError(fi_eq_err_entry* error, uint64_t flags) {
  const std::lock_guard lock(mutex_);
  if (events_.empty() || !events_.front().is_error) return -FI_EAGAIN;
  GiveError(events_.front().error, api_version_, error);
  if ((flags & FI_PEEK) == 0) Pop();
  return sizeof(*error);
}

ssize_t Eq::WaitRead(uint32_t* event, void* bytes, size_t size, int timeout, uint64_t flags) {
  const ssize_t first = Read(event, bytes, size, flags);
  if (first != -FI_EAGAIN) return first;
  pollfd waiting = {.fd = descriptor_, .events = POLLIN, .revents = 0};
  poll(&waiting, 1, timeout);
  return Read(event, bytes, size, flags);
}

int Eq::TryWait() {
  const std::lock_guard lock(mutex_);
  return events_.empty() ? 0 : -FI_EAGAIN;
}

int OpenEq(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** result, void* context) {
  const fi_eq_attr wanted = attributes == nullptr ? fi_eq_attr{} : *attributes;
  if (wanted.wait_obj != FI_WAIT_NONE && wanted.wait_obj != FI_WAIT_UNSPEC && wanted.wait_obj != FI_WAIT_FD) {
    return -FI_ENOSYS;
  }
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) return -FI_EMFILE;
  auto* eq = new (std::nothrow) Eq(wanted, fabric->api_version, descriptor);
  if (eq == nullptr) return -FI_ENOMEM;
  eq->fid = {.fclass = FI_CLASS_EQ, .context = context, .ops = &object_calls};
  eq->ops = &calls;
  *result = eq;
  return 0;
}

}  // namespace paceline::libfabric
