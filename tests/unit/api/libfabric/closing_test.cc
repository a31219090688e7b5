// What is left of an endpoint, and of what it uses, when the program closes it.
#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class ClosingTest : public FabricTest {
 protected:
  // Another endpoint in the domain of `side`, with its queue and addresses.
  static fid_ep* AnotherIn(Side& side, fid_ep* shared = nullptr) {
    fid_ep* endpoint = nullptr;
    EXPECT_EQ(fi_endpoint(side.domain, side.info.get(), &endpoint, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &side.av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &side.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    if (shared != nullptr) {
      EXPECT_EQ(fi_ep_bind(endpoint, &shared->fid, 0), 0);
    }
    EXPECT_EQ(fi_enable(endpoint), 0);
    return endpoint;
  }
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

}  // namespace
}  // namespace paceline::libfabric
