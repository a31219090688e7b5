// A program that does not call for a while, or that finds something whenever it does.
#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class AbsenceTest : public FabricTest {
 protected:
  AbsenceTest() { setenv("PACELINE_PEER_TIMEOUT_MS", "3000", 1); }
  ~AbsenceTest() override { unsetenv("PACELINE_PEER_TIMEOUT_MS"); }

  void Exchange() {
    int in = 0;
    const int out = 5;
    Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, nullptr); });
    Post([&] { return fi_send(a_.endpoint, &out, sizeof(out), nullptr, a_.peer, nullptr); });
    EXPECT_EQ(Take(b_).err, 0);
    EXPECT_EQ(Take(a_).err, 0);
  }

  // The next completion of a, while nobody calls for b.
  fi_cq_err_entry TakeAlone() {
    for (int i = 0; i < 20'000 && a_.completions.empty(); ++i) {
      a_.Read();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (a_.completions.empty()) return {.err = FI_ETIMEDOUT};
    const fi_cq_err_entry first = a_.completions.front();
    a_.completions.pop_front();
    return first;
  }
};

TEST_F(AbsenceTest, IsNotTakenForDeath) {
  Open();
  Exchange();
  // Without a receive, and long ones into receives that were posted.
  for (const size_t bytes : {size_t{100}, size_t{2'000'000}}) {
    const auto out = Pattern(bytes, 9);
    std::vector<uint8_t> in(bytes);
    int send = 0;
    if (bytes > 100) {
      Post([&] { return fi_trecv(b_.endpoint, in.data(), bytes, nullptr, FI_ADDR_UNSPEC, 2, 0, nullptr); });
    }
    ASSERT_EQ(fi_tsend(a_.endpoint, out.data(), bytes, nullptr, a_.peer, bytes > 100 ? 2 : 1, &send), 0);
    const fi_cq_err_entry sent = TakeAlone();
    EXPECT_EQ(sent.err, 0) << fi_strerror(sent.err);
    EXPECT_EQ(sent.op_context, &send);
    if (bytes > 100) {
      EXPECT_EQ(Take(b_).err, 0);
      EXPECT_EQ(in, out);
    }
  }
}

// With a progress thread: it moves data, but takes no connections.
TEST_F(AbsenceTest, KeepsNobodyFromItsMemory) {
  Open([](fi_info& hints) {
    hints.caps |= FI_MSG | FI_RMA;
    hints.domain_attr->data_progress = hints.domain_attr->control_progress = FI_PROGRESS_AUTO;
  });
  uint64_t memory = 0;
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(b_.domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0, 3, 0, &region, nullptr), 0);
  const uint64_t out = 7;
  ssize_t result;
  do {
    a_.Read();
    result = fi_write(a_.endpoint, &out, sizeof(out), nullptr, a_.peer, 0, 3, nullptr);
  } while (result == -FI_EAGAIN);
  ASSERT_EQ(result, 0) << fi_strerror(static_cast<int>(-result));
  EXPECT_EQ(TakeAlone().err, 0);
  EXPECT_EQ(fi_close(&region->fid), 0);  // from here on nobody else writes there
  EXPECT_EQ(memory, out);
}

TEST_F(AbsenceTest, WhatComesMeanwhileWakesWhoWaitsForTheDescriptor) {
  Open();
  Exchange();
  int in = 0;
  const int out = 8;
  Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in); });
  int descriptor = -1;
  ASSERT_EQ(fi_control(&b_.cq->fid, FI_GETWAIT, &descriptor), 0);
  fid* objects[] = {&b_.cq->fid};
  ASSERT_TRUE(Until([&] { return fi_trywait(b_.fabric, objects, 1) == 0; }));
  ASSERT_EQ(fi_send(a_.endpoint, &out, sizeof(out), nullptr, a_.peer, nullptr), 0);
  EXPECT_EQ(TakeAlone().err, 0);  // the stand-in has taken it in
  pollfd waiting = {.fd = descriptor, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&waiting, 1, 1000), 1);
  EXPECT_EQ(Take(b_).op_context, &in);
  EXPECT_EQ(in, out);
}

TEST_F(AbsenceTest, ABusyProgramKeepsNobodyOut) {
  Open();
  const int out = 3;
  int in = 0, busy = 0;
  ASSERT_EQ(fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    ASSERT_EQ(fi_recv(b_.endpoint, &busy, sizeof(busy), nullptr, FI_ADDR_UNSPEC, &busy), 0);
    ASSERT_EQ(fi_cancel(&b_.endpoint->fid, &busy), 0);
    fi_cq_err_entry entry{};
    fi_cq_tagged_entry good{};
    ASSERT_EQ(fi_cq_read(b_.cq, &good, 1), -FI_EAVAIL);  // each pass brings a completion
    ASSERT_EQ(fi_cq_readerr(b_.cq, &entry, 0), 1);
    result = fi_inject(a_.endpoint, &out, sizeof(out), a_.peer);
  }
  EXPECT_EQ(result, 0) << fi_strerror(static_cast<int>(-result));
  EXPECT_EQ(Take(b_).op_context, &in);
}

}  // namespace
}  // namespace paceline::libfabric
