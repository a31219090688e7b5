// How connected endpoints (FI_EP_MSG) come to a connection and lose it: requests, answers, data of both, event queues.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/unit/api/libfabric/connected_fixture.h"

namespace paceline::libfabric {
namespace {

class ConnectingTest : public ConnectedTest {
 protected:
  fid_ep* Ask(const std::vector<uint8_t>& whom, const std::string& data = "") {
    fid_ep* endpoint = asks_.NewEndpoint(asks_.info.get());
    EXPECT_EQ(fi_connect(endpoint, whom.data(), data.data(), data.size()), 0);
    return endpoint;
  }
  size_t MostData(fid_t object) {
    size_t most = 0, size = sizeof(most);
    EXPECT_EQ(fi_getopt(object, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &most, &size), 0);
    return most;
  }
};

// A program that has its connection, or has been told of its end, may ask for the next before who accepted has heard of
// it, who here hears of all but requests late: that news comes first.
class OrderTest : public ConnectingTest {
 protected:
  void OpenPartiesThatHearLate() {
    asks_.OpenParty(ConnectedInfo());
    setenv("PACELINE_IMPAIR", "delay=20ms", 1);
    listens_.OpenParty(ConnectedInfo());
    unsetenv("PACELINE_IMPAIR");
    ASSERT_FALSE(HasFatalFailure());
    Listen(listens_.info.get());
  }
  // Who asked has this news of the connection, and asks anew: who accepted reads of both in that order.
  void AskAnewAfter(uint32_t news, fid_ep* accepted) {
    ASSERT_EQ(TakeEvent(asks_).kind, news);
    Ask(NameOfPassive());
    const Event first = TakeEvent(listens_);
    EXPECT_EQ(first.kind, news);
    EXPECT_EQ(first.about, &accepted->fid);
    EXPECT_EQ(TakeEvent(listens_).kind, FI_CONNREQ);
  }
};

TEST_F(OrderTest, AConnectionComesBeforeThePeersNextRequest) {
  OpenPartiesThatHearLate();
  Ask(NameOfPassive());
  const Event request = TakeEvent(listens_);
  ASSERT_EQ(request.kind, FI_CONNREQ);
  fid_ep* endpoint = listens_.NewEndpoint(request.info.get());
  ASSERT_EQ(fi_accept(endpoint, nullptr, 0), 0);
  AskAnewAfter(FI_CONNECTED, endpoint);
}

TEST_F(OrderTest, TheEndOfAConnectionComesBeforeThePeersNextRequest) {
  OpenPartiesThatHearLate();
  fid_ep* endpoint = Connect().second;
  ASSERT_EQ(fi_shutdown(endpoint, 0), 0);
  AskAnewAfter(FI_SHUTDOWN, endpoint);
}

TEST_F(ConnectingTest, DataGoWithRequestAndAnswer) {
  OpenParties();
  const size_t most = MostData(&passive_->fid);
  ASSERT_GE(most, 32u);
  const std::string question(most, 'q'), answer(most, 'a');
  fid_ep* a = Ask(NameOfPassive(), question);
  EXPECT_EQ(MostData(&a->fid), most);
  const Event request = TakeEvent(listens_);
  ASSERT_EQ(request.kind, FI_CONNREQ);
  EXPECT_EQ(request.about, &passive_->fid);
  EXPECT_EQ(request.data, question);
  ASSERT_NE(request.info, nullptr);
  EXPECT_EQ(request.info->ep_attr->type, FI_EP_MSG);
  EXPECT_STREQ(request.info->fabric_attr->prov_name, "paceline");
  fid_ep* b = listens_.NewEndpoint(request.info.get());
  ASSERT_EQ(fi_accept(b, answer.data(), answer.size()), 0);
  const Event at_a = TakeEvent(asks_), at_b = TakeEvent(listens_);
  EXPECT_EQ(at_a.kind, FI_CONNECTED);
  EXPECT_EQ(at_a.data, answer);
  EXPECT_EQ(at_b.kind, FI_CONNECTED);
  EXPECT_EQ(at_b.data, "");
  // Who is who.
  std::vector<uint8_t> name(64), peer(64);
  size_t size = 64;
  EXPECT_EQ(fi_getpeer(a, peer.data(), &size), 0);
  EXPECT_EQ(peer, NameOfPassive());
  EXPECT_EQ(fi_getpeer(b, peer.data(), &size), 0);
  EXPECT_EQ(fi_getname(&a->fid, name.data(), &size), 0);
  EXPECT_EQ(peer, name);
  EXPECT_EQ(fi_getname(&b->fid, name.data(), &size), 0);
  EXPECT_EQ(name, NameOfPassive());
  Talk(a, b);
}

TEST_F(ConnectingTest, TooMuchDataIsRefusedHere) {
  OpenParties();
  const std::string more(MostData(&passive_->fid) + 1, 'x');
  fid_ep* a = asks_.NewEndpoint(asks_.info.get());
  EXPECT_EQ(fi_connect(a, NameOfPassive().data(), more.data(), more.size()), -FI_EINVAL);
  ASSERT_EQ(fi_connect(a, NameOfPassive().data(), nullptr, 0), 0);
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  EXPECT_EQ(fi_reject(passive_, request.info->handle, more.data(), more.size()), -FI_EINVAL);
  fid_ep* b = listens_.NewEndpoint(request.info.get());
  EXPECT_EQ(fi_accept(b, more.data(), more.size()), -FI_EINVAL);
  EXPECT_EQ(fi_accept(b, nullptr, 0), 0);
  EXPECT_EQ(TakeEvent(asks_).kind, FI_CONNECTED);
}

TEST_F(ConnectingTest, ARejectionSaysWhy) {
  OpenParties();
  fid_ep* a = Ask(NameOfPassive());
  int in = 0;
  ASSERT_EQ(fi_recv(a, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  ASSERT_EQ(fi_reject(passive_, request.info->handle, "no", 2), 0);
  EXPECT_EQ(fi_reject(passive_, request.info->handle, "no", 2), -FI_EINVAL);
  fid_ep* late = nullptr;
  EXPECT_EQ(fi_endpoint(listens_.domain, request.info.get(), &late, nullptr), -FI_EINVAL);
  const Event refused = TakeEvent(asks_);
  EXPECT_EQ(refused.error, FI_ECONNREFUSED);
  EXPECT_EQ(refused.about, &a->fid);
  EXPECT_EQ(refused.data, "no");
  EXPECT_EQ(refused.text, "refused by the application");
  const fi_cq_err_entry receive = Take(asks_);
  EXPECT_EQ(receive.op_context, &in);
  EXPECT_EQ(receive.err, FI_ECANCELED);
}

TEST_F(ConnectingTest, TheProgramMayHaveABufferOfItsOwnForWhy) {
  OpenParties();
  Ask(NameOfPassive());
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  ASSERT_EQ(fi_reject(passive_, request.info->handle, "never", 5), 0);
  uint32_t kind = 0;
  fi_eq_cm_entry entry{};
  ssize_t got = -FI_EAGAIN;
  while (got == -FI_EAGAIN) {
    listens_.ReadEvents();
    got = fi_eq_read(asks_.eq, &kind, &entry, sizeof(entry), 0);
  }
  ASSERT_EQ(got, -FI_EAVAIL);
  char why[3] = {};
  fi_eq_err_entry error = {.err_data = why, .err_data_size = sizeof(why)};
  ASSERT_EQ(fi_eq_readerr(asks_.eq, &error, 0), static_cast<ssize_t>(sizeof(error)));
  EXPECT_EQ(error.err_data_size, 3u);
  EXPECT_EQ(std::string(why, 3), "nev");
}

TEST_F(ConnectingTest, WhereNobodyListensTheRequestIsRefused) {
  OpenParties();
  auto elsewhere = NameOfPassive();
  elsewhere[3] ^= 1;  // another number
  const fid_ep* a = Ask(elsewhere);
  const Event refused = TakeEvent(asks_);
  EXPECT_EQ(refused.error, FI_ECONNREFUSED);
  EXPECT_EQ(refused.about, &a->fid);
  EXPECT_EQ(refused.data, "");
  EXPECT_EQ(refused.text, "refused: nobody listens there");
}

TEST_F(ConnectingTest, WhereNobodyIsTheRequestTimesOut) {
  setenv("PACELINE_LANE", "udp", 1);
  setenv("PACELINE_CONNECT_TIMEOUT_MS", "300", 1);
  OpenParties();
  unsetenv("PACELINE_LANE");
  unsetenv("PACELINE_CONNECT_TIMEOUT_MS");
  const auto name = NameOfPassive();
  ASSERT_EQ(fi_close(&passive_->fid), 0);
  passive_ = nullptr;
  Ask(name);
  const Event failed = TakeEvent(asks_);
  EXPECT_EQ(failed.error, FI_ETIMEDOUT);
  EXPECT_EQ(failed.text, "peer unreachable");
}

TEST_F(ConnectingTest, WhoIsNotSpokenWithIsRefusedWithTheReason) {
  OpenParties();
  asks_.CloseParty();
  setenv("PACELINE_CC", "dcqcn", 1);
  asks_.OpenParty(ConnectedInfo());
  unsetenv("PACELINE_CC");
  Ask(NameOfPassive());
  const Event refused = TakeEvent(asks_);
  EXPECT_EQ(refused.error, FI_ECONNREFUSED);
  EXPECT_EQ(refused.text, "refused: other congestion control");
}

TEST_F(ConnectingTest, APassiveEndpointThatClosesRefusesWhoWaits) {
  OpenParties();
  Ask(NameOfPassive());
  Ask(NameOfPassive());
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  ASSERT_EQ(fi_close(&passive_->fid), 0);
  passive_ = nullptr;
  EXPECT_EQ(TakeEvent(asks_).error, FI_ECONNREFUSED);
  EXPECT_EQ(TakeEvent(asks_).error, FI_ECONNREFUSED);
  fid_ep* late = nullptr;
  EXPECT_EQ(fi_endpoint(listens_.domain, request.info.get(), &late, nullptr), -FI_EINVAL);
}

TEST_F(ConnectingTest, ThePassiveEndpointMayCloseOnceAnEndpointAccepts) {
  OpenParties();
  fid_ep* a = Ask(NameOfPassive());
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  fid_ep* b = listens_.NewEndpoint(request.info.get());
  ASSERT_EQ(fi_close(&passive_->fid), 0);
  passive_ = nullptr;
  ASSERT_EQ(fi_accept(b, nullptr, 0), 0);
  EXPECT_EQ(TakeEvent(asks_).kind, FI_CONNECTED);
  EXPECT_EQ(TakeEvent(listens_).kind, FI_CONNECTED);
  Talk(a, b);
}

TEST_F(ConnectingTest, OfRequestsWithoutAnAnswerThereIsABound) {
  constexpr size_t kMost = 1024;
  OpenParties();
  const auto name = NameOfPassive();
  for (size_t i = 0; i < kMost; ++i) Ask(name);
  ASSERT_TRUE(Until([&] { return listens_.events.size() == kMost; }));
  const fid_ep* one_more = Ask(name);
  const Event refused = TakeEvent(asks_);
  EXPECT_EQ(refused.about, &one_more->fid);
  EXPECT_EQ(refused.error, FI_ECONNREFUSED);
  EXPECT_EQ(listens_.events.size(), kMost);
  EXPECT_TRUE(asks_.events.empty());  // the others wait on

  // Each answer makes room for one.
  Event first = TakeEvent(listens_);
  ASSERT_EQ(fi_reject(passive_, first.info->handle, "no", 2), 0);
  EXPECT_EQ(TakeEvent(asks_).data, "no");
  Event second = TakeEvent(listens_);
  fid_ep* b = listens_.NewEndpoint(second.info.get());
  ASSERT_EQ(fi_accept(b, nullptr, 0), 0);
  EXPECT_EQ(TakeEvent(asks_).kind, FI_CONNECTED);
  ASSERT_TRUE(Until([&] { return listens_.events.back().kind == FI_CONNECTED; }));
  listens_.events.pop_back();
  for (int i = 0; i < 2; ++i) Ask(name);
  ASSERT_TRUE(Until([&] { return listens_.events.size() == kMost; }));
  one_more = Ask(name);
  EXPECT_EQ(TakeEvent(asks_).about, &one_more->fid);
  EXPECT_EQ(listens_.events.size(), kMost);

  // Nobody is left waiting for a passive endpoint that is gone; who has lost the news of having arrived there, for the
  // connect time-out, and who has lost the news of its end, until the keepalive finds that out (half a minute).
  ASSERT_EQ(fi_close(&passive_->fid), 0);
  passive_ = nullptr;
  ASSERT_TRUE(Until([&] { return asks_.events.size() == kMost; }));
  for (const Event& event : asks_.events) {
    const bool known = event.error == FI_ECONNREFUSED || event.error == FI_ETIMEDOUT || event.error == FI_EHOSTUNREACH;
    EXPECT_TRUE(known) << event.error;
  }
  fid_ep* late = nullptr;
  EXPECT_EQ(fi_endpoint(listens_.domain, listens_.events.front().info.get(), &late, nullptr), -FI_EINVAL);
}

TEST_F(ConnectingTest, WhoAskedMayBeGone) {
  OpenParties();
  fid_ep* a = Ask(NameOfPassive());
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  ASSERT_EQ(fi_close(&a->fid), 0);
  asks_.endpoints.clear();
  fid_ep* b = listens_.NewEndpoint(request.info.get());
  ASSERT_EQ(fi_accept(b, nullptr, 0), 0);
  const Event failed = TakeEvent(listens_);
  EXPECT_EQ(failed.error, FI_ECONNABORTED);
  EXPECT_EQ(failed.about, &b->fid);
}

TEST_F(ConnectingTest, AShutdownIsToldToBothOnce) {
  OpenParties();
  const auto [a, b] = Connect();
  int in = 0;
  ASSERT_EQ(fi_recv(a, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
  ASSERT_EQ(fi_recv(b, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
  EXPECT_EQ(fi_shutdown(b, 1), -FI_EINVAL);
  ASSERT_EQ(fi_shutdown(b, 0), 0);
  EXPECT_EQ(fi_shutdown(b, 0), -FI_ENOTCONN);
  EXPECT_EQ(fi_send(b, &in, sizeof(in), nullptr, 0, nullptr), -FI_ENOTCONN);
  const Event at_a = TakeEvent(asks_), at_b = TakeEvent(listens_);
  EXPECT_EQ(at_a.kind, FI_SHUTDOWN);
  EXPECT_EQ(at_a.about, &a->fid);
  EXPECT_EQ(at_b.kind, FI_SHUTDOWN);
  EXPECT_EQ(at_b.about, &b->fid);
  EXPECT_EQ(fi_send(a, &in, sizeof(in), nullptr, 0, nullptr), -FI_ENOTCONN);
  EXPECT_EQ(Take(asks_).err, FI_ECANCELED);
  EXPECT_EQ(Take(listens_).err, FI_ECANCELED);
  // A receive that is posted later meets nobody either.
  ASSERT_EQ(fi_recv(a, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, &in), 0);
  EXPECT_EQ(Take(asks_).err, FI_ECANCELED);
  size_t size = 64;
  std::vector<uint8_t> peer(size);
  EXPECT_EQ(fi_getpeer(a, peer.data(), &size), -FI_ENOTCONN);
  for (int i = 0; i < 1000; ++i) MoveBoth();
  EXPECT_TRUE(asks_.events.empty());
  EXPECT_TRUE(listens_.events.empty());
}

TEST_F(ConnectingTest, AnEndpointThatClosesIsMissed) {
  OpenParties();
  const auto [a, b] = Connect();
  int sent = 0;
  const auto out = Pattern(1000, 1);
  std::vector<uint8_t> in(out.size());
  ASSERT_EQ(fi_recv(a, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, &in), 0);
  Post([&, from = b] { return fi_send(from, out.data(), out.size(), nullptr, 0, &sent); });
  ASSERT_EQ(fi_close(&b->fid), 0);  // what was sent goes out first
  listens_.endpoints.clear();
  EXPECT_EQ(Take(asks_).err, 0);
  EXPECT_EQ(in, out);
  EXPECT_EQ(TakeEvent(asks_).kind, FI_SHUTDOWN);
}

TEST_F(ConnectingTest, CallsInTheWrongState) {
  OpenParties();
  int buffer = 0;
  const auto name = NameOfPassive();
  EXPECT_EQ(fi_listen(passive_), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_pep_bind(passive_, &listens_.eq->fid, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_reject(passive_, &passive_->fid, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_setname(&passive_->fid, const_cast<uint8_t*>(name.data()), 64), -FI_EOPBADSTATE);
  fid_pep* unbound = nullptr;
  ASSERT_EQ(fi_passive_ep(listens_.fabric, listens_.info.get(), &unbound, nullptr), 0);
  EXPECT_EQ(fi_listen(unbound), -FI_ENOEQ);
  EXPECT_EQ(fi_close(&unbound->fid), 0);
  fid_ep* no_queue = nullptr;
  ASSERT_EQ(fi_endpoint(asks_.domain, asks_.info.get(), &no_queue, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(no_queue, &asks_.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(no_queue), -FI_ENOEQ);
  EXPECT_EQ(fi_close(&no_queue->fid), 0);

  fid_ep* a = asks_.NewEndpoint(asks_.info.get());
  EXPECT_EQ(fi_accept(a, nullptr, 0), -FI_EOPBADSTATE);  // nobody has asked for it
  EXPECT_EQ(fi_connect(a, nullptr, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_send(a, &buffer, sizeof(buffer), nullptr, 0, nullptr), -FI_ENOTCONN);
  EXPECT_EQ(fi_shutdown(a, 0), -FI_ENOTCONN);
  ASSERT_EQ(fi_connect(a, name.data(), nullptr, 0), 0);
  EXPECT_EQ(fi_connect(a, name.data(), nullptr, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_send(a, &buffer, sizeof(buffer), nullptr, 0, nullptr), -FI_ENOTCONN);
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  fid_ep* b = listens_.NewEndpoint(request.info.get());
  EXPECT_EQ(fi_connect(b, name.data(), nullptr, 0), -FI_EOPBADSTATE);
  ASSERT_EQ(fi_accept(b, nullptr, 0), 0);
  EXPECT_EQ(fi_accept(b, nullptr, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_close(&listens_.eq->fid), -FI_EBUSY);
  EXPECT_EQ(TakeEvent(asks_).kind, FI_CONNECTED);
}

TEST_F(ConnectingTest, APassiveEndpointNeedsAnInfoOfItsKind) {
  OpenParties();
  fid_pep* none = nullptr;
  const Info unconnected = GetInfo([](fi_info& hints) { hints.ep_attr->type = FI_EP_RDM; });
  EXPECT_EQ(fi_passive_ep(listens_.fabric, unconnected.get(), &none, nullptr), -FI_EINVAL);
  const Info elsewhere(fi_dupinfo(listens_.info.get()));
  elsewhere->src_addrlen = 16;
  EXPECT_EQ(fi_passive_ep(listens_.fabric, elsewhere.get(), &none, nullptr), -FI_EINVAL);
  const Info nowhere(fi_dupinfo(listens_.info.get()));
  free(std::exchange(nowhere->domain_attr->name, nullptr));
  EXPECT_EQ(fi_passive_ep(listens_.fabric, nowhere.get(), &none, nullptr), -FI_EINVAL);
  // Without an address of its own it listens where it likes.
  const Info anywhere(fi_dupinfo(listens_.info.get()));
  free(std::exchange(anywhere->src_addr, nullptr));
  anywhere->src_addrlen = 0;
  ASSERT_EQ(fi_passive_ep(listens_.fabric, anywhere.get(), &none, nullptr), 0);
  size_t size = 64;
  std::vector<uint8_t> name(size);
  EXPECT_EQ(fi_getname(&none->fid, name.data(), &size), -FI_EOPBADSTATE);
  ASSERT_EQ(fi_pep_bind(none, &listens_.eq->fid, 0), 0);
  ASSERT_EQ(fi_listen(none), 0);
  EXPECT_EQ(fi_getname(&none->fid, name.data(), &size), 0);
  Ask(name);
  EXPECT_EQ(TakeEvent(listens_).about, &none->fid);
  EXPECT_EQ(fi_close(&none->fid), 0);
}

TEST_F(ConnectingTest, EventsWakeWhoWaitsForTheDescriptor) {
  OpenParties();
  int descriptor = -1;
  ASSERT_EQ(fi_control(&listens_.eq->fid, FI_GETWAIT, &descriptor), 0);
  fid* objects[] = {&listens_.eq->fid};
  Ask(NameOfPassive());
  // Nobody else moves the listening party from here on.
  uint32_t kind = 0;
  fi_eq_cm_entry entry{};
  ssize_t got = -FI_EAGAIN;
  for (int i = 0; i < 10'000 && got == -FI_EAGAIN; ++i) {
    asks_.ReadEvents();
    if (fi_trywait(listens_.fabric, objects, 1) == 0) {
      pollfd waiting = {.fd = descriptor, .events = POLLIN, .revents = 0};
      poll(&waiting, 1, 100);
    }
    got = fi_eq_read(listens_.eq, &kind, &entry, sizeof(entry), 0);
  }
  ASSERT_EQ(got, static_cast<ssize_t>(sizeof(entry)));
  EXPECT_EQ(kind, FI_CONNREQ);
  const Info request(entry.info);
  pollfd idle = {.fd = descriptor, .events = POLLIN, .revents = 0};
  ASSERT_TRUE(Until([&] { return fi_trywait(listens_.fabric, objects, 1) == 0 && poll(&idle, 1, 0) == 0; }));
}

TEST_F(ConnectingTest, BothMaySleepForTheirEvents) {
  OpenParties();
  fid_ep* a = asks_.NewEndpoint(asks_.info.get());
  std::thread listener([&] {
    uint32_t kind = 0;
    fi_eq_cm_entry entry{};
    EXPECT_EQ(fi_eq_sread(listens_.eq, &kind, &entry, sizeof(entry), -1, 0), static_cast<ssize_t>(sizeof(entry)));
    EXPECT_EQ(kind, FI_CONNREQ);
    const Info request(entry.info);
    EXPECT_EQ(fi_accept(listens_.NewEndpoint(request.get()), nullptr, 0), 0);
    EXPECT_EQ(fi_eq_sread(listens_.eq, &kind, &entry, sizeof(entry), -1, 0), static_cast<ssize_t>(sizeof(entry)));
    EXPECT_EQ(kind, FI_CONNECTED);
  });
  ASSERT_EQ(fi_connect(a, NameOfPassive().data(), nullptr, 0), 0);
  uint32_t kind = 0;
  fi_eq_cm_entry entry{};
  EXPECT_EQ(fi_eq_sread(asks_.eq, &kind, &entry, sizeof(entry), -1, 0), static_cast<ssize_t>(sizeof(entry)));
  EXPECT_EQ(kind, FI_CONNECTED);
  listener.join();
  EXPECT_EQ(fi_eq_sread(asks_.eq, &kind, &entry, sizeof(entry), 10, 0), -FI_EAGAIN);
}

TEST_F(ConnectingTest, APeekLeavesTheEvent) {
  OpenParties();
  Ask(NameOfPassive(), "peek");
  uint32_t kind = 0;
  fi_eq_cm_entry entry{};
  ssize_t got = -FI_EAGAIN;
  while (got == -FI_EAGAIN) {
    asks_.ReadEvents();
    got = fi_eq_read(listens_.eq, &kind, &entry, sizeof(entry), FI_PEEK);  // without room for the data
  }
  EXPECT_EQ(got, static_cast<ssize_t>(sizeof(entry)));
  EXPECT_EQ(fi_eq_read(listens_.eq, &kind, &entry, sizeof(entry) - 1, 0), -FI_ETOOSMALL);
  EXPECT_EQ(TakeEvent(listens_).data, "peek");
}

TEST_F(ConnectingTest, AServerOnAPortIsFoundByItsClient) {
  const std::string service = FreePort();
  const auto named = [&](uint64_t flags) {
    const Info hints(fi_allocinfo());
    hints->fabric_attr->prov_name = strdup("paceline");
    hints->ep_attr->type = FI_EP_MSG;
    fi_info* info = nullptr;
    EXPECT_EQ(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", service.c_str(), flags, hints.get(), &info), 0);
    return Info(info);
  };
  listens_.OpenParty(named(FI_SOURCE));  // its domain leaves the port to the passive endpoint
  asks_.OpenParty(named(0));
  ASSERT_FALSE(HasFatalFailure());
  Listen(listens_.info.get());
  fid_pep* second = nullptr;
  ASSERT_EQ(fi_passive_ep(listens_.fabric, listens_.info.get(), &second, nullptr), 0);
  ASSERT_EQ(fi_pep_bind(second, &listens_.eq->fid, 0), 0);
  EXPECT_EQ(fi_listen(second), -FI_EADDRINUSE);
  EXPECT_EQ(fi_close(&second->fid), 0);
  fid_ep* a = asks_.NewEndpoint(asks_.info.get());
  ASSERT_EQ(fi_connect(a, nullptr, nullptr, 0), 0);  // the info names whom
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  fid_ep* b = listens_.NewEndpoint(request.info.get());
  ASSERT_EQ(fi_accept(b, nullptr, 0), 0);
  EXPECT_EQ(TakeEvent(asks_).kind, FI_CONNECTED);
  EXPECT_EQ(TakeEvent(listens_).kind, FI_CONNECTED);
  Talk(a, b);
}

TEST_F(ConnectingTest, AnEventQueueOfTheDomainServesItsEndpoints) {
  OpenParties();
  fid_ep* a = nullptr;
  ASSERT_EQ(fi_domain_bind(asks_.domain, &asks_.eq->fid, 0), 0);
  ASSERT_EQ(fi_endpoint(asks_.domain, asks_.info.get(), &a, nullptr), 0);
  asks_.endpoints.push_back(a);
  ASSERT_EQ(fi_ep_bind(a, &asks_.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_connect(a, NameOfPassive().data(), nullptr, 0), 0);  // enables it
  const Event request = TakeEvent(listens_);
  ASSERT_NE(request.info, nullptr);
  fid_ep* b = listens_.NewEndpoint(request.info.get());
  ASSERT_EQ(fi_accept(b, nullptr, 0), 0);
  EXPECT_EQ(TakeEvent(asks_).about, &a->fid);
  EXPECT_EQ(TakeEvent(listens_).kind, FI_CONNECTED);
  Talk(a, b);
  ASSERT_EQ(fi_close(&a->fid), 0);
  asks_.endpoints.clear();
  fid_eq* eq = std::exchange(asks_.eq, nullptr);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  asks_.Close();
  // the domain is gone
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(ConnectingTest, APassiveEndpointHasTheNameThatItIsGiven) {
  OpenParties();
  std::vector<uint8_t> name(64), got(64);
  size_t size = 64;
  ASSERT_EQ(fi_close(&passive_->fid), 0);
  ASSERT_EQ(fi_passive_ep(listens_.fabric, listens_.info.get(), &passive_, nullptr), 0);
  EXPECT_EQ(fi_getname(&passive_->fid, name.data(), &size), 0);  // where it would listen
  EXPECT_EQ(fi_setname(&passive_->fid, name.data(), 16), -FI_EINVAL);
  ASSERT_EQ(fi_setname(&passive_->fid, name.data(), name.size()), 0);
  EXPECT_EQ(fi_getname(&passive_->fid, got.data(), &size), 0);
  EXPECT_EQ(got, name);
}

}  // namespace
}  // namespace paceline::libfabric
