// Wait sets: several queues and counters that a program waits for together, here of endpoints of type FI_EP_DGRAM.
#include <poll.h>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class WaitSetTest : public FabricTest {
 protected:
  void SetUp() override {
    Open([](fi_info& hints) { hints.ep_attr->type = FI_EP_DGRAM; });
    fi_wait_attr attributes = {.wait_obj = FI_WAIT_UNSPEC, .flags = 0};
    ASSERT_EQ(fi_wait_open(b_.fabric, &attributes, &set_), 0);
    // Another endpoint of b's domain, whose queues are in the set.
    fi_cq_attr queue = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_SET, .wait_set = set_};
    ASSERT_EQ(fi_cq_open(b_.domain, &queue, &sends_, nullptr), 0);
    ASSERT_EQ(fi_cq_open(b_.domain, &queue, &receives_, nullptr), 0);
    fi_cntr_attr counter = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_SET, .wait_set = set_};
    ASSERT_EQ(fi_cntr_open(b_.domain, &counter, &counter_, nullptr), 0);
    ASSERT_EQ(fi_endpoint(b_.domain, b_.info.get(), &endpoint_, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(endpoint_, &b_.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(endpoint_, &sends_->fid, FI_TRANSMIT), 0);
    ASSERT_EQ(fi_ep_bind(endpoint_, &receives_->fid, FI_RECV), 0);
    ASSERT_EQ(fi_ep_bind(endpoint_, &counter_->fid, FI_SEND), 0);
    ASSERT_EQ(fi_enable(endpoint_), 0);
  }
  void TearDown() override {
    CloseMembers();
    if (set_ != nullptr) {
      EXPECT_EQ(fi_close(&set_->fid), 0);
    }
    FabricTest::TearDown();
  }
  void CloseMembers() {
    for (fid* object : {&endpoint_->fid, &sends_->fid, &receives_->fid, &counter_->fid}) {
      if (!closed_) {
        EXPECT_EQ(fi_close(object), 0);
      }
    }
    closed_ = true;
  }
  // Until there is nothing to be moved any more.
  void Calm() {
    EXPECT_TRUE(Until([&] { return fi_wait(set_, 0) == -FI_ETIMEDOUT; }));
  }
  static size_t Taken(fid_cq* queue) {
    fi_cq_entry entry{};
    return fi_cq_read(queue, &entry, 1) == 1 ? 1 : 0;
  }

  fid_wait* set_ = nullptr;
  fid_cq *sends_ = nullptr, *receives_ = nullptr;
  fid_cntr* counter_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  bool closed_ = false;
};

TEST_F(WaitSetTest, EndsWhenAnyOfItsQueuesHasSomething) {
  EXPECT_EQ(fi_wait(set_, 0), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_wait(set_, 5), -FI_ETIMEDOUT);
  int in = 0, out = 5, back = 0;
  std::vector<uint8_t> name(64);
  size_t size = name.size();
  ASSERT_EQ(fi_getname(&endpoint_->fid, name.data(), &size), 0);
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(a_.av, name.data(), 1, &to, 0, nullptr), 1);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(fi_recv(endpoint_, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    Post([&] { return fi_send(a_.endpoint, &out, sizeof(out), nullptr, to, nullptr); });
    ASSERT_EQ(fi_wait(set_, -1), 0);
    EXPECT_EQ(Taken(sends_), 0u);
    EXPECT_EQ(Taken(receives_), 1u);
    EXPECT_EQ(Take(a_).err, 0);
    Calm();

    ASSERT_EQ(fi_recv(a_.endpoint, &back, sizeof(back), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    Post([&] { return fi_send(endpoint_, &in, sizeof(in), nullptr, b_.peer, nullptr); });
    EXPECT_EQ(Take(a_).err, 0);  // moves b, too
    ASSERT_EQ(fi_wait(set_, -1), 0);
    ASSERT_TRUE(Until([&] { return Taken(sends_) == 1; }));
    EXPECT_EQ(fi_cntr_read(counter_), static_cast<uint64_t>(round) + 1);
    EXPECT_EQ(Taken(receives_), 0u);
    Calm();
  }
}

TEST_F(WaitSetTest, EndsWhenACounterChanges) {
  Calm();
  ASSERT_EQ(fi_cntr_add(counter_, 3), 0);
  EXPECT_EQ(fi_wait(set_, -1), 0);
  EXPECT_EQ(fi_wait(set_, 0), -FI_ETIMEDOUT);
}

TEST_F(WaitSetTest, HasADescriptor) {
  int descriptor = -1;
  ASSERT_EQ(fi_control(&set_->fid, FI_GETWAIT, &descriptor), 0);
  fid* objects[] = {&set_->fid};
  pollfd waiting = {.fd = descriptor, .events = POLLIN, .revents = 0};
  ASSERT_TRUE(Until([&] { return fi_trywait(b_.fabric, objects, 1) == 0 && poll(&waiting, 1, 0) == 0; }));
  ASSERT_EQ(fi_cntr_add(counter_, 1), 0);
  EXPECT_EQ(poll(&waiting, 1, 1000), 1);
  EXPECT_EQ(fi_trywait(b_.fabric, objects, 1), -FI_EAGAIN);
  ASSERT_TRUE(Until([&] { return fi_trywait(b_.fabric, objects, 1) == 0 && poll(&waiting, 1, 0) == 0; }));
}

TEST_F(WaitSetTest, StaysOpenAsLongAsItIsUsed) {
  EXPECT_EQ(fi_close(&set_->fid), -FI_EBUSY);
  CloseMembers();
  EXPECT_EQ(fi_wait(set_, 5), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_close(&set_->fid), 0);
  set_ = nullptr;
}

TEST_F(WaitSetTest, WhatCannotBeWaitedForIsRefused) {
  fi_wait_attr attributes = {.wait_obj = FI_WAIT_MUTEX_COND, .flags = 0};
  fid_wait* set = nullptr;
  EXPECT_EQ(fi_wait_open(b_.fabric, &attributes, &set), -FI_ENOSYS);
  fi_cq_attr queue = {.wait_obj = FI_WAIT_SET};
  fid_cq* cq = nullptr;
  EXPECT_EQ(fi_cq_open(b_.domain, &queue, &cq, nullptr), -FI_EINVAL);
  fi_cntr_attr counting = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_SET};
  fid_cntr* counter = nullptr;
  EXPECT_EQ(fi_cntr_open(b_.domain, &counting, &counter, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace paceline::libfabric
