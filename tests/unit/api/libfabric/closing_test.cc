// What is left of an endpoint, and of what it uses, when the program closes it.
#include <rdma/fi_trigger.h>

#include <chrono>
#include <thread>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class ClosingTest : public FabricTest {
 protected:
  // Another endpoint in the domain of `side`, with its queue and addresses.
  static fid_ep* AnotherIn(Side& side, fid_ep* shared = nullptr, fid_cq* queue = nullptr) {
    fid_ep* endpoint = nullptr;
    EXPECT_EQ(fi_endpoint(side.domain, side.info.get(), &endpoint, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &side.av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, queue == nullptr ? &side.cq->fid : &queue->fid, FI_TRANSMIT | FI_RECV), 0);
    if (shared != nullptr) {
      EXPECT_EQ(fi_ep_bind(endpoint, &shared->fid, 0), 0);
    }
    EXPECT_EQ(fi_enable(endpoint), 0);
    return endpoint;
  }
  static fid_cq* NewQueue(Side& side) {
    fid_cq* queue = nullptr;
    fi_cq_attr attributes = {.format = FI_CQ_FORMAT_TAGGED};
    EXPECT_EQ(fi_cq_open(side.domain, &attributes, &queue, nullptr), 0);
    return queue;
  }
  // Until LetGoOn completions wait in the context of b, as one of its queues is full.
  void HoldUp() {
    constexpr int kRoom = 8192;
    full_ = NewQueue(b_);
    fills_ = AnotherIn(b_, nullptr, full_);
    int in = 0;
    for (int i = 0; i < kRoom; ++i) {
      ASSERT_EQ(fi_recv(fills_, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
      ASSERT_EQ(fi_cancel(&fills_->fid, &in), 0);
      b_.Read();
    }
  }
  void LetGoOn() {
    fi_cq_err_entry error{};
    while (fi_cq_readerr(full_, &error, 0) == 1) continue;
    ASSERT_EQ(fi_close(&fills_->fid), 0);
    ASSERT_EQ(fi_close(&full_->fid), 0);
  }
  // Until b has seen its end.
  void CloseA() {
    ASSERT_EQ(fi_close(&a_.endpoint->fid), 0);
    a_.endpoint = nullptr;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end) b_.Read();
  }

  fid_cq* full_ = nullptr;
  fid_ep* fills_ = nullptr;
};

TEST_F(ClosingTest, WhatAnEndpointHadPostedIsOverBeforeItIsGone) {
  Open([](fi_info& hints) { hints.domain_attr->data_progress = FI_PROGRESS_AUTO; });
  int in = 0;
  for (int i = 0; i < 1000; ++i) {
    fid_ep* const other = AnotherIn(a_);
    ASSERT_EQ(fi_recv(other, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
    ASSERT_EQ(fi_close(&other->fid), 0);
    for (int pass = 0; pass < 10; ++pass) a_.Read();
    EXPECT_TRUE(a_.completions.empty());
  }
}

TEST_F(ClosingTest, NothingIsSentAfterItsEndpointIsClosed) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_DIRECTED_RECV; });
  fid_ep* shared = nullptr;
  ASSERT_EQ(fi_srx_context(a_.domain, nullptr, &shared, nullptr), 0);
  fid_ep* const other = AnotherIn(a_, shared);
  std::vector<uint8_t> name(64);
  size_t size = name.size();
  ASSERT_EQ(fi_getname(&other->fid, name.data(), &size), 0);
  fi_addr_t sender = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(b_.av, name.data(), 1, &sender, 0, nullptr), 1);
  const auto out = Pattern(1'000'000, 3);
  std::vector<uint8_t> in(out.size());
  int first = 0;
  const int word = 1;
  Post([&] { return fi_recv(b_.endpoint, &first, sizeof(first), nullptr, sender, &first); });
  Post([&] { return fi_send(other, &word, sizeof(word), nullptr, a_.peer, nullptr); });
  EXPECT_EQ(Take(b_).err, 0);
  EXPECT_EQ(Take(a_).err, 0);
  ASSERT_EQ(fi_send(other, out.data(), out.size(), nullptr, a_.peer, nullptr), 0);
  // Nobody receives it; it has been announced.
  ASSERT_EQ(fi_close(&other->fid), 0);
  ASSERT_EQ(fi_recv(b_.endpoint, in.data(), in.size(), nullptr, sender, &in), 0);
  const fi_cq_err_entry end = Take(b_);
  EXPECT_EQ(end.op_context, &in);
  EXPECT_NE(end.err, 0);
  EXPECT_TRUE(a_.completions.empty());
  EXPECT_EQ(fi_close(&shared->fid), 0);
}

TEST_F(ClosingTest, WhatAPeerHasWrittenIsToldAfterItsEnd) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_RMA | FI_RMA_EVENT | FI_SOURCE; });
  uint64_t memory = 0;
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(b_.domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0, 3, 0, &region, nullptr), 0);
  const uint64_t out = 5;
  const auto write = [&](uint64_t data) {
    Post([&] { return fi_writedata(a_.endpoint, &out, 8, nullptr, data, a_.peer, 0, 3, nullptr); });
    EXPECT_EQ(Take(a_).err, 0);
  };
  write(0);
  Take(b_);
  HoldUp();
  for (uint64_t data = 1; data <= 3; ++data) write(data);
  CloseA();
  EXPECT_TRUE(b_.completions.empty());
  LetGoOn();
  b_.Read();
  ASSERT_EQ(b_.completions.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(b_.completions[i].data, i + 1);
    EXPECT_EQ(b_.sources[i], b_.peer);
  }
  EXPECT_EQ(fi_close(&region->fid), 0);
}

// Two endpoints of b share their receives, each with a queue of its own; a has sent to the second, and been held up.
class SharedClosingTest : public ClosingTest {
 protected:
  void SetUp() override {
    Open();
    ASSERT_EQ(fi_srx_context(b_.domain, nullptr, &shared_, nullptr), 0);
    queue_of_first_ = NewQueue(b_);
    first_ = AnotherIn(b_, shared_, queue_of_first_);
    second_ = AnotherIn(b_, shared_);
    uint8_t name[64];
    size_t size = sizeof(name);
    ASSERT_EQ(fi_getname(&second_->fid, name, &size), 0);
    ASSERT_EQ(fi_av_insert(a_.av, name, 1, &to_second_, 0, nullptr), 1);
    for (int& one : in_) ASSERT_EQ(fi_recv(shared_, &one, sizeof(one), nullptr, FI_ADDR_UNSPEC, &one), 0);
    Send();
    Take(b_);
    HoldUp();
    Send();
    Send();
  }
  void Send() {
    const int out = 7;
    Post([&] { return fi_send(a_.endpoint, &out, sizeof(out), nullptr, to_second_, nullptr); });
    EXPECT_EQ(Take(a_).err, 0);
  }
  void ExpectNothingForFirst() {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_read(queue_of_first_, &entry, 1), -FI_EAGAIN);
    EXPECT_EQ(fi_close(&first_->fid), 0);
    EXPECT_EQ(fi_close(&queue_of_first_->fid), 0);
    EXPECT_EQ(fi_close(&shared_->fid), 0);
  }

  fid_ep *shared_ = nullptr, *first_ = nullptr, *second_ = nullptr;
  fid_cq* queue_of_first_ = nullptr;
  fi_addr_t to_second_ = FI_ADDR_NOTAVAIL;
  int in_[3] = {};
};

TEST_F(SharedClosingTest, WhatAPeerHasSentIsToldToItsReceiverAfterItsEnd) {
  CloseA();
  LetGoOn();
  b_.Read();
  EXPECT_EQ(b_.completions.size(), 2u);
  for (const fi_addr_t source : b_.sources) EXPECT_EQ(source, b_.peer);
  EXPECT_EQ(fi_close(&second_->fid), 0);
  ExpectNothingForFirst();
}

TEST_F(SharedClosingTest, WhatCameToAClosedEndpointIsToldToNoOther) {
  EXPECT_EQ(fi_close(&second_->fid), 0);
  LetGoOn();
  b_.Read();
  EXPECT_TRUE(b_.completions.empty());
  ExpectNothingForFirst();
}

TEST_F(ClosingTest, WhatIsBoundStaysOpen) {
  Open([](fi_info& hints) { hints.caps |= FI_RMA | FI_RMA_EVENT | FI_MSG; });
  fid_cntr* counter = nullptr;
  fi_cntr_attr counter_attributes = {.events = FI_CNTR_EVENTS_COMP};
  ASSERT_EQ(fi_cntr_open(a_.domain, &counter_attributes, &counter, nullptr), 0);
  fid_ep* endpoint = nullptr;
  ASSERT_EQ(fi_endpoint(a_.domain, a_.info.get(), &endpoint, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(endpoint, &counter->fid, FI_SEND), 0);
  EXPECT_EQ(fi_close(&a_.av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&a_.cq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  ASSERT_EQ(fi_close(&endpoint->fid), 0);

  int memory = 0;
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(a_.domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0, 5, 0, &region, nullptr), 0);
  ASSERT_EQ(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  ASSERT_EQ(fi_close(&region->fid), 0);

  fid_poll* set = nullptr;
  fi_poll_attr poll_attributes{};
  ASSERT_EQ(fi_poll_open(a_.domain, &poll_attributes, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &counter->fid, 0), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  ASSERT_EQ(fi_close(&set->fid), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);

  fid_eq* eq = nullptr;
  fi_eq_attr eq_attributes{};
  ASSERT_EQ(fi_eq_open(a_.fabric, &eq_attributes, &eq, nullptr), 0);
  fid_av* av = nullptr;
  fi_av_attr av_attributes = {.type = FI_AV_TABLE, .flags = FI_EVENT};
  ASSERT_EQ(fi_av_open(a_.domain, &av_attributes, &av, nullptr), 0);
  ASSERT_EQ(fi_av_bind(av, &eq->fid, 0), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  ASSERT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(ClosingTest, AScalableEndpointOutlivesItsContextsAndForgetsThem) {
  Open();
  fid_ep *whole = nullptr, *first = nullptr, *second = nullptr;
  ASSERT_EQ(fi_scalable_ep(a_.domain, a_.info.get(), &whole, nullptr), 0);
  ASSERT_EQ(fi_tx_context(whole, 0, nullptr, &first, nullptr), 0);
  ASSERT_EQ(fi_tx_context(whole, 1, nullptr, &second, nullptr), 0);
  ASSERT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(fi_close(&whole->fid), -FI_EBUSY);
  fid_av* av = nullptr;
  fi_av_attr attributes = {.type = FI_AV_TABLE};
  ASSERT_EQ(fi_av_open(a_.domain, &attributes, &av, nullptr), 0);
  ASSERT_EQ(fi_scalable_ep_bind(whole, &av->fid, 0), 0);
  EXPECT_EQ(fi_close(&av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&second->fid), 0);
  EXPECT_EQ(fi_close(&whole->fid), 0);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(ClosingTest, WorkThatWaitsForACounterEndsWithItsEndpoint) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_TRIGGER; });
  fid_cntr *start = nullptr, *changed = nullptr;
  fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
  ASSERT_EQ(fi_cntr_open(a_.domain, &attributes, &start, nullptr), 0);
  ASSERT_EQ(fi_cntr_open(a_.domain, &attributes, &changed, nullptr), 0);
  fid_ep* const other = AnotherIn(a_);
  int in = 0;
  iovec to = {&in, sizeof(in)};
  fi_triggered_context context = {.event_type = FI_TRIGGER_THRESHOLD, .trigger = {.threshold = {start, 1}}};
  const fi_msg triggered = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context};
  ASSERT_EQ(fi_recvmsg(other, &triggered, FI_TRIGGER), 0);
  fi_op_msg message = {.ep = other, .msg = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC}};
  fi_deferred_work receive = {.threshold = 1, .triggering_cntr = start, .op_type = FI_OP_RECV};
  receive.op.msg = &message;
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &receive), 0);
  fi_op_cntr add = {.cntr = changed, .value = 5};
  fi_deferred_work then = {.threshold = 1, .triggering_cntr = start, .op_type = FI_OP_CNTR_ADD};
  then.op.cntr = &add;
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &then), 0);
  ASSERT_EQ(fi_close(&other->fid), 0);
  ASSERT_EQ(fi_close(&changed->fid), 0);
  EXPECT_EQ(fi_cntr_add(start, 1), 0);
  EXPECT_EQ(fi_control(&a_.domain->fid, FI_CANCEL_WORK, &receive), -FI_ENOENT);
  EXPECT_EQ(fi_control(&a_.domain->fid, FI_CANCEL_WORK, &then), -FI_ENOENT);
  EXPECT_EQ(fi_close(&start->fid), 0);
}

// A counter that an operation under way is to be counted by.
TEST_F(ClosingTest, ACounterOfDeferredWorkStaysOpenUntilTheWorkIsDone) {
  Open();
  fid_cntr *start = nullptr, *received = nullptr;
  fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
  ASSERT_EQ(fi_cntr_open(b_.domain, &attributes, &start, nullptr), 0);
  ASSERT_EQ(fi_cntr_open(b_.domain, &attributes, &received, nullptr), 0);
  int in = 0;
  iovec to = {&in, sizeof(in)};
  fi_op_msg message = {.ep = b_.endpoint, .msg = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC}};
  fi_deferred_work receive = {
      .threshold = 0, .triggering_cntr = start, .completion_cntr = received, .op_type = FI_OP_RECV};
  receive.op.msg = &message;
  ASSERT_EQ(fi_control(&b_.domain->fid, FI_QUEUE_WORK, &receive), 0);
  EXPECT_EQ(fi_close(&received->fid), -FI_EBUSY);
  const int out = 4;
  Post([&] { return fi_inject(a_.endpoint, &out, sizeof(out), a_.peer); });
  EXPECT_TRUE(Until([&] { return fi_cntr_read(received) == 1; }));
  EXPECT_EQ(fi_close(&received->fid), 0);
  EXPECT_EQ(fi_close(&start->fid), 0);
}

// A count that loses an update leaves the domain busy; the thread sanitizer sees one that could.
TEST_F(ClosingTest, ADomainCountsWhatThreadsOpenAtATime) {
  Open([](fi_info& hints) { hints.domain_attr->threading = FI_THREAD_SAFE; });
  const auto open_and_close = [this] {
    for (int i = 0; i < 200'000; ++i) {
      fid_stx* context = nullptr;
      if (fi_stx_context(a_.domain, nullptr, &context, nullptr) == 0) fi_close(&context->fid);
    }
  };
  std::thread other(open_and_close);
  open_and_close();
  other.join();
  EXPECT_EQ(fi_close(&a_.domain->fid), -FI_EBUSY);
  a_.Close();  // expects that it is free then
}

}  // namespace
}  // namespace paceline::libfabric
