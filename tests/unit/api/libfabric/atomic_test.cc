// Atomics through libfabric: what is offered, what they do, and who may do them.
#include <rdma/fi_atomic.h>

#include <array>
#include <cstdlib>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class AtomicTest : public FabricTest {
 protected:
  static constexpr uint64_t kKey = 9;

  void SetUp() override {
    Open([this](fi_info& hints) {
      hints.caps = FI_MSG | FI_ATOMIC;
      hints.tx_attr->msg_order = order_;
    });
    ASSERT_EQ(fi_mr_reg(b_.domain, cells_.data(), sizeof(cells_), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0,
                        &region_, nullptr),
              0);
  }
  void TearDown() override {
    if (region_ != nullptr) {
      EXPECT_EQ(fi_close(&region_->fid), 0);
    }
    FabricTest::TearDown();
  }

  uint64_t order_ = 0;
  alignas(32) std::array<int32_t, 4> cells_ = {1, 2, 3, 4};
  fid_mr* region_ = nullptr;
};

TEST_F(AtomicTest, EveryFormOfCall) {
  using Cells = std::array<int32_t, 4>;
  Cells operands = {10, 20, 30, 40}, results = {}, compares = {11, 0, 33, 0};
  fid_ep* a = a_.endpoint;
  Post([&] { return fi_atomic(a, operands.data(), 4, nullptr, a_.peer, 0, kKey, FI_INT32, FI_SUM, &operands); });
  const fi_cq_err_entry base = Take(a_);
  EXPECT_EQ(base.err, 0);
  EXPECT_EQ(base.op_context, &operands);
  EXPECT_EQ(base.flags, FI_ATOMIC | FI_WRITE);
  EXPECT_EQ(cells_, (Cells{11, 22, 33, 44}));
  Post([&] {
    return fi_fetch_atomic(a, nullptr, 4, nullptr, results.data(), nullptr, a_.peer, 0, kKey, FI_INT32, FI_ATOMIC_READ,
                           &results);
  });
  EXPECT_EQ(Take(a_).flags, FI_ATOMIC | FI_READ);
  EXPECT_EQ(results, cells_);
  Post([&] {
    return fi_compare_atomic(a, operands.data(), 4, nullptr, compares.data(), nullptr, results.data(), nullptr, a_.peer,
                             0, kKey, FI_INT32, FI_CSWAP, nullptr);
  });
  EXPECT_EQ(Take(a_).err, 0);
  EXPECT_EQ(results, (Cells{11, 22, 33, 44}));
  EXPECT_EQ(cells_, (Cells{10, 22, 30, 44}));
  Post([&] { return fi_inject_atomic(a, operands.data(), 1, a_.peer, 4, kKey, FI_INT32, FI_ATOMIC_WRITE); });
  EXPECT_TRUE(Until([&] { return cells_[1] == 10; }));
  // In pieces, from the second element on.
  fi_ioc from[] = {{operands.data(), 1}, {operands.data() + 1, 2}};
  fi_ioc to[] = {{results.data() + 2, 2}, {results.data(), 1}};
  Post([&] {
    return fi_fetch_atomicv(a, from, nullptr, 2, to, nullptr, 2, a_.peer, 4, kKey, FI_INT32, FI_MAX, nullptr);
  });
  EXPECT_EQ(Take(a_).err, 0);
  EXPECT_EQ(results, (Cells{44, 22, 10, 30}));
  EXPECT_EQ(cells_, (Cells{10, 10, 30, 44}));
  const fi_rma_ioc remote = {.addr = 0, .count = 2, .key = kKey};
  fi_ioc two = {operands.data(), 2};
  const fi_msg_atomic message = {.msg_iov = &two,
                                 .iov_count = 1,
                                 .addr = a_.peer,
                                 .rma_iov = &remote,
                                 .rma_iov_count = 1,
                                 .datatype = FI_INT32,
                                 .op = FI_BXOR,
                                 .context = &two};
  Post([&] { return fi_atomicmsg(a, &message, FI_COMPLETION); });
  EXPECT_EQ(Take(a_).op_context, &two);
  EXPECT_EQ(cells_, (Cells{0, 30, 30, 44}));
  EXPECT_TRUE(a_.completions.empty());
}

TEST_F(AtomicTest, WhatIsOfferedWorksAndNothingElseIs) {
  size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(a_.endpoint, FI_UINT64, FI_SUM, &count), 0);
  EXPECT_EQ(count, 128u);
  EXPECT_EQ(fi_atomicvalid(a_.endpoint, FI_UINT64, FI_CSWAP, &count), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomicvalid(a_.endpoint, FI_UINT64, FI_ATOMIC_READ, &count), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomicvalid(a_.endpoint, FI_DOUBLE, FI_BOR, &count), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_fetch_atomicvalid(a_.endpoint, FI_FLOAT_COMPLEX, FI_PROD, &count), 0);
  EXPECT_EQ(fi_fetch_atomicvalid(a_.endpoint, FI_FLOAT_COMPLEX, FI_MAX, &count), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_compare_atomicvalid(a_.endpoint, FI_INT8, FI_MSWAP, &count), 0);
  EXPECT_EQ(fi_compare_atomicvalid(a_.endpoint, FI_INT8, FI_SUM, &count), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomicvalid(a_.endpoint, FI_INT128, FI_SUM, &count), -FI_EOPNOTSUPP);
  fi_atomic_attr attributes{};
  EXPECT_EQ(fi_query_atomic(a_.domain, FI_DOUBLE, FI_CSWAP_LT, &attributes, FI_COMPARE_ATOMIC), 0);
  EXPECT_EQ(attributes.size, 8u);
  EXPECT_EQ(attributes.count, 128u);
  EXPECT_EQ(fi_query_atomic(a_.domain, FI_DOUBLE, FI_CSWAP_LT, &attributes, 0), -FI_EOPNOTSUPP);
  // Each that is offered is carried out at the peer.
  alignas(32) uint8_t operands[32] = {}, compares[32] = {}, results[32];
  for (int type = 0; type < FI_DATATYPE_LAST; ++type) {
    const auto element = static_cast<fi_datatype>(type);
    for (int op = 0; op < FI_ATOMIC_OP_LAST; ++op) {
      const auto operation = static_cast<fi_op>(op);
      if (sizeof(cells_) < 32 && element == FI_LONG_DOUBLE_COMPLEX) continue;
      SCOPED_TRACE(fi_tostr(&element, FI_TYPE_ATOMIC_TYPE));
      if (fi_fetch_atomicvalid(a_.endpoint, element, operation, &count) == 0) {
        Post([&] {
          return fi_fetch_atomic(a_.endpoint, operands, 1, nullptr, results, nullptr, a_.peer, 0, kKey, element,
                                 operation, nullptr);
        });
        EXPECT_EQ(Take(a_).err, 0);
      }
      if (fi_compare_atomicvalid(a_.endpoint, element, operation, &count) == 0) {
        Post([&] {
          return fi_compare_atomic(a_.endpoint, operands, 1, nullptr, compares, nullptr, results, nullptr, a_.peer, 0,
                                   kKey, element, operation, nullptr);
        });
        EXPECT_EQ(Take(a_).err, 0);
      }
    }
  }
}

TEST_F(AtomicTest, MemoryThatMayOnlyBeReadIsNotChanged) {
  int32_t constant = 5;
  fid_mr* readable = nullptr;
  ASSERT_EQ(fi_mr_reg(b_.domain, &constant, sizeof(constant), FI_REMOTE_READ, 0, kKey + 1, 0, &readable, nullptr), 0);
  const int32_t one = 1;
  Post([&] { return fi_atomic(a_.endpoint, &one, 1, nullptr, a_.peer, 0, kKey + 1, FI_INT32, FI_SUM, nullptr); });
  EXPECT_EQ(Take(a_).err, FI_EACCES);
  EXPECT_EQ(constant, 5);
  EXPECT_EQ(fi_close(&readable->fid), 0);
}

TEST_F(AtomicTest, LengthsThatDoNotAgreeAreRefused) {
  int32_t value = 1, result = 0;
  fi_ioc one = {&value, 1}, two = {&value, 2}, room = {&result, 1};
  const fi_rma_ioc remote = {.addr = 0, .count = 1, .key = kKey};
  fi_msg_atomic message = {.msg_iov = &two,
                           .iov_count = 1,
                           .addr = a_.peer,
                           .rma_iov = &remote,
                           .rma_iov_count = 1,
                           .datatype = FI_INT32,
                           .op = FI_SUM};
  EXPECT_EQ(fi_atomicmsg(a_.endpoint, &message, 0), -FI_EINVAL);
  message.op = FI_CSWAP;
  message.msg_iov = &one;
  EXPECT_EQ(fi_compare_atomicmsg(a_.endpoint, &message, &two, nullptr, 1, &room, nullptr, 1, 0), -FI_EINVAL);
  room.count = 0;
  EXPECT_EQ(fi_compare_atomicmsg(a_.endpoint, &message, &one, nullptr, 1, &room, nullptr, 1, 0), -FI_EINVAL);
}

// In a network that loses packets, so that what is sent again arrives after what was sent later.
class OrderedAtomicTest : public AtomicTest {
 protected:
  OrderedAtomicTest() {
    order_ = FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_RAW;
    setenv("PACELINE_LANE", "udp", 1);
    setenv("PACELINE_IMPAIR", "loss=10%", 1);
    setenv("PACELINE_SEED", "1", 1);
  }
  ~OrderedAtomicTest() override {
    for (const char* name : {"PACELINE_LANE", "PACELINE_IMPAIR", "PACELINE_SEED"}) unsetenv(name);
  }

  void MoveBoth() override {
    AtomicTest::MoveBoth();
    fell_ = fell_ || cells_[0] < seen_;
    seen_ = cells_[0];
  }

  int32_t seen_ = 0;
  bool fell_ = false;  // an earlier write came after a later one
};

TEST_F(OrderedAtomicTest, TheyAreCarriedOutAsTheyWerePosted) {
  EXPECT_EQ(a_.info->tx_attr->msg_order, FI_ORDER_SAS | order_);
  EXPECT_EQ(a_.info->ep_attr->max_order_waw_size, 1024u);
  constexpr int32_t kLast = 200;
  cells_[0] = 0;
  for (int32_t value = 1; value <= kLast; ++value) {
    Post([&] {
      return value % 2 == 0
                 ? fi_inject_atomic(a_.endpoint, &value, 1, a_.peer, 0, kKey, FI_INT32, FI_ATOMIC_WRITE)
                 : fi_atomic(a_.endpoint, &value, 1, nullptr, a_.peer, 0, kKey, FI_INT32, FI_ATOMIC_WRITE, nullptr);
    });
  }
  int32_t read = 0;
  Post([&] {
    return fi_fetch_atomic(a_.endpoint, nullptr, 1, nullptr, &read, nullptr, a_.peer, 0, kKey, FI_INT32, FI_ATOMIC_READ,
                           &read);
  });
  while (!HasFailure() && Take(a_).op_context != &read) {
  }
  EXPECT_EQ(read, kLast);
  EXPECT_FALSE(fell_);
}

}  // namespace
}  // namespace paceline::libfabric
