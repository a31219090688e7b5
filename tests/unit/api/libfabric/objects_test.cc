// What is offered, address vectors, event queues, waiting and poll sets, through libfabric.
#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

TEST(InfoTest, OffersWhatIsAskedForOrNothing) {
  const Info all = GetInfo();
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(all->ep_attr->type, FI_EP_RDM);
  EXPECT_EQ(all->domain_attr->mr_mode, 0);
  EXPECT_EQ(all->domain_attr->av_type, FI_AV_UNSPEC);  // both: who takes it for a table counts its entries itself
  EXPECT_EQ(GetInfo([](fi_info& hints) { hints.domain_attr->av_type = FI_AV_MAP; })->domain_attr->av_type, FI_AV_MAP);
  EXPECT_EQ(all->mode, 0u);
  EXPECT_EQ(all->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
  EXPECT_EQ(GetInfo([](fi_info& hints) { hints.caps = FI_TAGGED; })->caps & (FI_DIRECTED_RECV | FI_TAGGED | FI_SEND),
            FI_TAGGED | FI_SEND);
  EXPECT_EQ(
      GetInfo([](fi_info& hints) { hints.domain_attr->threading = FI_THREAD_COMPLETION; })->domain_attr->threading,
      FI_THREAD_COMPLETION);
  EXPECT_EQ(GetInfo([](fi_info& hints) { hints.domain_attr->mr_mode = FI_MR_BASIC; })->domain_attr->mr_mode,
            FI_MR_BASIC);
  EXPECT_EQ(GetInfo([](fi_info& hints) { hints.tx_attr->size = 2000; })->tx_attr->size, 2000u);
  const std::function<void(fi_info&)> impossible[] = {
      [](fi_info& hints) { hints.ep_attr->type = FI_EP_SOCK_STREAM; },
      [](fi_info& hints) { hints.caps = FI_MULTICAST; },
      [](fi_info& hints) { hints.tx_attr->inject_size = 16385; },
      [](fi_info& hints) { hints.tx_attr->iov_limit = 9; },
      [](fi_info& hints) { hints.rx_attr->iov_limit = 9; },
      [](fi_info& hints) { hints.tx_attr->rma_iov_limit = 2; },
      [](fi_info& hints) { hints.caps = FI_COLLECTIVE; },
      [](fi_info& hints) { hints.ep_attr->tx_ctx_cnt = 17; },
      [](fi_info& hints) { hints.fabric_attr->name = strdup("another"); },
      [](fi_info& hints) { hints.domain_attr->mr_key_size = 9; },
      [](fi_info& hints) { hints.tx_attr->comp_order = FI_ORDER_STRICT; },
      [](fi_info& hints) { hints.rx_attr->comp_order = FI_ORDER_DATA; },
      [](fi_info& hints) { hints.tx_attr->size = 4097; },
      [](fi_info& hints) { hints.rx_attr->size = 4097; },
      [](fi_info& hints) { hints.tx_attr->msg_order = FI_ORDER_RAW; },
      [](fi_info& hints) { hints.ep_attr->max_msg_size = (1ull << 40) + 1; },
      [](fi_info& hints) { hints.addr_format = FI_SOCKADDR_IN; },
      [](fi_info& hints) { hints.domain_attr->cq_data_size = 9; },
  };
  for (size_t i = 0; i < std::size(impossible); ++i) EXPECT_EQ(GetInfo(impossible[i]), nullptr) << i;
}

class ObjectsTest : public FabricTest {};

TEST_F(ObjectsTest, AddressesAreInsertedLookedUpToldAndRemoved) {
  Open();
  const auto name = b_.Name();
  fi_addr_t again = 0;
  ASSERT_EQ(fi_av_insert(a_.av, name.data(), 1, &again, 0, nullptr), 1);
  EXPECT_EQ(again, 1u);
  std::vector<uint8_t> found(name.size());
  size_t size = found.size();
  ASSERT_EQ(fi_av_lookup(a_.av, again, found.data(), &size), 0);
  EXPECT_EQ(found, name);
  char text[300];
  size = sizeof(text);
  ASSERT_EQ(fi_av_straddr(a_.av, name.data(), text, &size), text);
  EXPECT_EQ(std::string(text).rfind("fi_paceline://", 0), 0u);
  EXPECT_EQ(size, std::strlen(text) + 1);
  EXPECT_EQ(fi_av_remove(a_.av, &a_.peer, 1, 0), 0);
  EXPECT_EQ(fi_av_lookup(a_.av, a_.peer, found.data(), &size), -FI_EINVAL);
  EXPECT_EQ(fi_av_remove(a_.av, &a_.peer, 1, 0), -FI_EINVAL);
  int in = 0;
  const int out = 6;
  Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, nullptr); });
  Post([&] { return fi_inject(a_.endpoint, &out, sizeof(out), again); });
  Take(b_);
  EXPECT_EQ(in, 6);
  const std::vector<uint8_t> damaged(name.size());
  int error = 0;
  EXPECT_EQ(fi_av_insert(a_.av, damaged.data(), 1, &again, FI_SYNC_ERR, &error), 0);
  EXPECT_EQ(again, FI_ADDR_NOTAVAIL);
  EXPECT_EQ(error, FI_EINVAL);
}

// As a server has it whose clients come and go.
TEST_F(ObjectsTest, AnAddressVectorKeepsNothingOfAnAddressThatIsGone) {
  Open();
  auto name = b_.Name();
  fi_addr_t three[3], next = FI_ADDR_NOTAVAIL;
  for (fi_addr_t& index : three) ASSERT_EQ(fi_av_insert(a_.av, name.data(), 1, &index, 0, nullptr), 1);
  for (const int i : {1, 0}) ASSERT_EQ(fi_av_remove(a_.av, &three[i], 1, 0), 0);
  ++name.front();  // another listener's
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(fi_av_insert(a_.av, name.data(), 1, &next, 0, nullptr), 1);
    EXPECT_LE(next, three[2]);
    ASSERT_EQ(fi_av_remove(a_.av, &next, 1, 0), 0);
  }
  // The third name of b means what it did, also when the first is gone.
  int in = 0;
  const int out = 6;
  for (int i = 0; i < 2; ++i) {
    Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, nullptr); });
    Post([&] { return fi_inject(a_.endpoint, &out, sizeof(out), three[2]); });
    EXPECT_EQ(Take(b_).err, 0);
    ASSERT_EQ(fi_av_remove(a_.av, &a_.peer, 1, 0), i == 0 ? 0 : -FI_EINVAL);
  }
}

TEST_F(ObjectsTest, AnAddressVectorRefusesWhatItHasNot) {
  Open();
  const auto name = b_.Name();
  fid_av* av = nullptr;
  fi_av_attr attributes = {.type = FI_AV_TABLE, .flags = FI_AV_USER_ID};
  EXPECT_EQ(fi_av_open(a_.domain, &attributes, &av, nullptr), -FI_ENOSYS);
  fi_addr_t index = 77;
  EXPECT_EQ(fi_av_insert(a_.av, name.data(), 1, &index, FI_AV_USER_ID, nullptr), -FI_ENOSYS);
  attributes = {.type = FI_AV_TABLE, .rx_ctx_bits = 4};
  ASSERT_EQ(fi_av_open(a_.domain, &attributes, &av, nullptr), 0);
  ASSERT_EQ(fi_av_insert(av, name.data(), 1, &index, 0, nullptr), 1);
  // The name of one of its contexts is not its own.
  fi_addr_t context = fi_rx_addr(index, 3, 4);
  EXPECT_EQ(fi_av_remove(av, &context, 1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_av_remove(av, &index, 1, 0), 0);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

// The attempt that was made for it has come to nothing while it was gone.
TEST_F(ObjectsTest, AnAddressThatComesBackIsTriedAnew) {
  setenv("PACELINE_CONNECT_TIMEOUT_MS", "500", 1);
  Open();
  unsetenv("PACELINE_CONNECT_TIMEOUT_MS");
  const auto name = b_.Name();
  b_.Close();
  const auto inject = [&] { return fi_inject(a_.endpoint, "x", 1, a_.peer); };
  const auto wait = [&](int millis) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(millis);
    while (std::chrono::steady_clock::now() < end) a_.Read();
  };
  const auto insert = [&] { ASSERT_EQ(fi_av_insert(a_.av, name.data(), 1, &a_.peer, 0, nullptr), 1); };
  ASSERT_EQ(inject(), -FI_EAGAIN);
  ASSERT_EQ(fi_av_remove(a_.av, &a_.peer, 1, 0), 0);
  wait(700);
  insert();
  EXPECT_EQ(inject(), -FI_EAGAIN);
  // Nor has the attempt that is under way anything to do with it.
  wait(350);
  ASSERT_EQ(fi_av_remove(a_.av, &a_.peer, 1, 0), 0);
  insert();
  EXPECT_EQ(inject(), -FI_EAGAIN);
  wait(250);
  EXPECT_EQ(inject(), -FI_EAGAIN);
  wait(500);
  EXPECT_EQ(inject(), -FI_ETIMEDOUT);
}

TEST_F(ObjectsTest, AnAddressVectorTellsAnEventQueue) {
  Open();
  fid_eq* eq = nullptr;
  fi_eq_attr eq_attributes = {.flags = FI_WRITE, .wait_obj = FI_WAIT_FD};
  ASSERT_EQ(fi_eq_open(a_.fabric, &eq_attributes, &eq, nullptr), 0);
  fid_av* av = nullptr;
  fi_av_attr attributes = {.type = FI_AV_MAP, .flags = FI_EVENT};
  ASSERT_EQ(fi_av_open(a_.domain, &attributes, &av, nullptr), 0);
  auto names = b_.Name();
  const size_t one = names.size();
  names.resize(2 * one);  // the second is damaged
  fi_addr_t indices[2];
  EXPECT_EQ(fi_av_insert(av, names.data(), 2, indices, 0, nullptr), -FI_ENOEQ);
  ASSERT_EQ(fi_av_bind(av, &eq->fid, 0), 0);
  int context = 0;
  ASSERT_EQ(fi_av_insert(av, names.data(), 2, indices, 0, &context), 0);
  uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
  char detail[8] = {};
  fi_eq_err_entry error = {.err_data = detail, .err_data_size = sizeof(detail)};
  EXPECT_EQ(fi_eq_readerr(eq, &error, 0), static_cast<ssize_t>(sizeof(error)));
  EXPECT_EQ(error.err, FI_EINVAL);
  EXPECT_EQ(error.data, 1u);
  EXPECT_STREQ(fi_eq_strerror(eq, error.prov_errno, nullptr, nullptr, 0), fi_strerror(FI_EINVAL));
  EXPECT_EQ(error.err_data, detail);  // the program's, and nothing was written there
  EXPECT_EQ(error.err_data_size, 0u);
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, FI_PEEK), static_cast<ssize_t>(sizeof(entry)));
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), static_cast<ssize_t>(sizeof(entry)));
  EXPECT_EQ(event, FI_AV_COMPLETE);
  EXPECT_EQ(entry.data, 1u);
  EXPECT_EQ(entry.context, &context);
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), 1, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), static_cast<ssize_t>(sizeof(entry)));
  int descriptor = -1;
  ASSERT_EQ(fi_control(&eq->fid, FI_GETWAIT, &descriptor), 0);
  pollfd waiting = {.fd = descriptor, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&waiting, 1, 0), 1);
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(ObjectsTest, WaitingEndsWithTheTimeOrWithACompletion) {
  Open();
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(b_.cq, &entry, 1, nullptr, 5), -FI_EAGAIN);
  int in = 0;
  const int out = 6;
  Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in); });
  int descriptor = -1;
  ASSERT_EQ(fi_control(&b_.cq->fid, FI_GETWAIT, &descriptor), 0);
  fid* objects[] = {&b_.cq->fid};
  Post([&] { return fi_inject(a_.endpoint, &out, sizeof(out), a_.peer); });
  bool readable = false;
  for (int i = 0; i < 10000 && !readable; ++i) {
    a_.Read();
    if (fi_trywait(b_.fabric, objects, 1) != 0) break;
    pollfd waiting = {.fd = descriptor, .events = POLLIN, .revents = 0};
    poll(&waiting, 1, 1);
    readable = !b_.completions.empty();
  }
  EXPECT_EQ(fi_cq_sread(b_.cq, &entry, 1, nullptr, -1), 1);
  EXPECT_EQ(entry.op_context, &in);
  EXPECT_EQ(fi_cq_signal(b_.cq), 0);
  EXPECT_EQ(fi_cq_sread(b_.cq, &entry, 1, nullptr, -1), -FI_EAGAIN);
}

// As fi_trywait over two objects does: the look at the second moves what the first was found without.
TEST_F(ObjectsTest, WhatAnotherTakesInWakesWhoWaits) {
  for (const fi_progress progress : {FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO}) {
    Side side;
    side.OpenWith(GetInfo([&](fi_info& hints) { hints.domain_attr->data_progress = progress; }));
    fid_cq* other = nullptr;
    fi_cq_attr attributes = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
    ASSERT_EQ(fi_cq_open(side.domain, &attributes, &other, nullptr), 0);
    fid_cntr* counter = nullptr;
    fi_cntr_attr counter_attributes = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
    ASSERT_EQ(fi_cntr_open(side.domain, &counter_attributes, &counter, nullptr), 0);
    fid_ep* endpoint = nullptr;
    ASSERT_EQ(fi_endpoint(side.domain, side.info.get(), &endpoint, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(endpoint, &side.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(endpoint, &side.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_ep_bind(endpoint, &counter->fid, FI_RECV), 0);
    ASSERT_EQ(fi_enable(endpoint), 0);
    const auto may_wait = [&](fid* object) {
      int result = -FI_EAGAIN;
      for (int i = 0; i < 1'000'000 && result == -FI_EAGAIN; ++i) result = fi_trywait(side.fabric, &object, 1);
      return result == 0;
    };
    ASSERT_TRUE(may_wait(&side.cq->fid));
    ASSERT_TRUE(may_wait(&counter->fid));
    int in = 0;
    ASSERT_EQ(fi_recv(endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
    ASSERT_EQ(fi_cancel(&endpoint->fid, &in), 0);
    ASSERT_TRUE(may_wait(&other->fid));
    for (fid* object : {&side.cq->fid, &counter->fid}) {
      pollfd waiting = {.fd = -1, .events = POLLIN, .revents = 0};
      ASSERT_EQ(fi_control(object, FI_GETWAIT, &waiting.fd), 0);
      EXPECT_EQ(poll(&waiting, 1, 0), 1);
    }
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_read(side.cq, &entry, 1), -FI_EAVAIL);
    EXPECT_EQ(fi_cntr_readerr(counter), 1u);
    EXPECT_TRUE(may_wait(&counter->fid));  // once it has been looked at
    EXPECT_EQ(fi_close(&endpoint->fid), 0);
    EXPECT_EQ(fi_close(&counter->fid), 0);
    EXPECT_EQ(fi_close(&other->fid), 0);
    side.Close();
  }
}

TEST_F(ObjectsTest, ACompletionQueueTakesNoMoreThanItsSize) {
  constexpr size_t kSize = 9000, kMore = 2000;
  Open();
  fid_cq* queue = nullptr;
  fi_cq_attr attributes = {.size = kSize, .format = FI_CQ_FORMAT_TAGGED};
  ASSERT_EQ(fi_cq_open(a_.domain, &attributes, &queue, nullptr), 0);
  fid_cntr* counter = nullptr;
  fi_cntr_attr counter_attributes = {.events = FI_CNTR_EVENTS_COMP};
  ASSERT_EQ(fi_cntr_open(a_.domain, &counter_attributes, &counter, nullptr), 0);
  fid_ep* endpoint = nullptr;
  ASSERT_EQ(fi_endpoint(a_.domain, a_.info.get(), &endpoint, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(endpoint, &a_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(endpoint, &counter->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(endpoint), 0);
  int in = 0;
  const auto fill = [&] {
    for (size_t i = 0; i < kSize + kMore; ++i) {
      ASSERT_EQ(fi_recv(endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
      ASSERT_EQ(fi_cancel(&endpoint->fid, &in), 0);
      fi_cntr_readerr(counter);  // makes progress
    }
  };
  fill();
  const uint64_t taken = fi_cntr_readerr(counter);
  EXPECT_GE(taken, kSize);
  EXPECT_LT(taken, kSize + 100);  // a batch of completions more
  iovec to = {&in, sizeof(in)};
  const fi_msg peek = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
  EXPECT_EQ(fi_recvmsg(endpoint, &peek, FI_PEEK), -FI_EAGAIN);  // what it finds would be an entry
  size_t read = 0;
  fi_cq_err_entry error{};
  do {
    while (fi_cq_readerr(queue, &error, 0) == 1) ++read;
  } while (fi_cntr_readerr(counter) > read);
  EXPECT_EQ(read, kSize + kMore);
  // A full one holds up nobody who closes.
  fill();
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
  EXPECT_EQ(fi_close(&queue->fid), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(ObjectsTest, AnErrorEntryLeavesTheProgramItsBuffer) {
  Open();
  char detail[8] = {};
  for (const size_t size : {sizeof(detail), size_t{0}}) {
    ASSERT_EQ(fi_recv(a_.endpoint, nullptr, 0, nullptr, FI_ADDR_UNSPEC, detail), 0);
    ASSERT_EQ(fi_cancel(&a_.endpoint->fid, detail), 0);
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_cq_read(a_.cq, &entry, 1), -FI_EAVAIL);
    fi_cq_err_entry error = {.err_data = detail, .err_data_size = size};
    ASSERT_EQ(fi_cq_readerr(a_.cq, &error, 0), 1);
    EXPECT_EQ(error.op_context, detail);
    EXPECT_EQ(error.err_data, size > 0 ? detail : nullptr);
    EXPECT_EQ(error.err_data_size, 0u);
  }
}

TEST_F(ObjectsTest, APollSetNamesTheQueuesThatHaveSomething) {
  Open();
  fid_poll* set = nullptr;
  fi_poll_attr attributes{};
  ASSERT_EQ(fi_poll_open(b_.domain, &attributes, &set), 0);
  b_.cq->fid.context = &set;
  ASSERT_EQ(fi_poll_add(set, &b_.cq->fid, 0), 0);
  void* contexts[2] = {};
  EXPECT_EQ(fi_poll(set, contexts, 2), 0);
  int in = 0;
  Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in); });
  ASSERT_EQ(fi_cancel(&b_.endpoint->fid, &in), 0);
  EXPECT_EQ(fi_poll(set, contexts, 2), 1);
  EXPECT_EQ(contexts[0], &set);
  EXPECT_EQ(fi_poll_del(set, &b_.cq->fid, 0), 0);
  EXPECT_EQ(fi_poll(set, contexts, 2), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(ObjectsTest, ADomainInUseIsNotClosed) {
  Open();
  EXPECT_EQ(fi_close(&a_.domain->fid), -FI_EBUSY);
}

}  // namespace
}  // namespace paceline::libfabric
