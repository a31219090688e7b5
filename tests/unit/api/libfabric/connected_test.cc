// What is done over the connection of connected endpoints (FI_EP_MSG). Addresses of peers mean nothing there.
#include <rdma/fi_atomic.h>

#include <cstring>

#include "tests/unit/api/libfabric/connected_fixture.h"

namespace paceline::libfabric {
namespace {

constexpr fi_addr_t kNobody = 77;

TEST_F(ConnectedTest, OffersWhatNeedsNoAddresses) {
  const Info info = ConnectedInfo();
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->next, nullptr);
  EXPECT_EQ(info->ep_attr->type, FI_EP_MSG);
  EXPECT_EQ(info->caps & (FI_SOURCE | FI_DIRECTED_RECV | FI_NAMED_RX_CTX), 0u);
  EXPECT_EQ(ConnectedInfo([](fi_info& hints) { hints.caps = FI_MSG | FI_SOURCE; }), nullptr);
  EXPECT_EQ(ConnectedInfo([](fi_info& hints) { hints.ep_attr->rx_ctx_cnt = 2; }), nullptr);
  const Info any = GetInfo();
  ASSERT_NE(any, nullptr);
  EXPECT_EQ(any->ep_attr->type, FI_EP_RDM);  // first what needs no connections
  ASSERT_NE(any->next, nullptr);
  EXPECT_EQ(any->next->ep_attr->type, FI_EP_MSG);
  EXPECT_STREQ(any->next->fabric_attr->prov_name, "paceline");
  ASSERT_NE(any->next->next, nullptr);
  EXPECT_EQ(any->next->next->ep_attr->type, FI_EP_DGRAM);
  EXPECT_EQ(any->next->next->next, nullptr);
}

TEST_F(ConnectedTest, Messages) {
  OpenParties();
  const auto [a, b] = Connect();
  Talk(a, b);
  char in[8] = {};
  // Tagged, injected and with data.
  ASSERT_EQ(fi_trecv(b, in, sizeof(in), nullptr, kNobody, 5, 0, in), 0);
  Post([&, from = a] { return fi_tinjectdata(from, "tagged", 7, 99, kNobody, 5); });
  const fi_cq_err_entry tagged = Take(listens_);
  EXPECT_EQ(tagged.op_context, in);
  EXPECT_EQ(tagged.tag, 5u);
  EXPECT_EQ(tagged.data, 99u);
  EXPECT_STREQ(in, "tagged");
  // One that is cancelled.
  ASSERT_EQ(fi_recv(b, in, sizeof(in), nullptr, kNobody, in), 0);
  ASSERT_EQ(fi_cancel(&b->fid, in), 0);
  EXPECT_EQ(Take(listens_).err, FI_ECANCELED);
  // One buffer for several.
  char many[200] = {};
  iovec piece = {.iov_base = many, .iov_len = sizeof(many)};
  const fi_msg receive = {.msg_iov = &piece, .iov_count = 1, .addr = kNobody, .context = many};
  ASSERT_EQ(fi_recvmsg(b, &receive, FI_MULTI_RECV), 0);
  for (const char* text : {"one", "two"}) {
    Post([&, from = a] { return fi_inject(from, text, 4, kNobody); });
    const fi_cq_err_entry got = Take(listens_);
    EXPECT_EQ(got.op_context, many);
    EXPECT_STREQ(static_cast<char*>(got.buf), text);
  }
}

TEST_F(ConnectedTest, OneSidedOperations) {
  OpenParties();
  const auto [a, b] = Connect();
  auto memory = Pattern(4096, 7);
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(listens_.domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 11, 0,
                      &region, nullptr),
            0);
  const auto out = Pattern(1000, 1);
  Post([&, from = a] {
    return fi_writedata(from, out.data(), out.size(), nullptr, 42, kNobody, 100, fi_mr_key(region), nullptr);
  });
  EXPECT_EQ(Take(asks_).err, 0);
  const fi_cq_err_entry written = Take(listens_);
  EXPECT_EQ(written.data, 42u);
  EXPECT_NE(written.flags & FI_REMOTE_WRITE, 0u);
  EXPECT_EQ(std::memcmp(memory.data() + 100, out.data(), out.size()), 0);
  std::vector<uint8_t> in(out.size());
  Post(
      [&, from = a] { return fi_read(from, in.data(), in.size(), nullptr, kNobody, 100, fi_mr_key(region), nullptr); });
  EXPECT_EQ(Take(asks_).err, 0);
  EXPECT_EQ(in, out);
  uint64_t add = 5, before = 0, value = 37;
  std::memcpy(memory.data(), &value, sizeof(value));
  Post([&, from = a] {
    return fi_fetch_atomic(from, &add, 1, nullptr, &before, nullptr, kNobody, 0, fi_mr_key(region), FI_UINT64, FI_SUM,
                           nullptr);
  });
  EXPECT_EQ(Take(asks_).err, 0);
  EXPECT_EQ(before, 37u);
  std::memcpy(&value, memory.data(), sizeof(value));
  EXPECT_EQ(value, 42u);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(ConnectedTest, AProgressThreadMayMoveThem) {
  OpenParties([](fi_info& hints) {
    hints.domain_attr->threading = FI_THREAD_SAFE;
    hints.domain_attr->data_progress = FI_PROGRESS_AUTO;
  });
  const auto [a, b] = Connect();
  Talk(a, b);
  ASSERT_EQ(fi_shutdown(a, 0), 0);
  EXPECT_EQ(TakeEvent(listens_).kind, FI_SHUTDOWN);
}

TEST_F(ConnectedTest, CountersAreTheEndpoints) {
  OpenParties();
  fid_cntr* sent = nullptr;
  fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
  ASSERT_EQ(fi_cntr_open(asks_.domain, &attributes, &sent, nullptr), 0);
  const auto [a, b] = Connect([&](fid_ep* endpoint) { EXPECT_EQ(fi_ep_bind(endpoint, &sent->fid, FI_SEND), 0); });
  Talk(a, b);
  EXPECT_EQ(fi_cntr_read(sent), 1u);
  ASSERT_EQ(fi_close(&a->fid), 0);
  asks_.endpoints.clear();
  EXPECT_EQ(fi_close(&sent->fid), 0);
}

TEST_F(ConnectedTest, EndpointsOfOneDomainAreApart) {
  OpenParties();
  const auto [a1, b1] = Connect();
  const auto [a2, b2] = Connect();
  int in1 = 0, in2 = 0;
  ASSERT_EQ(fi_recv(b1, &in1, sizeof(in1), nullptr, kNobody, &in1), 0);
  ASSERT_EQ(fi_recv(b2, &in2, sizeof(in2), nullptr, kNobody, &in2), 0);
  const int two = 2;
  Post([&, from = a2] { return fi_inject(from, &two, sizeof(two), kNobody); });
  EXPECT_EQ(Take(listens_).op_context, &in2);
  EXPECT_EQ(in2, 2);
  Talk(a2, b2);
  ASSERT_EQ(fi_shutdown(a2, 0), 0);
  EXPECT_EQ(TakeEvent(listens_).about, &b2->fid);
  const int one = 1;
  Post([&, from = a1] { return fi_inject(from, &one, sizeof(one), kNobody); });
  EXPECT_EQ(Take(listens_).op_context, &in1);
  EXPECT_EQ(in1, 1);
}

TEST_F(ConnectedTest, EndpointsMayShareTheirReceives) {
  OpenParties([](fi_info& hints) { hints.ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT; });
  fid_ep* shared = nullptr;
  ASSERT_EQ(fi_srx_context(listens_.domain, listens_.info->rx_attr, &shared, nullptr), 0);
  fi_cq_attr attributes = {.format = FI_CQ_FORMAT_TAGGED};
  fid_cq* second = nullptr;
  ASSERT_EQ(fi_cq_open(listens_.domain, &attributes, &second, nullptr), 0);
  const auto bind = [&](fid_ep* endpoint) { EXPECT_EQ(fi_ep_bind(endpoint, &shared->fid, 0), 0); };
  const auto [a1, b1] = Connect({}, bind);
  const auto [a2, b2] = Connect({}, [&](fid_ep* endpoint) {
    bind(endpoint);
    EXPECT_EQ(fi_ep_bind(endpoint, &second->fid, FI_RECV), 0);
  });
  int in[2] = {};
  for (int& one : in) ASSERT_EQ(fi_recv(shared, &one, sizeof(one), nullptr, kNobody, &one), 0);
  EXPECT_EQ(fi_recv(b1, in, sizeof(in), nullptr, kNobody, nullptr), -FI_EOPNOTSUPP);
  const int out[] = {1, 2};
  Post([&, from = a2] { return fi_inject(from, &out[1], sizeof(int), kNobody); });
  fi_cq_tagged_entry entry{};
  ASSERT_TRUE(Until([&] { return fi_cq_read(second, &entry, 1) == 1; }));  // the queue of who was sent to
  EXPECT_EQ(entry.op_context, &in[0]);
  // One that ends leaves the others theirs.
  ASSERT_EQ(fi_shutdown(b2, 0), 0);
  EXPECT_EQ(TakeEvent(listens_).kind, FI_SHUTDOWN);
  Post([&, from = a1] { return fi_inject(from, &out[0], sizeof(int), kNobody); });
  EXPECT_EQ(Take(listens_).op_context, &in[1]);
  EXPECT_EQ(in[0], 2);
  EXPECT_EQ(in[1], 1);
  for (fid_ep* endpoint : listens_.endpoints) EXPECT_EQ(fi_close(&endpoint->fid), 0);
  listens_.endpoints.clear();
  EXPECT_EQ(fi_close(&shared->fid), 0);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

TEST_F(ConnectedTest, AScalableEndpointIsNotConnected) {
  OpenParties();
  fid_ep* scalable = nullptr;
  EXPECT_EQ(fi_scalable_ep(asks_.domain, asks_.info.get(), &scalable, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace paceline::libfabric
