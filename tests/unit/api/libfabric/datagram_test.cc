// Endpoints of type FI_EP_DGRAM: messages without a tag up to a bound, and nothing else.
#include <rdma/fi_atomic.h>

#include <string>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class DatagramTest : public FabricTest {
 protected:
  static void Ask(fi_info& hints) { hints.ep_attr->type = FI_EP_DGRAM; }

  void Send(Side& from, const void* bytes, size_t size) {
    Post([&] { return fi_send(from.endpoint, bytes, size, nullptr, from.peer, nullptr); });
    EXPECT_EQ(Take(from).err, 0);
  }
};

TEST_F(DatagramTest, OnlyMessagesWithoutATagAreOffered) {
  const Info info = GetInfo(Ask);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->next, nullptr);
  EXPECT_EQ(info->ep_attr->type, FI_EP_DGRAM);
  EXPECT_EQ(info->ep_attr->max_msg_size, 16384u);
  EXPECT_EQ(info->caps & (FI_MSG | FI_SEND | FI_RECV), FI_MSG | FI_SEND | FI_RECV);
  constexpr uint64_t kOthers = FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  EXPECT_EQ((info->caps | info->tx_attr->caps | info->rx_attr->caps) & kOthers, 0u);
  for (const uint64_t caps : {FI_TAGGED, FI_RMA, FI_ATOMIC, FI_RMA_EVENT, FI_NAMED_RX_CTX}) {
    EXPECT_EQ(GetInfo([&](fi_info& hints) {
                Ask(hints);
                hints.caps = caps;
              }),
              nullptr);
    EXPECT_EQ(GetInfo([&](fi_info& hints) {
                Ask(hints);
                hints.tx_attr->caps = caps;
              }),
              nullptr);
  }
  EXPECT_EQ(GetInfo([&](fi_info& hints) {
              Ask(hints);
              hints.ep_attr->max_msg_size = 16385;
            }),
            nullptr);
  EXPECT_EQ(GetInfo([&](fi_info& hints) {
              Ask(hints);
              hints.ep_attr->tx_ctx_cnt = 2;
            }),
            nullptr);
}

TEST_F(DatagramTest, MessagesGoBothWaysWithTheirSource) {
  Open(Ask);
  for (const size_t size : {0, 1, 1400, 16384}) {
    for (Side* from : {&a_, &b_}) {
      Side& to = from == &a_ ? b_ : a_;
      const auto out = Pattern(size, 5);
      std::vector<uint8_t> in(size);
      ASSERT_EQ(fi_recv(to.endpoint, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, &in), 0);
      Send(*from, out.data(), out.size());
      const fi_cq_err_entry received = Take(to);
      EXPECT_EQ(received.err, 0);
      EXPECT_EQ(received.op_context, &in);
      EXPECT_EQ(received.len, size);
      EXPECT_EQ(source_, to.peer);
      EXPECT_EQ(in, out);
    }
  }
}

// As programs do that know one side's address alone: the first message brings the other's.
TEST_F(DatagramTest, TheFirstMessageMayBringTheAddress) {
  Open(Ask, 0, false);
  Introduce(a_, b_);
  const auto name = a_.Name();
  std::vector<uint8_t> in(1024);
  ASSERT_EQ(fi_recv(b_.endpoint, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  Send(a_, name.data(), name.size());
  EXPECT_EQ(Take(b_).len, name.size());
  EXPECT_EQ(source_, FI_ADDR_NOTAVAIL);
  ASSERT_EQ(fi_av_insert(b_.av, in.data(), 1, &b_.peer, 0, nullptr), 1);
  char answer[6] = {};
  ASSERT_EQ(fi_recv(a_.endpoint, answer, sizeof(answer), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  Send(b_, "hello", 6);
  EXPECT_EQ(Take(a_).err, 0);
  EXPECT_STREQ(answer, "hello");
}

TEST_F(DatagramTest, WhatMeetsNoReceiveWaitsForOne) {
  Open(Ask);
  for (int i = 0; i < 10; ++i) Send(a_, &i, sizeof(i));
  for (int i = 0; i < 10; ++i) {
    int in = -1;
    ASSERT_EQ(fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    EXPECT_EQ(Take(b_).err, 0);
    EXPECT_EQ(in, i);
  }
}

TEST_F(DatagramTest, ALongerMessageIsRefused) {
  Open(Ask);
  const std::vector<uint8_t> out(16385);
  EXPECT_EQ(fi_send(a_.endpoint, out.data(), out.size(), nullptr, a_.peer, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_inject(a_.endpoint, out.data(), out.size(), a_.peer), -FI_EMSGSIZE);
}

TEST_F(DatagramTest, OtherOperationsAreRefused) {
  Open(Ask);
  uint64_t word = 0;
  EXPECT_EQ(fi_tsend(a_.endpoint, &word, 8, nullptr, a_.peer, 1, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_trecv(a_.endpoint, &word, 8, nullptr, a_.peer, 1, 0, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_write(a_.endpoint, &word, 8, nullptr, a_.peer, 0, 1, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_read(a_.endpoint, &word, 8, nullptr, a_.peer, 0, 1, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomic(a_.endpoint, &word, 1, nullptr, a_.peer, 0, 1, FI_UINT64, FI_SUM, nullptr), -FI_EOPNOTSUPP);
  fid_ep* scalable = nullptr;
  EXPECT_EQ(fi_scalable_ep(a_.domain, a_.info.get(), &scalable, nullptr), -FI_EINVAL);
  fid_pep* passive = nullptr;
  EXPECT_EQ(fi_passive_ep(a_.fabric, a_.info.get(), &passive, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace paceline::libfabric
