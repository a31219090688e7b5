// A wait set: completion queues and counters, of any domains of a fabric, that a program waits for together.
//
// Thread rule: any thread. Its lock is taken before the guards of domains: what joins or leaves does so without one.
#pragma once

#include <rdma/fi_eq.h>

#include <mutex>
#include <vector>

#include "api/libfabric/src/use.h"

namespace paceline::libfabric {

class WaitSet : public fid_wait, public Usable {
 public:
  WaitSet();
  ~WaitSet();
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  bool is_good() const { return epoll_ >= 0; }  // false: the process has no more descriptors
  int descriptor() const { return epoll_; }

  // 0, or a negative error. `descriptor`: what a program polls for the object, or an error, which is then the answer.
  int Join(fid_t object, int descriptor);
  void Leave(fid_t object);

  // As fi_trywait, and as fi_wait: 0 when a queue has something or a counter may have changed.
  int TryWait();
  int Wait(int timeout);

 private:
  const int epoll_;
  std::mutex mutex_;
  std::vector<fid_t> members_;
};

// The place of a queue or counter in a set, if it has one. Not under a guard.
class Membership {
 public:
  int Join(fid_wait* set, fid_t object, int descriptor);  // as the set's
  void Leave();                                           // before the object is closed

 private:
  Use<WaitSet> set_;
  fid_t object_ = nullptr;
};

// As fi_trywait of one object.
int TryWaitFor(fid_t object);

int OpenWaitSet(fid_fabric* fabric, fi_wait_attr* attributes, fid_wait** set);

}  // namespace paceline::libfabric
