// An endpoint: a receive queue and connections (links.h), queues and counters for what its operations come to. Its
// calls by kind are in files of their own:
//   endpoint.cc   opening, binding, options, what completions become
//   transmit.cc   sends, writes and reads; receive.cc   receives, peek, cancel
//   msg.cc, tagged.cc, rma.cc, atomic.cc   libfabric's many variants of these
//
// Thread rule: under the domain's guard, which the calls of libfabric's tables take.
// Ownership: of its connections and receive queue. Buffers are the program's until their completion.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "api/libfabric/src/counter.h"
#include "api/libfabric/src/cq.h"
#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/links.h"
#include "transport/base/intrusive_list.h"

namespace paceline::libfabric {

// Beside libfabric's flags, in those of our own calls: no completion, not even where the queue takes all of them.
inline constexpr uint64_t kSilent = 1ull << 33;

class Endpoint : public fid_ep {
 public:
  Endpoint(Domain* domain, const fi_info& info);
  ~Endpoint();

  Domain* domain() const { return domain_; }
  Links& links() { return links_; }

  // ---- setting up
  int Bind(fid_t other, uint64_t flags);
  int Enable();
  int GetName(void* address, size_t* size);
  int GetOption(int name, void* value, size_t* size) const;
  int SetOption(int name, const void* value, size_t size);

  // ---- transmit.cc. `flags`: the call's, with FI_MSG or FI_TAGGED, FI_WRITE or FI_READ.
  struct Transmit {
    const void* buffer = nullptr;
    size_t bytes = 0;
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    void* context = nullptr;
    uint64_t flags = 0;
    uint64_t data = 0;  // with FI_REMOTE_CQ_DATA
    uint64_t tag = 0;
    uint64_t remote_offset = 0;  // one-sided
    uint64_t remote_key = 0;
  };
  ssize_t Post(const Transmit& transmit);
  uint64_t transmit_flags() const { return transmit_flags_; }

  // ---- receive.cc
  struct Receive {
    void* buffer = nullptr;
    size_t bytes = 0;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    void* context = nullptr;
    uint64_t flags = 0;  // with FI_MSG or FI_TAGGED
    uint64_t tag = 0;
    uint64_t ignore = 0;
  };
  ssize_t Post(const Receive& receive);
  ssize_t Cancel(void* context);
  uint64_t receive_flags() const { return receive_flags_; }

  // ---- from the domain
  void CareForLinks() {
    if (enabled_) links_.Care();
  }
  void Complete(Operation* operation, const api::Completion& completion);
  // A peer's write with data; false: of another endpoint.
  bool TakeRemoteWrite(const api::Completion& completion);

 private:
  struct Queue {
    Cq* cq = nullptr;
    bool selective = false;  // only operations with FI_COMPLETION are entered
  };
  static bool Reports(const Queue& queue, uint64_t flags);
  PostResult PostOn(api::Connection& connection, const Transmit& transmit, Operation* operation);
  Counter* CounterOf(uint64_t flags) const;
  Operation* NewOperation(const Queue& queue, void* context, uint64_t flags, uint64_t kind);
  ssize_t Peek(const Receive& receive);
  ssize_t PostClaimed(const Receive& receive);
  api::Match MatchOf(const Receive& receive) const;
  void Release(Operation* operation);

  Domain* domain_;
  const uint64_t caps_;
  const uint64_t transmit_flags_;  // of calls without flags
  const uint64_t receive_flags_;
  api::ReceiveQueue receives_;
  Links links_;
  Av* av_ = nullptr;
  Queue transmit_queue_;
  Queue receive_queue_;
  struct CounterBinding {
    uint64_t kinds = 0;  // FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE
    Counter* counter = nullptr;
  };
  std::vector<CounterBinding> counters_;
  size_t min_multi_receive_ = kDefaultMinMultiReceive;
  bool enabled_ = false;
  IntrusiveList<Operation, &Operation::link> posted_;  // receives
};

int OpenEndpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);

// The tables of calls.
extern fi_ops_msg message_calls;
extern fi_ops_tagged tagged_calls;
extern fi_ops_rma rma_calls;

}  // namespace paceline::libfabric
