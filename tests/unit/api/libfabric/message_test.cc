// Messages with and without tags, through libfabric.
#include <rdma/fi_atomic.h>

#include <algorithm>
#include <cstring>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

class MessageTest : public FabricTest {};

// A program that makes progress by itself, and one that has the provider do it.
class ProgressTest : public FabricTest, public ::testing::WithParamInterface<fi_progress> {};
INSTANTIATE_TEST_SUITE_P(Modes, ProgressTest, testing::Values(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO));

TEST_P(ProgressTest, TaggedMessagesOfManySizesBothWays) {
  Open([](fi_info& hints) {
    hints.domain_attr->data_progress = GetParam();
    hints.domain_attr->threading = FI_THREAD_SAFE;
  });
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{16384}, size_t{16385}, size_t{1'000'000}}) {
    for (const auto& pair : {std::pair{&a_, &b_}, std::pair{&b_, &a_}}) {
      auto *const from = pair.first, *const to = pair.second;
      const auto out = Pattern(bytes, 3);
      std::vector<uint8_t> in(bytes);
      int send = 0, receive = 0;
      Post([&] { return fi_trecv(to->endpoint, in.data(), bytes, nullptr, FI_ADDR_UNSPEC, 0xf0, 0x0f, &receive); });
      Post([&] { return fi_tsend(from->endpoint, out.data(), bytes, nullptr, from->peer, 0xf7, &send); });
      const fi_cq_err_entry received = Take(*to);
      EXPECT_EQ(received.err, 0);
      EXPECT_EQ(received.op_context, &receive);
      EXPECT_EQ(received.flags, FI_RECV | FI_TAGGED);
      EXPECT_EQ(received.len, bytes);
      EXPECT_EQ(received.buf, in.data());
      EXPECT_EQ(received.tag, 0xf7u);
      EXPECT_EQ(source_, to->peer);
      const fi_cq_err_entry sent = Take(*from);
      EXPECT_EQ(sent.err, 0);
      EXPECT_EQ(sent.op_context, &send);
      EXPECT_EQ(sent.flags, FI_SEND | FI_TAGGED);
      EXPECT_EQ(in, out);
    }
  }
}

TEST_F(MessageTest, EveryKindOfSendMeetsItsReceive) {
  Open();
  char in[64] = {};
  const char out[64] = "sixty-four bytes";
  iovec to = {in, sizeof(in)}, from = {const_cast<char*>(out), sizeof(out)};
  const fi_msg receive = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
  const fi_msg send = {.msg_iov = &from, .iov_count = 1, .addr = a_.peer, .data = 77};
  const fi_msg_tagged tagged_receive = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 5};
  const fi_msg_tagged tagged_send = {.msg_iov = &from, .iov_count = 1, .addr = a_.peer, .tag = 5, .data = 77};
  fid_ep *a = a_.endpoint, *b = b_.endpoint;
  const fi_addr_t peer = a_.peer;
  struct Kind {
    const char* name;
    std::function<ssize_t()> send;
    bool tagged, data, completes;
  };
  const Kind kinds[] = {
      {"send", [&] { return fi_send(a, out, 64, nullptr, peer, nullptr); }, false, false, true},
      {"sendv", [&] { return fi_sendv(a, &from, nullptr, 1, peer, nullptr); }, false, false, true},
      {"sendmsg", [&] { return fi_sendmsg(a, &send, FI_REMOTE_CQ_DATA); }, false, true, true},
      {"sendmsg inject", [&] { return fi_sendmsg(a, &send, FI_INJECT); }, false, false, true},
      {"senddata", [&] { return fi_senddata(a, out, 64, nullptr, 77, peer, nullptr); }, false, true, true},
      {"inject", [&] { return fi_inject(a, out, 64, peer); }, false, false, false},
      {"injectdata", [&] { return fi_injectdata(a, out, 64, 77, peer); }, false, true, false},
      {"tsend", [&] { return fi_tsend(a, out, 64, nullptr, peer, 5, nullptr); }, true, false, true},
      {"tsendv", [&] { return fi_tsendv(a, &from, nullptr, 1, peer, 5, nullptr); }, true, false, true},
      {"tsendmsg", [&] { return fi_tsendmsg(a, &tagged_send, FI_REMOTE_CQ_DATA); }, true, true, true},
      {"tsenddata", [&] { return fi_tsenddata(a, out, 64, nullptr, 77, peer, 5, nullptr); }, true, true, true},
      {"tinject", [&] { return fi_tinject(a, out, 64, peer, 5); }, true, false, false},
      {"tinjectdata", [&] { return fi_tinjectdata(a, out, 64, 77, peer, 5); }, true, true, false},
  };
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    std::memset(in, 0, sizeof(in));
    Post([&] { return kind.tagged ? fi_trecvmsg(b, &tagged_receive, 0) : fi_recvmsg(b, &receive, 0); });
    Post(kind.send);
    const fi_cq_err_entry received = Take(b_);
    EXPECT_EQ(received.err, 0);
    const uint64_t data = kind.data ? FI_REMOTE_CQ_DATA : 0;
    EXPECT_EQ(received.flags, FI_RECV | (kind.tagged ? FI_TAGGED : FI_MSG) | data);
    EXPECT_EQ(received.data, kind.data ? 77u : 0u);
    EXPECT_STREQ(in, out);
    if (kind.completes) {
      EXPECT_EQ(Take(a_).err, 0);
    }
    MoveBoth();
    EXPECT_TRUE(a_.completions.empty());
  }
}

TEST_F(MessageTest, MessagesWithAndWithoutTagsDoNotMeet) {
  Open();
  int plain = 0, tagged = 0;
  Post([&] { return fi_recv(b_.endpoint, &plain, sizeof(int), nullptr, FI_ADDR_UNSPEC, &plain); });
  Post([&] { return fi_trecv(b_.endpoint, &tagged, sizeof(int), nullptr, FI_ADDR_UNSPEC, 0, ~0ull, &tagged); });
  const int first = 1, second = 2;
  Post([&] { return fi_tinject(a_.endpoint, &first, sizeof(int), a_.peer, 9); });
  Post([&] { return fi_inject(a_.endpoint, &second, sizeof(int), a_.peer); });
  Take(b_);
  Take(b_);
  EXPECT_EQ(tagged, 1);
  EXPECT_EQ(plain, 2);
}

TEST_F(MessageTest, ALongerMessageIsTruncatedWithAnError) {
  Open();
  char in[10];
  const auto out = Pattern(25, 1);
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, FI_ADDR_UNSPEC, 3, 0, in); });
  Post([&] { return fi_tinject(a_.endpoint, out.data(), out.size(), a_.peer, 3); });
  const fi_cq_err_entry error = Take(b_);
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.op_context, in);
  EXPECT_EQ(error.len, 10u);
  EXPECT_EQ(error.olen, 15u);
}

TEST_F(MessageTest, ATruncatedMessageFillsAllPieces) {
  Open();
  char in[] = "--------";
  const iovec pieces[] = {{in, 3}, {in + 4, 2}};
  Post([&] { return fi_recvv(b_.endpoint, pieces, nullptr, 2, FI_ADDR_UNSPEC, in); });
  Post([&] { return fi_inject(a_.endpoint, "0123456789", 10, a_.peer); });
  const fi_cq_err_entry error = Take(b_);
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.len, 5u);
  EXPECT_EQ(error.olen, 5u);
  EXPECT_STREQ(in, "012-34--");
}

TEST_F(MessageTest, AReceiveWithoutMemoryHasRoomForNothing) {
  Open();
  int context = 0;
  const auto receive = [&] {
    Post([&] { return fi_recv(b_.endpoint, nullptr, 1024, nullptr, FI_ADDR_UNSPEC, &context); });
  };
  receive();
  Post([&] { return fi_inject(a_.endpoint, nullptr, 0, a_.peer); });
  const fi_cq_err_entry entry = Take(b_);
  EXPECT_EQ(entry.err, 0);
  EXPECT_EQ(entry.len, 0u);
  receive();
  Post([&] { return fi_inject(a_.endpoint, &context, sizeof(context), a_.peer); });
  const fi_cq_err_entry error = Take(b_);
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.olen, sizeof(context));
  // Of several pieces, those with memory are filled.
  int in = 0;
  const iovec pieces[] = {{nullptr, 1024}, {&in, sizeof(in)}};
  Post([&] { return fi_recvv(b_.endpoint, pieces, nullptr, 2, FI_ADDR_UNSPEC, &context); });
  context = 5;
  Post([&] { return fi_inject(a_.endpoint, &context, sizeof(context), a_.peer); });
  EXPECT_EQ(Take(b_).err, 0);
  EXPECT_EQ(in, 5);
}

TEST_F(MessageTest, ACancelledReceiveSaysSo) {
  Open();
  char in[10];
  int context = 0;
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, FI_ADDR_UNSPEC, 3, 0, &context); });
  EXPECT_EQ(fi_cancel(&b_.endpoint->fid, in), -FI_ENOENT);
  EXPECT_EQ(fi_cancel(&b_.endpoint->fid, &context), 0);
  const fi_cq_err_entry error = Take(b_);
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, &context);
}

TEST_F(MessageTest, SelectiveCompletionTellsOnlyWhatWasAskedFor) {
  Open({}, FI_SELECTIVE_COMPLETION);
  char in[8], out[8] = "seven";
  iovec from = {out, sizeof(out)}, to = {in, sizeof(in)};
  const fi_msg send = {.msg_iov = &from, .iov_count = 1, .addr = a_.peer, .context = out};
  const fi_msg receive = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in};
  Post([&] { return fi_recvmsg(b_.endpoint, &receive, 0); });
  Post([&] { return fi_recvmsg(b_.endpoint, &receive, FI_COMPLETION); });
  Post([&] { return fi_sendmsg(a_.endpoint, &send, 0); });
  Post([&] { return fi_sendmsg(a_.endpoint, &send, FI_COMPLETION); });
  EXPECT_EQ(Take(a_).op_context, out);
  EXPECT_EQ(Take(b_).op_context, in);
  for (int i = 0; i < 1000; ++i) MoveBoth();
  EXPECT_TRUE(a_.completions.empty());
  EXPECT_TRUE(b_.completions.empty());
}

TEST_F(MessageTest, AReceiveThatNamesItsSourceWaitsUntilTheSourceIsKnown) {
  Open([](fi_info& hints) { hints.caps = FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE; }, 0, false);
  Introduce(a_, b_);
  char in[8] = {};
  Post([&] { return fi_tinject(a_.endpoint, "hello", 6, a_.peer, 1); });
  for (int i = 0; i < 1000; ++i) MoveBoth();
  std::vector<uint8_t> stranger(a_.Name());
  stranger[0] ^= 1;
  fi_addr_t other = 0;
  ASSERT_EQ(fi_av_insert(b_.av, stranger.data(), 1, &other, 0, nullptr), 1);
  Introduce(b_, a_);
  EXPECT_EQ(other, 0u);
  EXPECT_EQ(b_.peer, 1u);
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, other, 1, 0, &other); });
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, b_.peer, 1, 0, in); });
  EXPECT_EQ(Take(b_).op_context, in);
  EXPECT_EQ(source_, b_.peer);
  EXPECT_STREQ(in, "hello");
}

TEST_F(MessageTest, AReceiveFromAnAddressThatNobodyHasIsRefused) {
  Open([](fi_info& hints) { hints.caps = FI_TAGGED | FI_DIRECTED_RECV; });
  int in = 0;
  const fi_addr_t nobody = b_.peer + 1;
  EXPECT_EQ(fi_trecv(b_.endpoint, &in, sizeof(in), nullptr, nobody, 1, 0, nullptr), -FI_EINVAL);
  fi_context context{};
  const fi_msg_tagged look = {.addr = nobody, .tag = 1, .context = &context};
  EXPECT_EQ(fi_trecvmsg(b_.endpoint, &look, FI_PEEK), -FI_EINVAL);
  // Nor does a shared receive context know addresses of its own: they are those of who shares it.
  fid_ep *shared = nullptr, *other = nullptr;
  fi_rx_attr attributes = *b_.info->rx_attr;
  ASSERT_EQ(fi_srx_context(b_.domain, &attributes, &shared, nullptr), 0);
  EXPECT_EQ(fi_trecv(shared, &in, sizeof(in), nullptr, b_.peer, 1, 0, &in), -FI_EINVAL);
  ASSERT_EQ(fi_endpoint(b_.domain, b_.info.get(), &other, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(other, &b_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(other, &shared->fid, 0), 0);
  EXPECT_EQ(fi_trecv(shared, &in, sizeof(in), nullptr, nobody, 1, 0, &in), -FI_EINVAL);
  EXPECT_EQ(fi_trecv(shared, &in, sizeof(in), nullptr, b_.peer, 1, 0, &in), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
  EXPECT_EQ(fi_close(&shared->fid), 0);
}

TEST_F(MessageTest, PeekFindsClaimsAndDiscards) {
  Open([](fi_info& hints) { hints.caps = FI_TAGGED | FI_SOURCE; });
  fi_context context{};
  char in[400] = {};
  iovec to = {in, sizeof(in)};
  fi_msg_tagged look = {.addr = FI_ADDR_UNSPEC, .tag = 4, .context = &context};
  ASSERT_EQ(fi_trecvmsg(b_.endpoint, &look, FI_PEEK), 0);
  EXPECT_EQ(Take(b_).err, FI_ENOMSG);
  for (uint8_t i = 1; i <= 3; ++i) {
    const auto out = Pattern(300, i);
    Post([&] { return fi_tsend(a_.endpoint, out.data(), out.size(), nullptr, a_.peer, 4, nullptr); });
    EXPECT_EQ(Take(a_).err, 0);
  }
  ASSERT_EQ(fi_trecvmsg(b_.endpoint, &look, FI_PEEK), 0);
  EXPECT_EQ(Take(b_).len, 300u);
  EXPECT_EQ(source_, b_.peer);
  ASSERT_EQ(fi_trecvmsg(b_.endpoint, &look, FI_PEEK | FI_CLAIM), 0);
  EXPECT_EQ(Take(b_).len, 300u);
  ASSERT_EQ(fi_trecvmsg(b_.endpoint, &look, FI_PEEK | FI_DISCARD), 0);  // the second
  EXPECT_EQ(Take(b_).len, 300u);
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, FI_ADDR_UNSPEC, 4, 0, in); });
  EXPECT_EQ(Take(b_).op_context, in);
  EXPECT_EQ(std::vector<uint8_t>(in, in + 300), Pattern(300, 3));
  look.msg_iov = &to;
  look.iov_count = 1;
  ASSERT_EQ(fi_trecvmsg(b_.endpoint, &look, FI_CLAIM), 0);
  const fi_cq_err_entry claimed = Take(b_);
  EXPECT_EQ(claimed.op_context, &context);
  EXPECT_EQ(claimed.len, 300u);
  EXPECT_EQ(std::vector<uint8_t>(in, in + 300), Pattern(300, 1));
  for (int i = 0; i < 1000; ++i) MoveBoth();
  EXPECT_TRUE(b_.completions.empty());
}

TEST_F(MessageTest, ABufferForManyMessages) {
  Open();
  const size_t least = 100;
  ASSERT_EQ(fi_setopt(&b_.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)), 0);
  size_t got = 0, size = sizeof(got);
  ASSERT_EQ(fi_getopt(&b_.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &size), 0);
  EXPECT_EQ(got, least);
  std::vector<uint8_t> in(1000);
  iovec to = {in.data(), in.size()};
  const fi_msg many = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &in};
  Post([&] { return fi_recvmsg(b_.endpoint, &many, FI_MULTI_RECV); });
  size_t at = 0;
  for (const size_t bytes : {size_t{300}, size_t{0}, size_t{601}}) {
    const auto out = Pattern(bytes, static_cast<uint8_t>(bytes));
    Post([&] { return fi_send(a_.endpoint, out.data(), bytes, nullptr, a_.peer, nullptr); });
    const fi_cq_err_entry entry = Take(b_);
    EXPECT_EQ(entry.op_context, &in);
    EXPECT_EQ(entry.buf, in.data() + at);
    EXPECT_EQ(entry.len, bytes);
    EXPECT_EQ(entry.flags, FI_RECV | FI_MSG | (bytes == 601 ? FI_MULTI_RECV : 0));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin() + static_cast<std::ptrdiff_t>(at)));
    at += bytes;
    EXPECT_EQ(Take(a_).err, 0);
  }
}

TEST_F(MessageTest, DeliveryIsCompleteWhenTheReceiveHasIt) {
  Open();
  char in[8] = {}, out[8] = "waiting";
  iovec from = {out, sizeof(out)};
  fi_msg_tagged send = {.msg_iov = &from, .iov_count = 1, .addr = a_.peer, .tag = 1, .context = out, .data = 9};
  Post([&] { return fi_tsendmsg(a_.endpoint, &send, FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA); });
  for (int i = 0; i < 2000; ++i) MoveBoth();
  EXPECT_TRUE(a_.completions.empty());
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, FI_ADDR_UNSPEC, 1, 0, in); });
  EXPECT_EQ(Take(b_).data, 9u);
  EXPECT_EQ(Take(a_).op_context, out);
  EXPECT_STREQ(in, out);
  // Without the flag the peer's store is good enough.
  Post([&] { return fi_tsendmsg(a_.endpoint, &send, FI_TRANSMIT_COMPLETE); });
  EXPECT_EQ(Take(a_).op_context, out);
}

TEST_F(MessageTest, InjectedBuffersAreTheProgramsAtOnce) {
  Open();
  for (const size_t bytes : {size_t{256}, size_t{257}, a_.info->tx_attr->inject_size}) {
    auto out = Pattern(bytes, 9);
    std::vector<uint8_t> in(bytes);
    Post([&] { return fi_trecv(b_.endpoint, in.data(), bytes, nullptr, FI_ADDR_UNSPEC, 1, 0, in.data()); });
    Post([&] { return fi_tinject(a_.endpoint, out.data(), bytes, a_.peer, 1); });
    std::fill(out.begin(), out.end(), uint8_t{0});
    EXPECT_EQ(Take(b_).op_context, in.data());
    EXPECT_EQ(in, Pattern(bytes, 9)) << bytes;
  }
}

// What a look at the queue brings that is the first after the call, which cannot have an acknowledgement yet.
class ShortSends : public MessageTest {
 protected:
  ~ShortSends() override { unsetenv("PACELINE_LOCAL_RANKS"); }

  bool EndsAtOnce(size_t bytes, uint64_t flags) {
    auto out = Pattern(bytes, 3);
    std::vector<uint8_t> in(bytes);
    iovec from = {out.data(), bytes};
    const fi_msg_tagged send = {.msg_iov = &from, .iov_count = 1, .addr = a_.peer, .tag = 5, .context = out.data()};
    Post([&] { return fi_tsendmsg(a_.endpoint, &send, flags | FI_COMPLETION); });
    fi_cq_tagged_entry entry = {};
    const bool at_once = fi_cq_read(a_.cq, &entry, 1) == 1;
    if (at_once) {
      EXPECT_EQ(entry.op_context, out.data());
      EXPECT_EQ(entry.flags, FI_SEND | FI_TAGGED);
      std::fill(out.begin(), out.end(), uint8_t{0});
    }
    Post([&] { return fi_trecv(b_.endpoint, in.data(), bytes, nullptr, FI_ADDR_UNSPEC, 5, 0, in.data()); });
    EXPECT_EQ(Take(b_).op_context, in.data());
    EXPECT_EQ(in, Pattern(bytes, 3));
    if (!at_once) {
      EXPECT_EQ(Take(a_).op_context, out.data());
    }
    EXPECT_TRUE(a_.completions.empty());
    return at_once;
  }
  void OpenCrowded() {
    setenv("PACELINE_LOCAL_RANKS", "4096", 1);
    Open();
  }
  void Connect() {
    char byte = 0;
    Post([&] { return fi_tinject(a_.endpoint, "x", 1, a_.peer, 1); });
    Post([&] { return fi_trecv(b_.endpoint, &byte, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &byte); });
    Take(b_);
  }
};

TEST_F(ShortSends, WaitForTheirPeersUnlessLessIsAsked) {
  Open();
  Connect();
  for (const uint64_t flags : std::initializer_list<uint64_t>{0, FI_INJECT, FI_TRANSMIT_COMPLETE}) {
    EXPECT_FALSE(EndsAtOnce(1, flags)) << flags;
  }
  EXPECT_TRUE(EndsAtOnce(4096, FI_INJECT_COMPLETE));
  EXPECT_FALSE(EndsAtOnce(4097, FI_INJECT_COMPLETE));
  EXPECT_TRUE(EndsAtOnce(16384, FI_INJECT | FI_INJECT_COMPLETE));
}

TEST_F(ShortSends, DoNotWaitWhereRanksShareCoresUnlessMoreIsAsked) {
  OpenCrowded();
  Connect();
  EXPECT_TRUE(EndsAtOnce(1, 0));
  EXPECT_TRUE(EndsAtOnce(4096, 0));
  EXPECT_FALSE(EndsAtOnce(4097, 0));
  EXPECT_TRUE(EndsAtOnce(16384, FI_INJECT));
  for (const uint64_t level : {FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE}) {
    EXPECT_FALSE(EndsAtOnce(1, level));
    EXPECT_FALSE(EndsAtOnce(1, level | FI_INJECT));
  }
}

TEST_F(ShortSends, AreCountedAtOnceAndOnce) {
  OpenCrowded();
  fid_cntr* sent = nullptr;
  fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
  ASSERT_EQ(fi_cntr_open(a_.domain, &attributes, &sent, nullptr), 0);
  fid_ep* from = nullptr;
  ASSERT_EQ(fi_endpoint(a_.domain, a_.info.get(), &from, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(from, &a_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(from, &a_.cq->fid, FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(from, &sent->fid, FI_SEND), 0);
  ASSERT_EQ(fi_enable(from), 0);
  Post([&] { return fi_tsend(from, "x", 1, nullptr, a_.peer, 1, nullptr); });  // connects
  const uint64_t before = fi_cntr_read(sent);
  EXPECT_EQ(before, 1u);
  ASSERT_EQ(fi_tsend(from, "x", 1, nullptr, a_.peer, 1, nullptr), 0);
  EXPECT_EQ(fi_cntr_read(sent), 2u);
  for (int i = 0; i < 2; ++i) {
    char in = 0;
    Post([&] { return fi_trecv(b_.endpoint, &in, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &in); });
    EXPECT_EQ(Take(b_).op_context, &in);
  }
  for (int i = 0; i < 2000; ++i) MoveBoth();
  EXPECT_EQ(fi_cntr_read(sent), 2u);
  EXPECT_EQ(fi_close(&from->fid), 0);
  EXPECT_EQ(fi_close(&sent->fid), 0);
}

TEST_F(ShortSends, DoNotFillAQueueBeyondItsRoom) {
  OpenCrowded();
  Connect();
  constexpr size_t kRoom = 8192, kSends = 10'000;  // of which each connection has at most 4,096 on their way
  size_t posted = 0;
  for (int turn = 0; turn < 1'000'000 && posted < kSends; ++turn) {
    while (posted < kSends && fi_tsend(a_.endpoint, "x", 1, nullptr, a_.peer, 1, nullptr) == 0) ++posted;
    b_.Read();
  }
  ASSERT_EQ(posted, kSends);
  std::vector<fi_cq_tagged_entry> entries(kSends);
  const ssize_t held = fi_cq_read(a_.cq, entries.data(), entries.size());
  EXPECT_GE(held, static_cast<ssize_t>(kRoom));
  EXPECT_LT(held, static_cast<ssize_t>(kRoom + 100));
  EXPECT_TRUE(
      Until([&] { return held + static_cast<ssize_t>(a_.completions.size()) == static_cast<ssize_t>(kSends); }));
  char in = 0;
  for (size_t i = 0; i < kSends; ++i) {
    Post([&] { return fi_trecv(b_.endpoint, &in, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &in); });
    ASSERT_EQ(Take(b_).op_context, &in) << i;
  }
}

TEST_F(MessageTest, InjectedBytesAreBoundedAndComeBack) {
  Open();
  fid_cntr* acknowledged = nullptr;
  fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP};
  ASSERT_EQ(fi_cntr_open(a_.domain, &attributes, &acknowledged, nullptr), 0);
  fid_ep* from = nullptr;
  ASSERT_EQ(fi_endpoint(a_.domain, a_.info.get(), &from, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(from, &a_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(from, &a_.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(from, &acknowledged->fid, FI_SEND), 0);
  ASSERT_EQ(fi_enable(from), 0);

  constexpr size_t kMost = (16 << 20) / 16384;
  const auto out = Pattern(a_.info->tx_attr->inject_size, 4);
  ASSERT_EQ(out.size(), 16384u);
  iovec bytes = {const_cast<uint8_t*>(out.data()), out.size()};
  const fi_msg_tagged send = {.msg_iov = &bytes, .iov_count = 1, .addr = a_.peer, .tag = 1};
  const auto inject = [&] { return fi_tsendmsg(from, &send, FI_INJECT | FI_TRANSMIT_COMPLETE); };
  Post(inject);  // connects
  // b's program does not call; what its stand-in moves in between is acknowledged.
  size_t count = 1;
  while (inject() == 0) ++count;
  EXPECT_GE(count, kMost);
  EXPECT_LE(count - fi_cntr_read(acknowledged), kMost);

  std::vector<uint8_t> in(out.size());
  for (size_t i = 0; i <= count; ++i) {
    std::fill(in.begin(), in.end(), uint8_t{0});
    if (i == count) Post(inject);
    Post([&] { return fi_trecv(b_.endpoint, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, in.data()); });
    ASSERT_EQ(Take(b_).op_context, in.data());
    ASSERT_EQ(in, out) << i;
  }
  EXPECT_EQ(fi_close(&from->fid), 0);
  EXPECT_EQ(fi_close(&acknowledged->fid), 0);
}

TEST_F(MessageTest, WhatCannotBeSentIsRefusedAtOnce) {
  Open();
  std::vector<char> buffer(a_.info->tx_attr->inject_size + 1);
  EXPECT_EQ(fi_inject(a_.endpoint, buffer.data(), buffer.size(), a_.peer), -FI_EMSGSIZE);
  EXPECT_EQ(fi_send(a_.endpoint, buffer.data(), 1, nullptr, 12345, nullptr), -FI_EINVAL);
  const std::vector<iovec> nine(9, {buffer.data(), 1});
  EXPECT_EQ(fi_sendv(a_.endpoint, nine.data(), nullptr, nine.size(), a_.peer, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_recvv(a_.endpoint, nine.data(), nullptr, nine.size(), FI_ADDR_UNSPEC, nullptr), -FI_EINVAL);
  // Nor what is not there, with a connection.
  Post([&] { return fi_inject(a_.endpoint, buffer.data(), 1, a_.peer); });
  const iovec pieces[] = {{buffer.data(), 1}, {nullptr, 1}};
  EXPECT_EQ(fi_send(a_.endpoint, nullptr, 1, nullptr, a_.peer, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_sendv(a_.endpoint, pieces, nullptr, 2, a_.peer, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_inject(a_.endpoint, nullptr, 1, a_.peer), -FI_EINVAL);
  EXPECT_EQ(fi_writev(a_.endpoint, pieces, nullptr, 2, a_.peer, 0, 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_readv(a_.endpoint, pieces, nullptr, 2, a_.peer, 0, 1, nullptr), -FI_EINVAL);
  const fi_ioc elements[] = {{buffer.data(), 1}, {nullptr, 1}};
  EXPECT_EQ(fi_atomicv(a_.endpoint, elements, nullptr, 2, a_.peer, 0, 1, FI_UINT8, FI_SUM, nullptr), -FI_EINVAL);
}

TEST_F(MessageTest, MemoryInPiecesAtBothEnds) {
  Open();
  for (const size_t bytes : {size_t{10}, size_t{100}, size_t{100'000}}) {
    auto out = Pattern(bytes, 5);
    std::vector<uint8_t> in(bytes);
    const size_t third = bytes / 3;
    const iovec from[] = {{out.data(), third}, {out.data() + third, 0}, {out.data() + third, bytes - third}};
    const iovec to[] = {{in.data(), 2 * third}, {in.data() + 2 * third, bytes - 2 * third}};
    Post([&] { return fi_recvv(b_.endpoint, to, nullptr, 2, FI_ADDR_UNSPEC, &in); });
    Post([&] { return fi_sendv(a_.endpoint, from, nullptr, 3, a_.peer, nullptr); });
    EXPECT_EQ(Take(b_).len, bytes);
    EXPECT_EQ(in, out);
    EXPECT_EQ(Take(a_).err, 0);
    std::fill(in.begin(), in.end(), uint8_t{0});
    Post([&] { return fi_trecvv(b_.endpoint, to, nullptr, 2, FI_ADDR_UNSPEC, 7, 0, &in); });
    Post([&] { return fi_tsendv(a_.endpoint, from, nullptr, 3, a_.peer, 7, nullptr); });
    EXPECT_EQ(Take(b_).tag, 7u);
    EXPECT_EQ(in, out);
    EXPECT_EQ(Take(a_).err, 0);
  }
}

TEST_F(MessageTest, APeerThatEndsIsAnErrorAndNotAnEndlessTryAgain) {
  Open([](fi_info& hints) { hints.caps = FI_TAGGED | FI_DIRECTED_RECV; });
  char in[8];
  Post([&] { return fi_tinject(a_.endpoint, "x", 2, a_.peer, 1); });
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, b_.peer, 1, 0, in); });
  Take(b_);
  Post([&] { return fi_trecv(a_.endpoint, in, sizeof(in), nullptr, a_.peer, 2, 0, in); });
  ASSERT_EQ(fi_close(&b_.endpoint->fid), 0);
  b_.endpoint = nullptr;
  const fi_cq_err_entry error = Take(a_);  // the receive that names the peer
  EXPECT_EQ(error.op_context, in);
  EXPECT_EQ(error.err, FI_EHOSTUNREACH);
  ssize_t result = -FI_EAGAIN;
  EXPECT_TRUE(Until([&] { return (result = fi_tinject(a_.endpoint, "x", 2, a_.peer, 1)) != -FI_EAGAIN; }));
  EXPECT_EQ(result, -FI_ECONNREFUSED);
}

}  // namespace
}  // namespace paceline::libfabric
