// Endpoints that share their receives, scalable endpoints, and operations that wait for a counter.
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

constexpr size_t kMorePieces = 9;  // than one operation has

class ContextsTest : public FabricTest {
 protected:
  static std::vector<uint8_t> NameOf(fid_ep* endpoint) {
    std::vector<uint8_t> name(64);
    size_t size = name.size();
    EXPECT_EQ(fi_getname(&endpoint->fid, name.data(), &size), 0);
    return name;
  }
  static fid_cntr* NewCounter(Side& side) {
    fid_cntr* counter = nullptr;
    fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
    EXPECT_EQ(fi_cntr_open(side.domain, &attributes, &counter, nullptr), 0);
    return counter;
  }
};

class SharedReceivesTest : public ContextsTest, public ::testing::WithParamInterface<fi_ep_type> {};

TEST_P(SharedReceivesTest, EndpointsShareOneReceiveContext) {
  Open([](fi_info& hints) { hints.ep_attr->type = GetParam(); });
  fid_ep *shared = nullptr, *ends[2] = {};
  fid_stx* transmit = nullptr;
  ASSERT_EQ(fi_srx_context(b_.domain, nullptr, &shared, nullptr), 0);
  ASSERT_EQ(fi_stx_context(b_.domain, nullptr, &transmit, nullptr), 0);
  fi_addr_t peers[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_endpoint(b_.domain, b_.info.get(), &ends[i], nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ends[i], &b_.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ends[i], &b_.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_ep_bind(ends[i], &shared->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ends[i], &transmit->fid, 0), 0);
    ASSERT_EQ(fi_enable(ends[i]), 0);
    ASSERT_EQ(fi_av_insert(a_.av, NameOf(ends[i]).data(), 1, &peers[i], 0, nullptr), 1);
  }
  int values[3] = {}, dummy = 0;
  EXPECT_EQ(fi_recv(ends[0], &dummy, sizeof(int), nullptr, FI_ADDR_UNSPEC, nullptr), -FI_EOPNOTSUPP);
  for (int& value : values) {
    Post([&] { return fi_recv(shared, &value, sizeof(int), nullptr, FI_ADDR_UNSPEC, &value); });
  }
  for (int i = 0; i < 2; ++i) {
    const int out = 10 + i;
    Post([&] { return fi_inject(a_.endpoint, &out, sizeof(out), peers[i]); });
    EXPECT_EQ(Take(b_).op_context, &values[i]);
    EXPECT_EQ(values[i], out);
  }
  EXPECT_EQ(fi_cancel(&shared->fid, &values[2]), 0);
  EXPECT_EQ(Take(b_).err, FI_ECANCELED);
  EXPECT_EQ(fi_close(&shared->fid), -FI_EBUSY);
  for (fid_ep* end : ends) EXPECT_EQ(fi_close(&end->fid), 0);
  EXPECT_EQ(fi_close(&shared->fid), 0);
  EXPECT_EQ(fi_close(&transmit->fid), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, SharedReceivesTest, ::testing::Values(FI_EP_RDM, FI_EP_DGRAM),
                         [](const auto& type) { return type.param == FI_EP_RDM ? "Rdm" : "Dgram"; });

TEST_F(ContextsTest, AScalableEndpointHasOneAddressAndManyReceiveContexts) {
  constexpr int kContexts = 3, kBits = 2;
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_TAGGED | FI_NAMED_RX_CTX | FI_DIRECTED_RECV; });
  struct Scalable {
    fid_av* av = nullptr;
    fid_ep* whole = nullptr;
    fid_ep *transmit[kContexts] = {}, *receive[kContexts] = {};
    fi_addr_t peer = 0;
  } sides[2];
  Side* const owners[] = {&a_, &b_};
  for (int s = 0; s < 2; ++s) {
    Scalable& side = sides[s];
    fi_av_attr attributes = {.type = FI_AV_TABLE, .rx_ctx_bits = kBits};
    ASSERT_EQ(fi_av_open(owners[s]->domain, &attributes, &side.av, nullptr), 0);
    ASSERT_EQ(fi_scalable_ep(owners[s]->domain, owners[s]->info.get(), &side.whole, nullptr), 0);
    ASSERT_EQ(fi_scalable_ep_bind(side.whole, &side.av->fid, 0), 0);
    ASSERT_EQ(fi_enable(side.whole), 0);
    EXPECT_EQ(fi_tx_context(side.whole, 16, nullptr, &side.transmit[0], nullptr), -FI_EINVAL);
    for (int i = 0; i < kContexts; ++i) {
      ASSERT_EQ(fi_tx_context(side.whole, i, nullptr, &side.transmit[i], nullptr), 0);
      ASSERT_EQ(fi_rx_context(side.whole, i, nullptr, &side.receive[i], nullptr), 0);
      ASSERT_EQ(fi_ep_bind(side.transmit[i], &owners[s]->cq->fid, FI_TRANSMIT), 0);
      ASSERT_EQ(fi_ep_bind(side.receive[i], &owners[s]->cq->fid, FI_RECV), 0);
      ASSERT_EQ(fi_enable(side.transmit[i]), 0);
      ASSERT_EQ(fi_enable(side.receive[i]), 0);
    }
  }
  ASSERT_EQ(fi_av_insert(sides[0].av, NameOf(sides[1].whole).data(), 1, &sides[0].peer, 0, nullptr), 1);
  ASSERT_EQ(fi_av_insert(sides[1].av, NameOf(sides[0].whole).data(), 1, &sides[1].peer, 0, nullptr), 1);
  const auto send_to_all = [&](int s, int distance) {
    Scalable &from = sides[s], &to = sides[1 - s];
    for (int i = 0; i < kContexts; ++i) {
      int in = 0;
      const int out = 100 * s + i;
      Post([&] { return fi_trecv(to.receive[i], &in, sizeof(in), nullptr, to.peer, 5, 0, &in); });
      const fi_addr_t there = fi_rx_addr(from.peer, i, kBits);
      // At once, whether or not there is a connection: the other side is moved by its stand-in meanwhile.
      ASSERT_EQ(fi_tsend(from.transmit[(i + distance) % kContexts], &out, sizeof(out), nullptr, there, 5, nullptr), 0);
      EXPECT_EQ(Take(*owners[1 - s]).op_context, &in);
      EXPECT_EQ(in, out);
      EXPECT_EQ(source_, to.peer);
      EXPECT_EQ(Take(*owners[s]).err, 0);
    }
  };
  for (int s = 0; s < 2; ++s) send_to_all(s, 1);
  // A connection leads to the same context when the peer has another index.
  ASSERT_EQ(fi_av_remove(sides[0].av, &sides[0].peer, 1, 0), 0);
  ASSERT_EQ(fi_av_insert(sides[0].av, NameOf(sides[1].whole).data(), 1, &sides[0].peer, 0, nullptr), 1);
  send_to_all(0, 2);
  for (Scalable& side : sides) {
    for (fid_ep* part : side.transmit) EXPECT_EQ(fi_close(&part->fid), 0);
    for (fid_ep* part : side.receive) EXPECT_EQ(fi_close(&part->fid), 0);
    EXPECT_EQ(fi_close(&side.whole->fid), 0);
    EXPECT_EQ(fi_close(&side.av->fid), 0);
  }
}

// Its transmit contexts receive nothing, though they are who has connected; whether the address comes before or after.
TEST_F(ContextsTest, AScalableEndpointIsAnsweredWhereItReceives) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_NAMED_RX_CTX; });
  for (const bool is_known : {false, true}) {
    fid_ep *whole = nullptr, *transmit = nullptr, *receive = nullptr;
    ASSERT_EQ(fi_scalable_ep(b_.domain, b_.info.get(), &whole, nullptr), 0);
    ASSERT_EQ(fi_scalable_ep_bind(whole, &b_.av->fid, 0), 0);
    ASSERT_EQ(fi_tx_context(whole, 0, nullptr, &transmit, nullptr), 0);
    ASSERT_EQ(fi_rx_context(whole, 0, nullptr, &receive, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(transmit, &b_.cq->fid, FI_TRANSMIT), 0);
    ASSERT_EQ(fi_ep_bind(receive, &b_.cq->fid, FI_RECV), 0);
    ASSERT_EQ(fi_enable(transmit), 0);
    ASSERT_EQ(fi_enable(receive), 0);
    fi_addr_t scalable = FI_ADDR_NOTAVAIL;
    const auto insert = [&] { ASSERT_EQ(fi_av_insert(a_.av, NameOf(whole).data(), 1, &scalable, 0, nullptr), 1); };
    int in[2] = {};
    const int out = 5;
    if (is_known) insert();
    Post([&] { return fi_recv(a_.endpoint, &in[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, nullptr); });
    Post([&] { return fi_recv(receive, &in[1], sizeof(int), nullptr, FI_ADDR_UNSPEC, &in[1]); });
    ASSERT_EQ(fi_send(transmit, &out, sizeof(out), nullptr, b_.peer, nullptr), 0);
    EXPECT_EQ(Take(a_).err, 0);
    EXPECT_EQ(source_, scalable);
    EXPECT_EQ(Take(b_).err, 0);
    if (!is_known) insert();
    Post([&] { return fi_inject(a_.endpoint, &out, sizeof(out), scalable); });
    EXPECT_EQ(Take(b_).op_context, &in[1]);
    ASSERT_EQ(fi_av_remove(a_.av, &scalable, 1, 0), 0);
    for (fid_ep* part : {transmit, receive, whole}) EXPECT_EQ(fi_close(&part->fid), 0);
  }
}

TEST_F(ContextsTest, AScalableEndpointGivesUpOnWhoDoesNotAnswer) {
  setenv("PACELINE_CONNECT_TIMEOUT_MS", "200", 1);
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_NAMED_RX_CTX; });
  unsetenv("PACELINE_CONNECT_TIMEOUT_MS");
  b_.Close();
  fid_ep *whole = nullptr, *transmit = nullptr;
  ASSERT_EQ(fi_scalable_ep(a_.domain, a_.info.get(), &whole, nullptr), 0);
  ASSERT_EQ(fi_scalable_ep_bind(whole, &a_.av->fid, 0), 0);
  ASSERT_EQ(fi_tx_context(whole, 0, nullptr, &transmit, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(transmit, &a_.cq->fid, FI_TRANSMIT), 0);
  const int out = 1;
  EXPECT_EQ(fi_send(transmit, &out, sizeof(out), nullptr, a_.peer, nullptr), -FI_EOPBADSTATE);
  ASSERT_EQ(fi_enable(transmit), 0);
  EXPECT_EQ(fi_send(transmit, &out, sizeof(out), nullptr, a_.peer, nullptr), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_send(transmit, &out, sizeof(out), nullptr, a_.peer + 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_close(&transmit->fid), 0);
  EXPECT_EQ(fi_close(&whole->fid), 0);
}

TEST_F(ContextsTest, ATriggeredSendWaitsForItsCounter) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_TAGGED | FI_TRIGGER; });
  fid_cntr* counter = NewCounter(a_);
  int in[2] = {};
  for (int& value : in) {
    Post([&] { return fi_trecv(b_.endpoint, &value, sizeof(int), nullptr, FI_ADDR_UNSPEC, 0, ~0ull, &value); });
  }
  int first = 1, second = 2;
  fi_triggered_context context = {.event_type = FI_TRIGGER_THRESHOLD, .trigger = {.threshold = {counter, 2}}};
  {
    // Nothing of the call is kept by who makes it but its context and its buffer.
    iovec from = {&second, sizeof(second)};
    const fi_msg_tagged message = {.msg_iov = &from, .iov_count = 1, .addr = a_.peer, .tag = 2, .context = &context};
    EXPECT_EQ(fi_tsendmsg(a_.endpoint, &message, FI_TRIGGER), 0);
    from = {};
  }
  EXPECT_EQ(fi_cntr_add(counter, 1), 0);
  Post([&] { return fi_tinject(a_.endpoint, &first, sizeof(first), a_.peer, 1); });
  EXPECT_EQ(Take(b_).tag, 1u);
  for (int i = 0; i < 1000; ++i) MoveBoth();
  EXPECT_TRUE(b_.completions.empty());
  EXPECT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(Take(b_).tag, 2u);
  EXPECT_EQ(in[1], 2);
  EXPECT_EQ(Take(a_).op_context, &context);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

// They are due before there is a connection, which comes while they are looked through.
TEST_F(ContextsTest, TriggeredSendsKeepTheirOrder) {
  constexpr size_t kSends = 4000;
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_TRIGGER; });
  fid_cntr* counter = NewCounter(a_);
  std::vector<size_t> in(kSends), out(kSends);
  std::vector<fi_triggered_context> contexts(kSends);
  for (size_t i = 0; i < kSends; ++i) {
    Post([&] { return fi_recv(b_.endpoint, &in[i], sizeof(in[i]), nullptr, FI_ADDR_UNSPEC, nullptr); });
    out[i] = i;
    contexts[i] = {.event_type = FI_TRIGGER_THRESHOLD, .trigger = {.threshold = {counter, 1}}};
    iovec from = {&out[i], sizeof(out[i])};
    const fi_msg message = {.msg_iov = &from, .iov_count = 1, .addr = a_.peer, .context = &contexts[i]};
    ASSERT_EQ(fi_sendmsg(a_.endpoint, &message, FI_TRIGGER), 0);
  }
  EXPECT_EQ(fi_cntr_add(counter, 1), 0);
  // b's stand-in takes the connection at any time.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (a_.completions.size() < kSends && std::chrono::steady_clock::now() < end) a_.Read();
  for (size_t i = 0; i < kSends; ++i) ASSERT_EQ(Take(b_).err, 0);
  EXPECT_EQ(in, out);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

// Nor does what goes to one peer wait for another: here one that is gone, until the attempt to connect has failed.
TEST_F(ContextsTest, TriggeredSendsWaitForNoOtherPeer) {
  Side gone;
  const auto hints = [](fi_info& wanted) { wanted.caps = FI_MSG | FI_TRIGGER; };
  Open(hints);
  gone.Open(hints, 0);
  ASSERT_FALSE(HasFatalFailure());
  fi_addr_t nobody = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(a_.av, gone.Name().data(), 1, &nobody, 0, nullptr), 1);
  gone.Close();
  fid_cntr* counter = NewCounter(a_);
  int in = 0;
  const int out = 6;
  Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, nullptr); });
  iovec from = {const_cast<int*>(&out), sizeof(out)};
  fi_triggered_context contexts[2];
  for (int i = 0; i < 2; ++i) {
    contexts[i] = {.event_type = FI_TRIGGER_THRESHOLD, .trigger = {.threshold = {counter, 1}}};
    const fi_msg message = {
        .msg_iov = &from, .iov_count = 1, .addr = i == 0 ? nobody : a_.peer, .context = &contexts[i]};
    ASSERT_EQ(fi_sendmsg(a_.endpoint, &message, FI_TRIGGER), 0);
  }
  EXPECT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(Take(a_).op_context, &contexts[1]);
  EXPECT_EQ(Take(b_).err, 0);
  const fi_cq_err_entry error = Take(a_);
  EXPECT_EQ(error.op_context, &contexts[0]);
  EXPECT_EQ(error.err, FI_ETIMEDOUT);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(ContextsTest, WhatCannotBePostedWhenItIsDueEndsInAnError) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_TRIGGER; });
  fid_cntr *start = NewCounter(a_), *failed = NewCounter(a_), *work_failed = NewCounter(a_);
  fid_ep* from = nullptr;
  ASSERT_EQ(fi_endpoint(a_.domain, a_.info.get(), &from, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(from, &a_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(from, &a_.cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION), 0);
  ASSERT_EQ(fi_ep_bind(from, &failed->fid, FI_SEND | FI_RECV | FI_READ | FI_WRITE), 0);
  ASSERT_EQ(fi_enable(from), 0);
  const fi_addr_t nobody = a_.peer + 1;
  uint64_t value = 0;
  iovec memory[kMorePieces];
  std::fill(std::begin(memory), std::end(memory), iovec{&value, 1});
  fi_rma_iov remote = {.addr = 0, .len = 1, .key = 1};
  fi_ioc element = {&value, 1};
  fi_rma_ioc target = {.addr = 0, .count = 1, .key = 1};
  const auto expect = [&](void* context, uint64_t flags) {
    const fi_cq_err_entry error = Take(a_);
    EXPECT_EQ(error.err, FI_EINVAL);
    EXPECT_EQ(error.op_context, context);
    EXPECT_EQ(error.flags, flags);
  };
  fi_triggered_context context = {.event_type = FI_TRIGGER_THRESHOLD, .trigger = {.threshold = {start, 1}}};
  const fi_msg message = {.msg_iov = memory, .iov_count = 1, .addr = nobody, .context = &context};
  const fi_msg_tagged tagged = {.msg_iov = memory, .iov_count = 1, .addr = nobody, .context = &context};
  const fi_msg too_many = {.msg_iov = memory, .iov_count = kMorePieces, .addr = nobody, .context = &context};
  const fi_msg_rma rma = {
      .msg_iov = memory, .iov_count = 1, .addr = nobody, .rma_iov = &remote, .rma_iov_count = 1, .context = &context};
  const fi_msg_atomic atomic = {.msg_iov = &element,
                                .iov_count = 1,
                                .addr = nobody,
                                .rma_iov = &target,
                                .rma_iov_count = 1,
                                .datatype = FI_UINT64,
                                .op = FI_SUM,
                                .context = &context};
  ASSERT_EQ(fi_sendmsg(from, &message, FI_TRIGGER), 0);
  ASSERT_EQ(fi_tsendmsg(from, &tagged, FI_TRIGGER), 0);
  ASSERT_EQ(fi_recvmsg(from, &too_many, FI_TRIGGER), 0);
  ASSERT_EQ(fi_readmsg(from, &rma, FI_TRIGGER), 0);
  ASSERT_EQ(fi_writemsg(from, &rma, FI_TRIGGER), 0);
  ASSERT_EQ(fi_atomicmsg(from, &atomic, FI_TRIGGER), 0);
  fi_op_msg op = {.ep = from, .msg = message};
  op.msg.context = &op;
  fi_op_fetch_atomic fetch = {.ep = from, .msg = atomic, .fetch = {.msg_iov = &element, .iov_count = 1}};
  fi_deferred_work work = {.threshold = 1, .triggering_cntr = start, .completion_cntr = work_failed};
  work.op_type = FI_OP_SEND;
  work.op.msg = &op;
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &work), 0);
  work.op_type = FI_OP_FETCH_ATOMIC;
  work.op.fetch_atomic = &fetch;
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &work), 0);
  EXPECT_EQ(fi_cntr_add(start, 1), 0);
  ASSERT_TRUE(Until([&] { return a_.completions.size() == 8; }));
  expect(&context, FI_SEND | FI_MSG);
  expect(&context, FI_SEND | FI_TAGGED);
  expect(&context, FI_RECV | FI_MSG);
  expect(&context, FI_READ | FI_RMA);
  expect(&context, FI_WRITE | FI_RMA);
  expect(&context, FI_ATOMIC | FI_WRITE);
  expect(&op, FI_SEND | FI_MSG);
  expect(&context, FI_ATOMIC | FI_READ);
  EXPECT_EQ(fi_cntr_readerr(failed), 8u);
  EXPECT_EQ(fi_cntr_read(failed), 0u);
  EXPECT_EQ(fi_cntr_readerr(work_failed), 2u);
  EXPECT_EQ(fi_close(&from->fid), 0);
  for (fid_cntr* counter : {start, failed, work_failed}) EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(ContextsTest, AnAliasIsTheEndpointWithFlagsOfItsOwn) {
  Open({}, FI_SELECTIVE_COMPLETION);
  fid_ep *sends = nullptr, *receives = nullptr;
  EXPECT_EQ(fi_ep_alias(a_.endpoint, &sends, FI_COMPLETION), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(a_.endpoint, &sends, FI_TRANSMIT | FI_RECV | FI_COMPLETION), -FI_EINVAL);
  ASSERT_EQ(fi_ep_alias(a_.endpoint, &sends, FI_TRANSMIT | FI_COMPLETION), 0);
  ASSERT_EQ(fi_ep_alias(b_.endpoint, &receives, FI_RECV | FI_COMPLETION), 0);
  int in[4] = {};
  const int out = 7;
  Post([&] { return fi_recv(b_.endpoint, &in[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &in[0]); });
  Post([&] { return fi_recv(receives, &in[1], sizeof(int), nullptr, FI_ADDR_UNSPEC, &in[1]); });
  Post([&] { return fi_send(sends, &out, sizeof(out), nullptr, a_.peer, &in[2]); });
  Post([&] { return fi_send(a_.endpoint, &out, sizeof(out), nullptr, a_.peer, &in[3]); });
  EXPECT_EQ(Take(b_).op_context, &in[1]);
  EXPECT_EQ(Take(a_).op_context, &in[2]);
  for (int i = 0; i < 1000; ++i) MoveBoth();
  EXPECT_TRUE(a_.completions.empty() && b_.completions.empty());
  EXPECT_EQ(in[0] + in[1], 2 * out);
  uint8_t name[64];
  size_t size = sizeof(name);
  EXPECT_EQ(fi_getname(&sends->fid, name, &size), 0);
  EXPECT_EQ(std::vector<uint8_t>(name, name + size), a_.Name());
  EXPECT_EQ(fi_close(&a_.endpoint->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&sends->fid), 0);
  EXPECT_EQ(fi_close(&receives->fid), 0);
}

// Without the calls for whole messages: the alias says that all waits.
TEST_F(ContextsTest, WhatAnAliasPostsMayWaitForACounter) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_TRIGGER; });
  uint64_t memory[4] = {};
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(b_.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &region, nullptr),
            0);
  fid_cntr* counter = NewCounter(a_);
  fid_ep *sends = nullptr, *receives = nullptr;
  ASSERT_EQ(fi_ep_alias(a_.endpoint, &sends, FI_TRANSMIT | FI_TRIGGER), 0);
  ASSERT_EQ(fi_ep_alias(a_.endpoint, &receives, FI_RECV | FI_TRIGGER), 0);
  const uint64_t out = 5;
  uint64_t in[3] = {};
  fi_triggered_context contexts[6];
  for (int i = 0; i < 6; ++i) {
    contexts[i] = {.event_type = FI_TRIGGER_THRESHOLD, .trigger = {.threshold = {counter, static_cast<size_t>(i) + 1}}};
  }
  Post([&] { return fi_recv(b_.endpoint, &in[0], 8, nullptr, FI_ADDR_UNSPEC, &in[0]); });
  Post([&] { return fi_trecv(b_.endpoint, &in[1], 8, nullptr, FI_ADDR_UNSPEC, 3, 0, &in[1]); });
  EXPECT_EQ(fi_write(sends, &out, 8, nullptr, a_.peer, 0, 1, &contexts[0]), 0);
  EXPECT_EQ(fi_send(sends, &out, 8, nullptr, a_.peer, &contexts[1]), 0);
  EXPECT_EQ(fi_tsend(sends, &out, 8, nullptr, a_.peer, 3, &contexts[2]), 0);
  EXPECT_EQ(fi_atomic(sends, &out, 1, nullptr, a_.peer, 8, 1, FI_UINT64, FI_SUM, &contexts[3]), 0);
  EXPECT_EQ(fi_read(sends, &in[2], 8, nullptr, a_.peer, 0, 1, &contexts[4]), 0);
  EXPECT_EQ(fi_trecv(receives, &in[2], 8, nullptr, FI_ADDR_UNSPEC, 4, 0, &contexts[5]), 0);
  uint64_t was = 0;
  EXPECT_EQ(fi_fetch_atomic(sends, &out, 1, nullptr, &was, nullptr, a_.peer, 8, 1, FI_UINT64, FI_SUM, &contexts[3]),
            -FI_ENOSYS);
  EXPECT_EQ(fi_close(&sends->fid), 0);  // what waits is the endpoint's
  EXPECT_EQ(fi_close(&receives->fid), 0);
  for (int i = 0; i < 1000; ++i) MoveBoth();
  EXPECT_TRUE(a_.completions.empty() && b_.completions.empty());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(fi_cntr_add(counter, 1), 0);
    EXPECT_EQ(Take(a_).op_context, &contexts[i]);
  }
  EXPECT_EQ(memory[0], out);
  EXPECT_EQ(memory[1], out);
  EXPECT_EQ(in[2], out);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Take(b_).op_context, &in[i]);
  EXPECT_EQ(fi_cntr_add(counter, 1), 0);
  Post([&] { return fi_tinject(b_.endpoint, &out, 8, b_.peer, 4); });
  EXPECT_EQ(Take(a_).op_context, &contexts[5]);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(ContextsTest, DeferredWorkFollowsOneAnother) {
  Open();
  fid_cntr *start = NewCounter(a_), *sent = NewCounter(a_), *last = NewCounter(a_);
  int in = 0, out = 8;
  Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in); });
  iovec from = {&out, sizeof(out)};
  fi_op_msg message = {.ep = a_.endpoint, .msg = {.msg_iov = &from, .iov_count = 1, .addr = a_.peer}};
  fi_op_cntr add = {.cntr = last, .value = 5};
  fi_deferred_work send = {.threshold = 1, .triggering_cntr = start, .completion_cntr = sent, .op_type = FI_OP_SEND};
  send.op.msg = &message;
  fi_deferred_work then = {.threshold = 1, .triggering_cntr = sent, .op_type = FI_OP_CNTR_ADD};
  then.op.cntr = &add;
  fi_deferred_work never = then;
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &then), 0);
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &never), 0);
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &send), 0);
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_CANCEL_WORK, &never), 0);
  EXPECT_EQ(fi_control(&a_.domain->fid, FI_CANCEL_WORK, &never), -FI_ENOENT);
  for (int i = 0; i < 1000; ++i) MoveBoth();
  EXPECT_EQ(in, 0);
  EXPECT_EQ(fi_cntr_read(last), 0u);
  EXPECT_EQ(fi_cntr_set(start, 1), 0);
  EXPECT_TRUE(Until([&] { return fi_cntr_read(last) == 5; }));
  EXPECT_EQ(fi_cntr_read(sent), 1u);
  EXPECT_TRUE(Until([&] { return in == 8; }));
  ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &never), 0);
  EXPECT_EQ(fi_cntr_read(last), 10u);  // its counter was there already
  EXPECT_EQ(fi_control(&a_.domain->fid, FI_FLUSH_WORK, nullptr), 0);
  for (fid_cntr* counter : {start, sent, last}) EXPECT_EQ(fi_close(&counter->fid), 0);
}

// Works are described one after the other in the same place: nothing of a description is needed once it is queued.
TEST_F(ContextsTest, DeferredWorkIsKeptWithItsMessages) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC; });
  uint64_t memory[4] = {10, 20, 30, 40};
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(b_.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &region, nullptr),
            0);
  fid_cntr *start = NewCounter(a_), *done = NewCounter(a_);
  uint64_t in[2] = {}, read = 0, before[2] = {}, one = 1, twenty = 20;
  Post([&] { return fi_recv(b_.endpoint, &in[0], 8, nullptr, FI_ADDR_UNSPEC, &in[0]); });
  Post([&] { return fi_trecv(b_.endpoint, &in[1], 8, nullptr, FI_ADDR_UNSPEC, 6, 0, &in[1]); });
  fi_deferred_work work = {.threshold = 1, .triggering_cntr = start, .completion_cntr = done};
  const auto queue = [&](fi_op_type type, auto* op, auto member) {
    work.op_type = type;
    work.op.*member = op;
    ASSERT_EQ(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &work), 0);
    std::memset(op, 0x5a, sizeof(*op));
  };
  {
    iovec local = {&one, 8};
    fi_rma_iov remote = {.addr = 0, .len = 8, .key = 1};
    fi_ioc element = {&one, 1}, result = {&before[0], 1}, compare = {&twenty, 1};
    fi_rma_ioc target = {.addr = 8, .count = 1, .key = 1};
    using Op = decltype(work.op);
    fi_op_msg message = {.ep = a_.endpoint, .msg = {.msg_iov = &local, .iov_count = 1, .addr = a_.peer}};
    queue(FI_OP_SEND, &message, &Op::msg);
    fi_op_tagged tagged = {.ep = a_.endpoint, .msg = {.msg_iov = &local, .iov_count = 1, .addr = a_.peer, .tag = 6}};
    queue(FI_OP_TSEND, &tagged, &Op::tagged);
    const auto atomic_message = [&](fi_op op) {
      return fi_msg_atomic{.msg_iov = &element,
                           .iov_count = 1,
                           .addr = a_.peer,
                           .rma_iov = &target,
                           .rma_iov_count = 1,
                           .datatype = FI_UINT64,
                           .op = op};
    };
    fi_op_compare_atomic compared = {.ep = a_.endpoint,
                                     .msg = atomic_message(FI_CSWAP),
                                     .fetch = {.msg_iov = &result, .iov_count = 1},
                                     .compare = {.msg_iov = &compare, .iov_count = 1}};
    queue(FI_OP_COMPARE_ATOMIC, &compared, &Op::compare_atomic);
    result.addr = &before[1];
    target.addr = 16;
    fi_op_fetch_atomic fetched = {
        .ep = a_.endpoint, .msg = atomic_message(FI_SUM), .fetch = {.msg_iov = &result, .iov_count = 1}};
    queue(FI_OP_FETCH_ATOMIC, &fetched, &Op::fetch_atomic);
    target.addr = 24;
    fi_op_atomic atomic = {.ep = a_.endpoint, .msg = atomic_message(FI_SUM)};
    queue(FI_OP_ATOMIC, &atomic, &Op::atomic);
    fi_op_cntr add = {.cntr = done, .value = 5};
    work.completion_cntr = nullptr;
    queue(FI_OP_CNTR_ADD, &add, &Op::cntr);
    local.iov_base = &read;
    fi_op_rma rma = {
        .ep = a_.endpoint,
        .msg = {.msg_iov = &local, .iov_count = 1, .addr = a_.peer, .rma_iov = &remote, .rma_iov_count = 1}};
    work.completion_cntr = done;
    queue(FI_OP_READ, &rma, &Op::rma);
    local = {};
    remote = {};
    element = result = compare = {};
    target = {};
  }
  EXPECT_EQ(fi_cntr_add(start, 1), 0);
  EXPECT_TRUE(Until([&] { return fi_cntr_read(done) == 5 + 6; }));
  EXPECT_EQ(read, 10u);
  EXPECT_EQ(before[0], 20u);
  EXPECT_EQ(before[1], 30u);
  EXPECT_EQ(memory[1], 1u);
  EXPECT_EQ(memory[2], 31u);
  EXPECT_EQ(memory[3], 41u);
  EXPECT_TRUE(Until([&] { return in[0] == 1 && in[1] == 1; }));
  for (fid_cntr* counter : {start, done}) EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

}  // namespace
}  // namespace paceline::libfabric
