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

}  // namespace
}  // namespace paceline::libfabric
