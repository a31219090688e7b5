// What a program polls for one queue or counter: readable when data can be moved, and when the queue or counter has got
// something since the program last asked whether it may wait. The contexts' descriptors alone would not do, as whoever
// else makes progress, for another queue or in another thread, takes in what they tell.
//
// Thread rule: under the lock of its queue or counter, which owns it.
#pragma once

#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <utility>

namespace paceline::libfabric {

class WaitDescriptor {
 public:
  WaitDescriptor() = default;
  WaitDescriptor(const WaitDescriptor&) = delete;
  WaitDescriptor& operator=(const WaitDescriptor&) = delete;
  ~WaitDescriptor() { Close(); }

  // The descriptor, made when it is first asked for, as most programs never do; -FI_EMFILE: the process has no more.
  // `contexts`: the contexts' descriptors, which outlive this object or are taken out again.
  int Get(std::span<const int> contexts) {
    if (epoll_ >= 0) return epoll_;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    event_ = eventfd(raised_ ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool good = Add(event_);
    for (const int context : contexts) good = good && Add(context);
    if (good) return epoll_;
    Close();
    return -FI_EMFILE;
  }
  // One more context, or one less, once the descriptor is made.
  void Put(int context) { Add(context); }
  void TakeOut(int context) {
    if (epoll_ >= 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, context, nullptr);
  }
  // There is something now.
  void Raise() {
    if (std::exchange(raised_, true) || event_ < 0) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof(one));
  }
  // The program is about to look, or to wait. True: something has come since the last call.
  bool Lower() {
    if (!std::exchange(raised_, false)) return false;
    uint64_t count;
    if (event_ >= 0) [[maybe_unused]]
      const ssize_t got = read(event_, &count, sizeof(count));
    return true;
  }

 private:
  bool Add(int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    return epoll_ >= 0 && descriptor >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
  }
  void Close() {
    for (int* descriptor : {&epoll_, &event_}) {
      if (*descriptor >= 0) close(*descriptor);
      *descriptor = -1;
    }
  }

  int epoll_ = -1;
  int event_ = -1;
  bool raised_ = false;
};

}  // namespace paceline::libfabric
