#include "api/libfabric/src/deferred.h"

#include <utility>

#include "api/libfabric/src/atomic.h"

namespace paceline::libfabric {
namespace {

// What a work is to do. Its messages stay the program's until it is complete, as libfabric has it.
std::function<ssize_t()> PostOf(const fi_deferred_work& work) {
  switch (work.op_type) {
    case FI_OP_RECV:
      return [op = work.op.msg] { return ReceiveMessage(op->ep, &op->msg, op->flags); };
    case FI_OP_SEND:
      return [op = work.op.msg] { return SendMessage(op->ep, &op->msg, op->flags); };
    case FI_OP_TRECV:
      return [op = work.op.tagged] { return ReceiveTaggedMessage(op->ep, &op->msg, op->flags); };
    case FI_OP_TSEND:
      return [op = work.op.tagged] { return SendTaggedMessage(op->ep, &op->msg, op->flags); };
    case FI_OP_READ:
      return [op = work.op.rma] { return ReadMessage(op->ep, &op->msg, op->flags); };
    case FI_OP_WRITE:
      return [op = work.op.rma] { return WriteMessage(op->ep, &op->msg, op->flags); };
    case FI_OP_ATOMIC:
      return [op = work.op.atomic] { return AtomicMessage(op->ep, &op->msg, op->flags); };
    case FI_OP_FETCH_ATOMIC:
      return [op = work.op.fetch_atomic] {
        return FetchAtomicMessage(op->ep, &op->msg, op->fetch.msg_iov, op->fetch.desc, op->fetch.iov_count, op->flags);
      };
    case FI_OP_COMPARE_ATOMIC:
      return [op = work.op.compare_atomic] {
        return CompareAtomicMessage(op->ep, &op->msg, op->compare.msg_iov, op->compare.desc, op->compare.iov_count,
                                    op->fetch.msg_iov, op->fetch.desc, op->fetch.iov_count, op->flags);
      };
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD:
      return [op = work.op.cntr, add = work.op_type == FI_OP_CNTR_ADD]() -> ssize_t {
        auto* counter = static_cast<Counter*>(op->cntr);
        counter->Change(&Counter::value_, op->value, add);
        return 0;
      };
  }
  return nullptr;
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
      const bool counts = work->completion != nullptr && (work->is_done_when_posted || result != 0);
      if (counts) work->completion->Count(result == 0);
      again |= work->is_done_when_posted || counts;  // a counter has changed
      work = works_.erase(work);
    }
  }
  running_ = false;
}

bool DeferredQueue::Cancel(const void* id) {
  return std::erase_if(works_, [id](const Work& work) { return work.id == id; }) > 0;
}

void DeferredQueue::Forget(const Counter* trigger) {
  std::erase_if(works_, [trigger](const Work& work) { return work.trigger == trigger || work.completion == trigger; });
}

int QueueWork(DeferredQueue& queue, fi_deferred_work* work) {
  if (work == nullptr || work->triggering_cntr == nullptr) return -FI_EINVAL;
  auto post = PostOf(*work);
  if (post == nullptr) return -FI_ENOSYS;
  queue.Add({.trigger = static_cast<Counter*>(work->triggering_cntr),
             .threshold = work->threshold,
             .post = std::move(post),
             .completion = static_cast<Counter*>(work->completion_cntr),
             .id = work,
             .is_done_when_posted = work->op_type == FI_OP_CNTR_SET || work->op_type == FI_OP_CNTR_ADD});
  queue.Run();
  return 0;
}

}  // namespace paceline::libfabric
