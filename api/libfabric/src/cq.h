// A completion queue: what the operations of its endpoints came to, in the format that the program asked for. Reading
// makes progress for the whole domain. While it holds as many entries as it has room for, or more, the domain takes no
// more completions from its context, which then has posts answer -FI_EAGAIN and peers wait: nobody can fill it.
//
// Thread rule: under the domain's guard, which the calls of libfabric's tables take.
#pragma once

#include <rdma/fi_eq.h>

#include <deque>

#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/use.h"
#include "api/libfabric/src/wait_descriptor.h"
#include "api/libfabric/src/wait_set.h"

namespace paceline::libfabric {

class Cq : public fid_cq, public Usable {
 public:
  struct Entry {
    fi_cq_err_entry fields{};  // err 0: a success
    fi_addr_t source = FI_ADDR_NOTAVAIL;
  };

  Cq(Domain* domain, const fi_cq_attr& attributes);
  ~Cq();

  void Push(const Entry& entry) {
    entries_.push_back(entry);
    if (entries_.size() == room_) domain_->OnQueueFull();
    descriptor_.Raise();
  }
  bool empty() const { return entries_.empty(); }
  Domain* domain() const { return domain_; }
  fi_wait_obj wait_object() const { return wait_; }

  // These take the guard.
  ssize_t Read(void* out, size_t count, fi_addr_t* sources);
  ssize_t WaitRead(void* out, size_t count, fi_addr_t* sources, int timeout);
  ssize_t ReadError(fi_cq_err_entry* out);
  int TryWait();
  int Descriptor();  // or a negative error
  void Signal();
  bool IsEmpty();
  Membership& membership() { return membership_; }

 private:
  ssize_t Take(void* out, size_t count, fi_addr_t* sources);
  void Pop();

  Domain* domain_;
  const fi_cq_format format_;
  const fi_wait_obj wait_;
  const size_t room_;  // entries
  bool signalled_ = false;
  WaitDescriptor descriptor_;
  Membership membership_;
  std::deque<Entry> entries_;
};

int OpenCq(fid_domain* domain, fi_cq_attr* attributes, fid_cq** cq, void* context);

}  // namespace paceline::libfabric
