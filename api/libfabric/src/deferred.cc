#include "api/libfabric/src/deferred.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "api/libfabric/src/atomic.h"

namespace paceline::libfabric {
namespace {

using Work = DeferredQueue::Work;

// The call that makes the operation of `op`, a message and flags. All is kept, as programs describe one work after the
// other in the same place.
template <typename Op, typename Message>
Work WorkOn(const Op& op, ssize_t (*post)(fid_ep*, const Message*, uint64_t), uint64_t kind) {
  Endpoint* const endpoint = FidOf(op.ep)->endpoint;
  auto message = std::make_shared<KeptMessage<Message>>(op.msg);
  return {.post = [=, flags = op.flags] { return post(endpoint, message->get(), flags); },
          .endpoint = endpoint,
          .peer = PeerOf(op.msg.addr, kind),
          .context = op.msg.context,
          .kind = kind};
}

using Elements = std::vector<fi_ioc>;
template <typename Vector>
Elements ElementsOf(const Vector& vector) {
  return Elements(vector.msg_iov, vector.msg_iov + vector.iov_count);
}

Work WorkOn(const fi_op_fetch_atomic& op) {
  Endpoint* const endpoint = FidOf(op.ep)->endpoint;
  auto message = std::make_shared<KeptMessage<fi_msg_atomic>>(op.msg);
  auto results = std::make_shared<Elements>(ElementsOf(op.fetch));
  return {.post =
              [=, flags = op.flags] {
                return FetchAtomicMessage(endpoint, message->get(), results->data(), nullptr, results->size(), flags);
              },
          .endpoint = endpoint,
          .peer = op.msg.addr,
          .context = op.msg.context,
          .kind = FI_ATOMIC | FI_READ};
}

Work WorkOn(const fi_op_compare_atomic& op) {
  Endpoint* const endpoint = FidOf(op.ep)->endpoint;
  auto message = std::make_shared<KeptMessage<fi_msg_atomic>>(op.msg);
  auto compares = std::make_shared<Elements>(ElementsOf(op.compare));
  auto results = std::make_shared<Elements>(ElementsOf(op.fetch));
  return {.post =
              [=, flags = op.flags] {
                return CompareAtomicMessage(endpoint, message->get(), compares->data(), nullptr, compares->size(),
                                            results->data(), nullptr, results->size(), flags);
              },
          .endpoint = endpoint,
          .peer = op.msg.addr,
          .context = op.msg.context,
          .kind = FI_ATOMIC | FI_READ};
}

// What a work is to do; `post` is empty where that is unknown. Buffers stay the program's until it is complete.
Work WorkOf(const fi_deferred_work& work) {
  switch (work.op_type) {
    case FI_OP_RECV:
      return WorkOn(*work.op.msg, ReceiveMessage, FI_RECV | FI_MSG);
    case FI_OP_SEND:
      return WorkOn(*work.op.msg, SendMessage, FI_SEND | FI_MSG);
    case FI_OP_TRECV:
      return WorkOn(*work.op.tagged, ReceiveTaggedMessage, FI_RECV | FI_TAGGED);
    case FI_OP_TSEND:
      return WorkOn(*work.op.tagged, SendTaggedMessage, FI_SEND | FI_TAGGED);
    case FI_OP_READ:
      return WorkOn(*work.op.rma, ReadMessage, FI_READ | FI_RMA);
    case FI_OP_WRITE:
      return WorkOn(*work.op.rma, WriteMessage, FI_WRITE | FI_RMA);
    case FI_OP_ATOMIC:
      return WorkOn(*work.op.atomic, AtomicMessage, FI_ATOMIC | FI_WRITE);
    case FI_OP_FETCH_ATOMIC:
      return WorkOn(*work.op.fetch_atomic);
    case FI_OP_COMPARE_ATOMIC:
      return WorkOn(*work.op.compare_atomic);
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD: {
      auto* counter = static_cast<Counter*>(work.op.cntr->cntr);
      const bool add = work.op_type == FI_OP_CNTR_ADD;
      return {.post = [value = work.op.cntr->value, counter, add]() -> ssize_t {
                counter->Change(&Counter::value_, value, add);
                return 0;
              },
              .counter = counter};
    }
  }
  return {};
}

}  // namespace

void DeferredQueue::Add(Work work) { works_.push_back(std::move(work)); }

void DeferredQueue::Run() {
  if (running_ || works_.empty()) return;  // posting makes progress, which comes here
  running_ = true;
  for (bool again = true; again;) {
    again = false;
    absl::flat_hash_set<std::pair<const Endpoint*, fi_addr_t>> full;  // that could take no more in this pass
    for (auto work = works_.begin(); work != works_.end();) {
      const fi_addr_t peer = work->endpoint == nullptr ? FI_ADDR_UNSPEC : work->endpoint->OneNameOf(work->peer);
      if (work->trigger->value_ < work->threshold || full.contains({work->endpoint, peer})) {
        ++work;
        continue;
      }
      completion_ = work->completion;
      const ssize_t result = work->post();
      completion_ = nullptr;
      if (result == -FI_EAGAIN) {
        full.insert({work->endpoint, peer});
        ++work;
        continue;
      }
      const bool is_over = work->counter != nullptr || result != 0;
      if (result != 0) work->endpoint->TellUnposted(work->context, work->kind, static_cast<int>(-result));
      if (is_over && work->completion != nullptr) work->completion->Count(result == 0);
      again |= work->counter != nullptr || (is_over && work->completion != nullptr);  // a counter has changed
      work = works_.erase(work);
    }
  }
  running_ = false;
}

bool DeferredQueue::Cancel(const void* id) {
  return std::erase_if(works_, [id](const Work& work) { return work.id == id; }) > 0;
}

void DeferredQueue::Forget(const Counter* counter) {
  std::erase_if(works_, [counter](const Work& work) {
    return work.trigger == counter || work.completion == counter || work.counter == counter;
  });
}

void DeferredQueue::Forget(const Endpoint* endpoint) {
  std::erase_if(works_, [endpoint](const Work& work) { return work.endpoint == endpoint; });
}

int QueueWork(DeferredQueue& queue, fi_deferred_work* asked) {
  if (asked == nullptr || asked->triggering_cntr == nullptr) return -FI_EINVAL;
  Work work = WorkOf(*asked);
  if (work.post == nullptr) return -FI_ENOSYS;
  work.trigger = static_cast<Counter*>(asked->triggering_cntr);
  work.threshold = asked->threshold;
  work.completion = static_cast<Counter*>(asked->completion_cntr);
  work.id = asked;
  queue.Add(std::move(work));
  queue.Run();
  return 0;
}

}  // namespace paceline::libfabric
