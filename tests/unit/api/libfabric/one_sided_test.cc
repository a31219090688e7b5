// Writes and reads through libfabric, memory under keys of both kinds, and counters.
#include <rdma/fi_atomic.h>

#include <algorithm>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class OneSidedTest : public FabricTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr size_t kBytes = 100'000;
  static constexpr uint64_t kKey = 42;

  void SetUp() override {
    Open([](fi_info& hints) {
      hints.caps = FI_MSG | FI_RMA;
      hints.domain_attr->mr_mode = GetParam();
    });
    ASSERT_EQ(
        fi_mr_reg(b_.domain, memory_.data(), kBytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &region_, nullptr),
        0);
    key_ = fi_mr_key(region_);
    const bool by_address = GetParam() == FI_MR_BASIC || (GetParam() & FI_MR_VIRT_ADDR) != 0;
    base_ = by_address ? reinterpret_cast<uint64_t>(memory_.data()) : 0;
  }
  void TearDown() override {
    if (region_ != nullptr) {
      EXPECT_EQ(fi_close(&region_->fid), 0);
    }
    FabricTest::TearDown();
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kBytes);
  fid_mr* region_ = nullptr;
  uint64_t key_ = 0;
  uint64_t base_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Modes, OneSidedTest,
                         testing::Values(0, FI_MR_BASIC, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY));

TEST_P(OneSidedTest, KeysAreTheProgramsOrRandom) {
  if (GetParam() == 0) {
    EXPECT_EQ(key_, kKey);
    fid_mr* second = nullptr;
    EXPECT_EQ(fi_mr_reg(b_.domain, memory_.data(), 1, FI_REMOTE_READ, 0, kKey, 0, &second, nullptr), -FI_ENOKEY);
    EXPECT_EQ(fi_mr_reg(b_.domain, memory_.data(), 1, FI_SEND | FI_RECV, 0, kKey, 0, &second, nullptr), 0);
    EXPECT_EQ(fi_close(&second->fid), 0);
  } else {
    EXPECT_NE(key_, kKey);
  }
}

TEST_P(OneSidedTest, MemoryOfAnyKindAndOfNoLengthIsRegistered) {
  // Without FI_HMEM what the attributes say of the kind of memory means nothing, and programs do not set it.
  const iovec memory = {memory_.data(), 10};
  const fi_mr_attr attributes = {.mr_iov = &memory,
                                 .iov_count = 1,
                                 .access = FI_REMOTE_WRITE,
                                 .requested_key = kKey + 1,
                                 .iface = static_cast<fi_hmem_iface>(12345)};
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_regattr(b_.domain, &attributes, 0, &region), 0);
  Post([&] { return fi_inject_write(a_.endpoint, "x", 1, a_.peer, base_, fi_mr_key(region)); });
  EXPECT_TRUE(Until([&] { return memory_[0] == 'x'; }));
  EXPECT_EQ(fi_close(&region->fid), 0);
  ASSERT_EQ(fi_mr_reg(b_.domain, nullptr, 0, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey + 1, 0, &region, nullptr), 0);
  Post([&] { return fi_write(a_.endpoint, "x", 1, nullptr, a_.peer, 0, fi_mr_key(region), nullptr); });
  EXPECT_EQ(Take(a_).err, FI_EACCES);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_P(OneSidedTest, WritesAndReadsOfEveryKind) {
  const auto out = Pattern(50'000, 9);
  int context = 0;
  Post([&] { return fi_write(a_.endpoint, out.data(), out.size(), nullptr, a_.peer, base_ + 1000, key_, &context); });
  const fi_cq_err_entry written = Take(a_);
  EXPECT_EQ(written.err, 0);
  EXPECT_EQ(written.op_context, &context);
  EXPECT_EQ(written.flags, FI_RMA | FI_WRITE);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), memory_.begin() + 1000));

  std::vector<uint8_t> in(out.size());
  Post([&] { return fi_read(a_.endpoint, in.data(), in.size(), nullptr, a_.peer, base_ + 1000, key_, &context); });
  EXPECT_EQ(Take(a_).flags, FI_RMA | FI_READ);
  EXPECT_EQ(in, out);
  EXPECT_TRUE(b_.completions.empty());

  Post([&] {
    return fi_writedata(a_.endpoint, out.data(), 500, nullptr, 0x1234567890abcdef, a_.peer, base_, key_, &context);
  });
  const fi_cq_err_entry told = Take(b_);
  EXPECT_EQ(told.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(told.data, 0x1234567890abcdefu);
  EXPECT_EQ(told.len, 500u);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 500, memory_.begin()));
  EXPECT_EQ(Take(a_).err, 0);

  Post([&] { return fi_inject_writedata(a_.endpoint, "inject", 7, 5, a_.peer, base_, key_); });
  EXPECT_EQ(Take(b_).data, 5u);
  EXPECT_STREQ(reinterpret_cast<char*>(memory_.data()), "inject");
  EXPECT_TRUE(a_.completions.empty());
}

TEST_P(OneSidedTest, LocalMemoryInPieces) {
  auto out = Pattern(1000, 4);
  const iovec from[] = {{out.data(), 10}, {out.data() + 10, 990}};
  Post([&] { return fi_writev(a_.endpoint, from, nullptr, 2, a_.peer, base_ + 5, key_, nullptr); });
  EXPECT_EQ(Take(a_).err, 0);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), memory_.begin() + 5));
  std::vector<uint8_t> in(1000);
  const iovec to[] = {{in.data(), 999}, {in.data() + 999, 1}};
  Post([&] { return fi_readv(a_.endpoint, to, nullptr, 2, a_.peer, base_ + 5, key_, nullptr); });
  EXPECT_EQ(Take(a_).err, 0);
  EXPECT_EQ(in, out);
}

TEST_P(OneSidedTest, WhatIsNotAllowedEndsWithAnError) {
  uint8_t byte = 1;
  for (const auto& at : {std::pair{base_ + kBytes, key_}, std::pair{base_, key_ + 1}}) {
    Post([&] { return fi_write(a_.endpoint, &byte, 1, nullptr, a_.peer, at.first, at.second, &byte); });
    const fi_cq_err_entry error = Take(a_);
    EXPECT_EQ(error.err, FI_EACCES);
    EXPECT_EQ(error.op_context, &byte);
  }
  EXPECT_EQ(fi_close(&region_->fid), 0);
  region_ = nullptr;
  Post([&] { return fi_read(a_.endpoint, &byte, 1, nullptr, a_.peer, base_, key_, &byte); });
  EXPECT_EQ(Take(a_).err, FI_EACCES);
}

class CounterTest : public FabricTest {};

TEST_F(CounterTest, CountsWhatPeersDoWithTheMemory) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT; });
  fid_cntr *writes = nullptr, *reads = nullptr, *of_region = nullptr;
  fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
  for (fid_cntr** counter : {&writes, &reads, &of_region}) {
    ASSERT_EQ(fi_cntr_open(b_.domain, &attributes, counter, nullptr), 0);
  }
  fid_ep* target = nullptr;
  ASSERT_EQ(fi_endpoint(b_.domain, b_.info.get(), &target, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(target, &b_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(target, &b_.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(target, &writes->fid, FI_REMOTE_WRITE), 0);
  ASSERT_EQ(fi_ep_bind(target, &reads->fid, FI_REMOTE_READ), 0);
  ASSERT_EQ(fi_enable(target), 0);
  alignas(8) uint64_t memory[4] = {};
  fid_mr* region = nullptr;
  constexpr uint64_t kAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;
  ASSERT_EQ(fi_mr_reg(b_.domain, memory, sizeof(memory), kAccess, 0, 3, FI_RMA_EVENT, &region, nullptr), 0);
  ASSERT_EQ(fi_mr_bind(region, &of_region->fid, FI_REMOTE_WRITE), 0);
  ASSERT_EQ(fi_mr_enable(region), 0);
  uint8_t name[64];
  size_t size = sizeof(name);
  ASSERT_EQ(fi_getname(&target->fid, name, &size), 0);
  fi_addr_t peer = 0;
  ASSERT_EQ(fi_av_insert(a_.av, name, 1, &peer, 0, nullptr), 1);
  uint64_t value = 5;
  Post([&] { return fi_write(a_.endpoint, &value, 8, nullptr, peer, 0, 3, nullptr); });
  Post([&] { return fi_inject_write(a_.endpoint, &value, 8, peer, 8, 3); });
  Post([&] { return fi_inject_writedata(a_.endpoint, &value, 8, 77, peer, 8, 3); });
  Post([&] { return fi_inject_atomic(a_.endpoint, &value, 1, peer, 16, 3, FI_UINT64, FI_SUM); });
  EXPECT_TRUE(Until([&] { return fi_cntr_read(writes) == 4 && fi_cntr_read(of_region) == 4; }));
  EXPECT_EQ(fi_cntr_read(reads), 0u);
  Post([&] { return fi_read(a_.endpoint, &value, 8, nullptr, peer, 0, 3, nullptr); });
  Post([&] {
    return fi_fetch_atomic(a_.endpoint, nullptr, 1, nullptr, &value, nullptr, peer, 16, 3, FI_UINT64, FI_ATOMIC_READ,
                           nullptr);
  });
  EXPECT_TRUE(Until([&] { return fi_cntr_read(reads) == 2; }));
  EXPECT_EQ(fi_cntr_read(writes), 4u);
  EXPECT_EQ(fi_cntr_read(of_region), 4u);
  ASSERT_EQ(b_.completions.size(), 1u);  // the write with data
  EXPECT_EQ(b_.completions[0].data, 77u);
  EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(fi_close(&target->fid), 0);
  for (fid_cntr* counter : {writes, reads, of_region}) EXPECT_EQ(fi_close(&counter->fid), 0);
}

// Who tells regions apart by their counters has agreed on their keys with its peers, whatever else it could do with.
TEST_F(CounterTest, KeysAreTheProgramsWhereRegionsHaveCounters) {
  Open([](fi_info& hints) {
    hints.caps = FI_MSG | FI_RMA | FI_RMA_EVENT;
    hints.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  });
  EXPECT_EQ(b_.info->domain_attr->mr_mode, 0);
  uint64_t memory[2] = {};
  fid_mr* regions[2] = {};
  fid_cntr* counters[2] = {};
  fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_cntr_open(b_.domain, &attributes, &counters[i], nullptr), 0);
    ASSERT_EQ(fi_mr_reg(b_.domain, &memory[i], 8, FI_REMOTE_WRITE, 0, i + 1, 0, &regions[i], nullptr), 0);
    ASSERT_EQ(fi_mr_bind(regions[i], &counters[i]->fid, FI_REMOTE_WRITE), 0);
  }
  const uint64_t out = 4;
  Post([&] { return fi_write(a_.endpoint, &out, 8, nullptr, a_.peer, 0, 2, nullptr); });
  EXPECT_EQ(Take(a_).err, 0);
  EXPECT_TRUE(Until([&] { return fi_cntr_read(counters[1]) == 1; }));
  EXPECT_EQ(fi_cntr_read(counters[0]), 0u);
  EXPECT_EQ(memory[1], out);
  for (fid_mr* region : regions) EXPECT_EQ(fi_close(&region->fid), 0);
  for (fid_cntr* counter : counters) EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(CounterTest, RegionsTellOnlyWhereTheProgramAsked) {
  Open([](fi_info& hints) { hints.caps = FI_MSG | FI_RMA; });
  fid_mr* region = nullptr;
  uint64_t memory = 0;
  EXPECT_EQ(fi_mr_reg(b_.domain, &memory, 8, FI_REMOTE_WRITE, 0, 3, FI_RMA_EVENT, &region, nullptr), -FI_EBADFLAGS);
}

TEST_F(CounterTest, CountsBySideAndKind) {
  fid_cntr *sent = nullptr, *received = nullptr;
  Open();
  fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
  ASSERT_EQ(fi_cntr_open(a_.domain, &attributes, &sent, nullptr), 0);
  ASSERT_EQ(fi_cntr_open(b_.domain, &attributes, &received, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(a_.endpoint, &sent->fid, FI_SEND), -FI_EOPBADSTATE);  // it is enabled
  // Two more endpoints, with counters and no queue for receives.
  fid_ep *from = nullptr, *to = nullptr;
  ASSERT_EQ(fi_endpoint(a_.domain, a_.info.get(), &from, nullptr), 0);
  ASSERT_EQ(fi_endpoint(b_.domain, b_.info.get(), &to, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(from, &a_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(to, &b_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(from, &a_.cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION), 0);
  ASSERT_EQ(fi_ep_bind(to, &b_.cq->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_ep_bind(from, &sent->fid, FI_SEND), 0);
  EXPECT_EQ(fi_enable(to), -FI_ENOCQ);
  ASSERT_EQ(fi_ep_bind(to, &received->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(from), 0);
  ASSERT_EQ(fi_enable(to), 0);
  uint8_t name[64];
  size_t size = sizeof(name);
  ASSERT_EQ(fi_getname(&to->fid, name, &size), 0);
  fi_addr_t peer = 0;
  ASSERT_EQ(fi_av_insert(a_.av, name, 1, &peer, 0, nullptr), 1);
  int in = 0;
  const int out = 5;
  for (int i = 0; i < 3; ++i) {
    Post([&] { return fi_recv(to, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, nullptr); });
    Post([&] { return fi_send(from, &out, sizeof(out), nullptr, peer, nullptr); });
  }
  EXPECT_TRUE(Until([&] { return fi_cntr_read(received) == 3 && fi_cntr_read(sent) == 3; }));
  EXPECT_EQ(fi_cntr_readerr(sent), 0u);
  EXPECT_EQ(fi_cntr_wait(sent, 3, 0), 0);
  EXPECT_EQ(fi_cntr_wait(sent, 4, 10), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_cntr_add(sent, 4), 0);
  EXPECT_EQ(fi_cntr_read(sent), 7u);
  EXPECT_EQ(fi_cntr_set(sent, 1), 0);
  EXPECT_EQ(fi_cntr_read(sent), 1u);
  EXPECT_EQ(fi_close(&from->fid), 0);
  EXPECT_EQ(fi_close(&to->fid), 0);
  EXPECT_EQ(fi_close(&sent->fid), 0);
  EXPECT_EQ(fi_close(&received->fid), 0);
  EXPECT_TRUE(b_.completions.empty());
}

}  // namespace
}  // namespace paceline::libfabric
