// A counter of completed operations, and one of those that failed.
//
// Thread rule: under the domain's guard, which the calls of libfabric's tables take.
#pragma once

#include <rdma/fi_eq.h>

#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/use.h"
#include "api/libfabric/src/wait_descriptor.h"
#include "api/libfabric/src/wait_set.h"

namespace paceline::libfabric {

class Counter : public fid_cntr, public Usable {
 public:
  Counter(Domain* domain, fi_wait_obj wait);
  ~Counter();

  void Count(bool success) {
    ++(success ? value_ : errors_);
    descriptor_.Raise();
  }
  Domain* domain() const { return domain_; }
  fi_wait_obj wait_object() const { return wait_; }

  // These take the guard.
  uint64_t Read();
  uint64_t ReadErrors();
  void Change(uint64_t Counter::*field, uint64_t value, bool add);
  int Wait(uint64_t threshold, int timeout);
  int TryWait();
  int Descriptor();  // or a negative error
  Membership& membership() { return membership_; }

  uint64_t value_ = 0;
  uint64_t errors_ = 0;

 private:
  Domain* domain_;
  const fi_wait_obj wait_;
  WaitDescriptor descriptor_;
  Membership membership_;
};

// A counter, and which operations of an endpoint or accesses of a region it counts.
struct CounterBinding {
  uint64_t kinds = 0;  // FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE
  Use<Counter> counter;
};

int OpenCounter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context);

}  // namespace paceline::libfabric
