// Operations that wait until a counter has reached a threshold: libfabric's triggered operations and its deferred work
// queue.
//
// Thread rule: under the domain's guard. A domain has one queue.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include <functional>
#include <list>
#include <memory>
#include <type_traits>
#include <vector>

#include "api/libfabric/src/counter.h"
#include "api/libfabric/src/endpoint.h"

namespace paceline::libfabric {

class DeferredQueue {
 public:
  struct Work {
    Counter* trigger = nullptr;
    uint64_t threshold = 0;
    std::function<ssize_t()> post;     // -FI_EAGAIN: to be called again
    Endpoint* endpoint = nullptr;      // that it is posted on,
    fi_addr_t peer = FI_ADDR_UNSPEC;   // and whom it goes to; of receives, nobody: or
    const Counter* counter = nullptr;  // that it changes: then nothing completes later
    Counter* completion = nullptr;     // counts the operation's completion too; may be nullptr
    const void* id = nullptr;          // by which the program cancels it
    void* context = nullptr;           // of an operation: for its completion if it cannot be posted,
    uint64_t kind = 0;                 // and the flags of that
  };
  void Add(Work work);
  // Posts what is due, in the order in which it was added: what an endpoint cannot take yet holds up all of it for the
  // same peer that follows. Of what it refuses its queue and counter tell.
  void Run();
  bool Cancel(const void* id);
  void Clear() { works_.clear(); }
  // Those that need what is about to be closed.
  void Forget(const Counter* counter);
  void Forget(const Endpoint* endpoint);
  // Of the operation that is just being posted: the counter to tell of its completion.
  Counter* completion_counter() const { return completion_; }
  bool is_running() const { return running_; }

 private:
  std::list<Work> works_;
  Counter* completion_ = nullptr;
  bool running_ = false;
};

// Whom an operation of `kind` goes to that names this address.
inline fi_addr_t PeerOf(fi_addr_t address, uint64_t kind) { return (kind & FI_RECV) != 0 ? FI_ADDR_UNSPEC : address; }

// As fi_control(domain, FI_QUEUE_WORK).
int QueueWork(DeferredQueue& queue, fi_deferred_work* work);

// A message that outlives the call, with its vectors.
template <typename Message>
class KeptMessage {
 public:
  explicit KeptMessage(const Message& message)
      : message_(message), local_(message.msg_iov, message.msg_iov + message.iov_count) {
    message_.msg_iov = local_.data();
    if constexpr (requires { message.rma_iov; }) {
      remote_.assign(message.rma_iov, message.rma_iov + message.rma_iov_count);
      message_.rma_iov = remote_.data();
    }
  }
  KeptMessage(const KeptMessage&) = delete;
  KeptMessage& operator=(const KeptMessage&) = delete;
  const Message* get() const { return &message_; }

 private:
  template <typename M>
  static auto RemoteOf() {
    if constexpr (requires(M m) { m.rma_iov; }) {
      return std::remove_cvref_t<decltype(*std::declval<M>().rma_iov)>{};
    } else {
      return char{};
    }
  }
  Message message_;
  std::vector<std::remove_cvref_t<decltype(*std::declval<Message>().msg_iov)>> local_;
  std::vector<decltype(RemoteOf<Message>())> remote_;
};

// A call with FI_TRIGGER: its context says which counter it waits for. `kind`: the flags of its completion.
template <typename Message>
ssize_t Trigger(fid_ep* endpoint, const Message& message, uint64_t flags,
                ssize_t (*post)(fid_ep*, const Message*, uint64_t), uint64_t kind) {
  const auto* context = static_cast<const fi_triggered_context*>(message.context);
  if (context == nullptr || context->event_type != FI_TRIGGER_THRESHOLD) return -FI_ENOSYS;
  if ((flags & FI_INJECT) != 0) return -FI_EINVAL;  // nobody would have kept the bytes
  auto* counter = static_cast<Counter*>(context->trigger.threshold.cntr);
  if (counter == nullptr) return -FI_EINVAL;
  const Domain::Guard guard(counter->domain());
  auto kept = std::make_shared<KeptMessage<Message>>(message);
  Endpoint* const whole = FidOf(endpoint)->endpoint;  // an alias may be closed before
  DeferredQueue& queue = counter->domain()->deferred();
  queue.Add({.trigger = counter,
             .threshold = context->trigger.threshold.threshold,
             .post = [whole, kept, flags, post] { return post(whole, kept->get(), flags & ~FI_TRIGGER); },
             .endpoint = whole,
             .peer = PeerOf(message.addr, kind),
             .context = message.context,
             .kind = kind});
  queue.Run();
  return 0;
}

}  // namespace paceline::libfabric
