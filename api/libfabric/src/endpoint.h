// An endpoint: a receive queue and connections (links.h), queues and counters for what its operations come to. Parts of
// one are of the same class: a shared receive context has no connections, a transmit context of a scalable endpoint
// listens to nobody, a receive context sends nothing. A connected endpoint (FI_EP_MSG) has one connection (session.h)
// in the place of them. Calls by kind are in files of their own:
//   endpoint.cc   opening, binding, options, what completions become
//   connected.cc   what only connected endpoints have: asking for a connection, accepting one, its events
//   alias.cc      aliases of endpoints
//   transmit.cc   sends, writes, reads and atomics; receive.cc   receives, peek, cancel
//   messages.cc, rma.cc, atomic.cc   libfabric's many variants of these
//
// Thread rule: under the domain's guard, which the calls of libfabric's tables take.
// Ownership: of its connections and receive queue. Buffers are the program's until their completion.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <memory>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "api/libfabric/src/counter.h"
#include "api/libfabric/src/cq.h"
#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/eq.h"
#include "api/libfabric/src/fid.h"
#include "api/libfabric/src/info.h"
#include "api/libfabric/src/links.h"
#include "api/libfabric/src/session.h"
#include "api/libfabric/src/use.h"
#include "transport/base/intrusive_list.h"

namespace paceline::libfabric {

// Beside libfabric's flags, in those of our own calls: no completion, not even where the queue takes all of them.
inline constexpr uint64_t kSilent = 1ull << 33;

class Endpoint;

// What a program holds of an endpoint: the endpoint itself, or an alias with flags of its own.
struct EndpointFid : fid_ep {
  Endpoint* endpoint = nullptr;
  uint64_t transmit_flags = 0;  // of calls without flags
  uint64_t receive_flags = 0;
};
inline EndpointFid* FidOf(fid_ep* endpoint) { return static_cast<EndpointFid*>(endpoint); }

class Endpoint : public EndpointFid, public Usable {
 public:
  enum class Role : uint8_t { kWhole, kSharedReceive, kTransmit, kReceive };
  struct Traits {
    Role role = Role::kWhole;
    bool connected = false;        // FI_EP_MSG
    bool ordered_atomics = false;  // kAtomicOrder
    bool datagram = false;         // FI_EP_DGRAM: as the others, for short messages without a tag alone
    uint64_t caps = 0;
    uint64_t transmit_flags = 0;
    uint64_t receive_flags = 0;
    uint64_t service = 0;  // to listen by, if nobody does yet; 0: any
  };
  static Traits TraitsOf(const fi_info& info, Role role);

  Endpoint(Domain* domain, const Traits& traits);
  // What was sent goes out, for at most 250 ms; then everything left ends, and nobody uses its buffers any more. Takes
  // the guard, and leaves it while it waits.
  ~Endpoint();

  Domain* domain() const { return domain_; }
  Links& links() { return links_; }
  ListLink part;                                        // of a scalable endpoint
  bool is_shared() const { return !sharers_.empty(); }  // other endpoints still use its receives
  bool Has(uint32_t connection) const {
    return session_ == nullptr ? links_.Has(connection) : session_->Has(connection);
  }

  // ---- setting up
  int Bind(fid_t other, uint64_t flags);
  int Enable();
  int GetName(void* address, size_t* size);
  // The same for all addresses and contexts of a peer, and of a connected endpoint for whatever address.
  fi_addr_t OneNameOf(fi_addr_t peer) const;
  int GetOption(int name, void* value, size_t* size) const;
  int SetOption(int name, const void* value, size_t size);

  // ---- connected.cc: as libfabric's calls, -FI_ENOSYS of others than connected endpoints
  // `request`: which it is to accept, if it is not to ask.
  void MakeConnected(std::unique_ptr<Request> request, std::optional<Address> target);
  int Connect(const Address* to, Session::Data data);
  int Accept(Session::Data data);
  int Shutdown();
  int GetPeer(void* address, size_t* size);

  // ---- transmit.cc. `flags`: the call's, with FI_MSG or FI_TAGGED, FI_WRITE or FI_READ.
  struct Transmit {
    Vector vector;
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    void* context = nullptr;
    uint64_t flags = 0;
    uint64_t data = 0;  // with FI_REMOTE_CQ_DATA
    uint64_t tag = 0;
    uint64_t remote_offset = 0;  // one-sided
    uint64_t remote_key = 0;
  };
  ssize_t Post(const Transmit& transmit);
  // The vectors hold as many elements as the operation needs of them. `flags`: with FI_WRITE, or FI_READ for results.
  struct AtomicTransmit {
    api::AtomicOp op = api::AtomicOp::kSum;
    api::AtomicType type = api::AtomicType::kUint64;
    uint32_t elements = 0;
    Vector operands, compares, results;
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    void* context = nullptr;
    uint64_t flags = 0;
    uint64_t remote_offset = 0;
    uint64_t remote_key = 0;
  };
  ssize_t Post(const AtomicTransmit& transmit);

  // ---- receive.cc
  struct Receive {
    Vector vector;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    void* context = nullptr;
    uint64_t flags = 0;  // with FI_MSG or FI_TAGGED
    uint64_t tag = 0;
    uint64_t ignore = 0;
  };
  ssize_t Post(const Receive& receive);
  ssize_t Cancel(void* context);

  // ---- from the domain
  void CareForLinks(bool drained) {
    if (enabled_) session_ == nullptr ? links_.Care(drained) : CareForSession();
  }
  void Complete(Operation* operation, const api::Completion& completion);
  // That an operation of `kind`, which waited for a counter, could not be posted: `error`, as FI_E*.
  void TellUnposted(void* context, uint64_t kind, int error);
  // What a peer has done in memory of ours, `kind` FI_REMOTE_READ or FI_REMOTE_WRITE; false: of another endpoint.
  bool TakeRemoteAccess(const api::Completion& completion, uint64_t kind);

 private:
  struct Queue {
    Use<Cq> cq;
    bool selective = false;  // only operations with FI_COMPLETION are entered
  };
  int BindEq(Eq* eq);
  // Whose events are told where; nullptr: nowhere.
  Eq* event_queue() const { return eq_ ? eq_.get() : domain_->eq(); }
  void CareForSession();
  void CancelReceives();
  static bool Reports(const Queue& queue, uint64_t asked);
  ssize_t AwaitLink(fi_addr_t peer);
  api::Connection* Reach(fi_addr_t peer, ssize_t* error);
  ssize_t Posted(PostResult result, Operation* operation, bool injected);
  bool EndsAtOnce(const Operation& operation, size_t bytes) const;
  PostResult PostOn(api::Connection& connection, const Transmit& transmit, const api::Buffer& buffer,
                    Operation* operation, bool ends_at_once);
  static uint8_t* Stage(Operation* operation, size_t bytes);
  Counter* CounterOf(uint64_t flags) const;
  Operation* NewOperation(void* context, uint64_t flags, uint64_t kind);
  // Whose queue and counters a receive of ours is told to: of a shared one, those of the endpoint that it came to, of
  // the first where it came to none (0); ours, which are none, where that one is closed.
  Endpoint* ReceiverOf(uint32_t connection);
  ssize_t Peek(const Receive& receive);
  ssize_t PostClaimed(const Receive& receive);
  std::optional<api::Match> MatchOf(const Receive& receive) const;  // nothing: from an address that nobody has
  static api::Buffer BufferOf(Vector vector, Operation* operation);
  void Tell(Operation* operation, const api::Completion& completion);
  void Release(Operation* operation);

  Domain* domain_;
  const Traits traits_;
  api::ReceiveQueue receives_;
  Endpoint* shared_ = nullptr;      // the shared receive context in the place of receives_
  std::vector<Endpoint*> sharers_;  // of a shared receive context
  Links links_;
  std::unique_ptr<Session> session_;  // of a connected endpoint
  Use<Eq> eq_;                        // the same's
  Use<Av> av_;
  Queue transmit_queue_;
  Queue receive_queue_;
  std::vector<CounterBinding> counters_;
  absl::flat_hash_set<uint32_t> atomics_under_way_;  // connections with one, where atomics are ordered
  size_t min_multi_receive_ = kDefaultMinMultiReceive;
  bool enabled_ = false;
  IntrusiveList<Operation, &Operation::link> operations_;
};

int OpenEndpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);
int OpenSharedReceive(fid_domain* domain, fi_rx_attr* attributes, fid_ep** endpoint, void* context);
// A part of a scalable endpoint; `fclass` is FI_CLASS_TX_CTX or FI_CLASS_RX_CTX.
Endpoint* NewEndpoint(Domain* domain, const Endpoint::Traits& traits, size_t fclass, void* context);

// The calls for whole messages, which deferred operations make again.
ssize_t ReceiveMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags);
ssize_t SendMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags);
ssize_t ReceiveTaggedMessage(fid_ep* endpoint, const fi_msg_tagged* message, uint64_t flags);
ssize_t SendTaggedMessage(fid_ep* endpoint, const fi_msg_tagged* message, uint64_t flags);
ssize_t ReadMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags);
ssize_t WriteMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags);

// The tables of calls.
extern fi_ops_cm connection_calls;
extern fi_ops_msg message_calls;
extern fi_ops_tagged tagged_calls;
extern fi_ops_rma rma_calls;

}  // namespace paceline::libfabric
