#include "api/libfabric/src/deferred.h"

#include <utility>

#include "api/libfabric/src/atomic.h"

namespace paceline::libfabric {
namespace {

using Work = DeferredQueue::Work;

Work WorkOn(fid_ep* endpoint, std::function<ssize_t()> post) {
  return {.post = std::move(post), .endpoint = FidOf(endpoint)->endpoint};
}

// What a work is to do; `post` is empty where that is unknown. Its messages stay the program's until it is complete, as
// libfabric has it.
Work WorkOf(const fi_deferred_work& work) {
  switch (work.op_type) {
    case FI_OP_RECV:
      return WorkOn(work.op.msg->ep, [op = work.op.msg] { return ReceiveMessage(op->ep, &op->msg, op->flags); });
    case FI_OP_SEND:
      return WorkOn(work.op.msg->ep, [op = work.op.msg] { return SendMessage(op->ep, &op->msg, op->flags); });
    case FI_OP_TRECV:
      return WorkOn(work.op.tagged->ep,
                    [op = work.op.tagged] { return ReceiveTaggedMessage(op->ep, &op->msg, op->flags); });
    case FI_OP_TSEND:
      return WorkOn(work.op.tagged->ep,
                    [op = work.op.tagged] { return SendTaggedMessage(op->ep, &op->msg, op->flags); });
    case FI_OP_READ:
      return WorkOn(work.op.rma->ep, [op = work.op.rma] { return ReadMessage(op->ep, &op->msg, op->flags); });
    case FI_OP_WRITE:
      return WorkOn(work.op.rma->ep, [op = work.op.rma] { return WriteMessage(op->ep, &op->msg, op->flags); });
    case FI_OP_ATOMIC:
      return WorkOn(work.op.atomic->ep, [op = work.op.atomic] { return AtomicMessage(op->ep, &op->msg, op->flags); });
    case FI_OP_FETCH_ATOMIC:
      return WorkOn(work.op.fetch_atomic->ep, [op = work.op.fetch_atomic] {
        return FetchAtomicMessage(op->ep, &op->msg, op->fetch.msg_iov, op->fetch.desc, op->fetch.iov_count, op->flags);
      });
    case FI_OP_COMPARE_ATOMIC:
      return WorkOn(work.op.compare_atomic->ep, [op = work.op.compare_atomic] {
        return CompareAtomicMessage(op->ep, &op->msg, op->compare.msg_iov, op->compare.desc, op->compare.iov_count,
                                    op->fetch.msg_iov, op->fetch.desc, op->fetch.iov_count, op->flags);
      });
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD: {
      auto* counter = static_cast<Counter*>(work.op.cntr->cntr);
      const bool add = work.op_type == FI_OP_CNTR_ADD;
      return {.post = [op = work.op.cntr, counter, add]() -> ssize_t {
                counter->Change(&Counter::value_, op->value, add);
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
    for (auto work = works_.begin(); work != works_.end();) {
      if (work->trigger->value_ < work->threshold) {
        ++work;
        continue;
      }
      completion_ = work->completion;
      const ssize_t result = work->post();
      completion_ = nullptr;
      if (result == -FI_EAGAIN) {
        ++work;
        continue;
      }
      const bool is_over = work->counter != nullptr || result != 0;
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
