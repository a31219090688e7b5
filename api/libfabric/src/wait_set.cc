#include "api/libfabric/src/wait_set.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>

#include "api/libfabric/src/counter.h"
#include "api/libfabric/src/cq.h"
#include "api/libfabric/src/eq.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/objects.h"

namespace paceline::libfabric {
namespace {

int Close(fid* object) {
  auto* set = FromFid<WaitSet, fid_wait>(object);
  if (set->in_use()) return -FI_EBUSY;
  delete set;
  return 0;
}

int Control(fid* object, int command, void* argument) {
  return AnswerWait(command, argument, FI_WAIT_FD,
                    [object] { return FromFid<WaitSet, fid_wait>(object)->descriptor(); });
}

fi_ops object_calls = {
    .size = sizeof(fi_ops), .close = Close, .bind = NotSupported(), .control = Control, .ops_open = NotSupported()};
fi_ops_wait calls = {.size = sizeof(fi_ops_wait),
                     .wait = [](fid_wait* set, int timeout) { return static_cast<WaitSet*>(set)->Wait(timeout); }};

// Of what may not be waited for: whether the program has something to take, or there are only data to move.
bool HasSomething(fid_t object) { return object->fclass != FI_CLASS_CQ || !FromFid<Cq, fid_cq>(object)->IsEmpty(); }

}  // namespace

WaitSet::WaitSet() : fid_wait{}, epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

WaitSet::~WaitSet() {
  if (epoll_ >= 0) close(epoll_);
}

int WaitSet::Join(fid_t object, int descriptor) {
  if (descriptor < 0) return descriptor;
  const std::lock_guard lock(mutex_);
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) return -errno;
  members_.push_back(object);
  return 0;
}

// Its descriptor leaves when it is closed.
void WaitSet::Leave(fid_t object) {
  const std::lock_guard lock(mutex_);
  std::erase(members_, object);
}

int WaitSet::TryWait() {
  const std::lock_guard lock(mutex_);
  for (const fid_t object : members_) {
    if (const int result = TryWaitFor(object); result != 0) return result;
  }
  return 0;
}

int WaitSet::Wait(int timeout) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(std::max(timeout, 0));
  while (true) {
    bool may_sleep = true;
    {
      const std::lock_guard lock(mutex_);
      for (const fid_t object : members_) {
        if (TryWaitFor(object) == 0) continue;
        if (HasSomething(object)) return 0;
        may_sleep = false;
      }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (timeout >= 0 && left <= 0) return -FI_ETIMEDOUT;
    epoll_event event{};
    if (may_sleep && epoll_wait(epoll_, &event, 1, timeout < 0 ? -1 : static_cast<int>(left)) < 0) return -errno;
  }
}

int Membership::Join(fid_wait* set, fid_t object, int descriptor) {
  auto* joined = static_cast<WaitSet*>(set);
  const int error = joined->Join(object, descriptor);
  if (error != 0) return error;
  set_ = joined;
  object_ = object;
  return 0;
}

void Membership::Leave() {
  if (set_) set_->Leave(object_);
  set_ = {};
}

int TryWaitFor(fid_t object) {
  switch (object->fclass) {
    case FI_CLASS_CQ:
      return FromFid<Cq, fid_cq>(object)->TryWait();
    case FI_CLASS_CNTR:
      return FromFid<Counter, fid_cntr>(object)->TryWait();
    case FI_CLASS_EQ:
      return FromFid<Eq, fid_eq>(object)->TryWait();
    case FI_CLASS_WAIT:
      return FromFid<WaitSet, fid_wait>(object)->TryWait();
    default:
      return -FI_EINVAL;
  }
}

int OpenWaitSet(fid_fabric*, fi_wait_attr* attributes, fid_wait** result) {
  if (attributes != nullptr && attributes->wait_obj != FI_WAIT_UNSPEC && attributes->wait_obj != FI_WAIT_FD) {
    return -FI_ENOSYS;
  }
  auto* set = new (std::nothrow) WaitSet();
  if (set == nullptr) return -FI_ENOMEM;
  if (!set->is_good()) {
    delete set;
    return -FI_EMFILE;
  }
  set->fid = {.fclass = FI_CLASS_WAIT, .context = nullptr, .ops = &object_calls};
  set->ops = &calls;
  *result = set;
  return 0;
}

}  // namespace paceline::libfabric
