// Peers that are known by host and port alone, as fi_getinfo has them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

Info Named(const char* node, const char* service, uint64_t flags) {
  const Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup("paceline");
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  fi_info* info = nullptr;
  if (fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints.get(), &info) != 0) return nullptr;
  return Info(info);
}

class NamesTest : public FabricTest {};

TEST_F(NamesTest, AServerOnAPortIsFoundByItsClient) {
  const std::string service = FreePort();
  b_.OpenWith(Named("127.0.0.1", service.c_str(), FI_SOURCE));
  a_.OpenWith(Named("127.0.0.1", service.c_str(), 0));
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_NE(a_.info->dest_addr, nullptr);
  EXPECT_EQ(a_.info->dest_addrlen, 64u);
  EXPECT_EQ(std::string(a_.info->domain_attr->name), "lo");
  ASSERT_EQ(b_.info->src_addrlen, 64u);
  ASSERT_EQ(fi_av_insert(a_.av, a_.info->dest_addr, 1, &a_.peer, 0, nullptr), 1);
  char in[6] = {};
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, FI_ADDR_UNSPEC, 1, 0, in); });
  Post([&] { return fi_tinject(a_.endpoint, "hello", 6, a_.peer, 1); });
  EXPECT_EQ(Take(b_).op_context, in);
  EXPECT_STREQ(in, "hello");
  // The server answers the name that the client has; the client takes it for the peer that it named.
  Introduce(b_, a_);
  Post([&] { return fi_trecv(a_.endpoint, in, sizeof(in), nullptr, a_.peer, 2, 0, in); });
  Post([&] { return fi_tinject(b_.endpoint, "again", 6, b_.peer, 2); });
  EXPECT_EQ(Take(a_).op_context, in);
  EXPECT_EQ(source_, a_.peer);
  EXPECT_EQ(std::memcmp(b_.Name().data(), a_.info->dest_addr, 64), 0);
  fi_addr_t again = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insertsvc(a_.av, "127.0.0.1", service.c_str(), &again, 0, nullptr), 1);
  Post([&] { return fi_tinject(a_.endpoint, "third", 6, again, 3); });
  Post([&] { return fi_trecv(b_.endpoint, in, sizeof(in), nullptr, FI_ADDR_UNSPEC, 3, 0, in); });
  EXPECT_EQ(Take(b_).err, 0);
}

// It asked before the server was there, and heard nothing of the refusal: the server has connected since.
TEST_F(NamesTest, AServerThatHasConnectedIsAnsweredWhateverBecameOfTheFirstAttempt) {
  const std::string service = FreePort();
  Side early;  // has the port, and no endpoint yet
  early.info = Named("127.0.0.1", service.c_str(), FI_SOURCE);
  ASSERT_NE(early.info, nullptr);
  ASSERT_EQ(fi_fabric(early.info->fabric_attr, &early.fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(early.fabric, early.info.get(), &early.domain, nullptr), 0);
  a_.OpenWith(Named("127.0.0.1", service.c_str(), 0));
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(fi_av_insert(a_.av, a_.info->dest_addr, 1, &a_.peer, 0, nullptr), 1);
  const auto inject = [&] { return fi_inject(a_.endpoint, "x", 2, a_.peer); };
  ASSERT_EQ(inject(), -FI_EAGAIN);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the stand-in of the domain refuses
  fi_av_attr av_attributes = {.type = FI_AV_TABLE};
  ASSERT_EQ(fi_av_open(early.domain, &av_attributes, &early.av, nullptr), 0);
  fi_cq_attr cq_attributes = {.format = FI_CQ_FORMAT_TAGGED};
  ASSERT_EQ(fi_cq_open(early.domain, &cq_attributes, &early.cq, nullptr), 0);
  ASSERT_EQ(fi_endpoint(early.domain, early.info.get(), &early.endpoint, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(early.endpoint, &early.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(early.endpoint, &early.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(early.endpoint), 0);
  std::swap(b_, early);
  Introduce(b_, a_);
  char in[2][2] = {};
  Post([&] { return fi_recv(a_.endpoint, in[0], 2, nullptr, FI_ADDR_UNSPEC, in[0]); });
  Post([&] { return fi_recv(b_.endpoint, in[1], 2, nullptr, FI_ADDR_UNSPEC, in[1]); });
  Post([&] { return fi_inject(b_.endpoint, "y", 2, b_.peer); });
  EXPECT_EQ(Take(a_).op_context, in[0]);
  EXPECT_EQ(inject(), 0);
  EXPECT_EQ(Take(b_).op_context, in[1]);
}

TEST_F(NamesTest, WhatIsNoHostOrNotOursIsNotFound) {
  EXPECT_EQ(Named("no.such.host.invalid", "5", FI_NUMERICHOST), nullptr);
  EXPECT_EQ(Named("localhost", "5", FI_NUMERICHOST), nullptr);
  EXPECT_EQ(Named("192.0.2.77", "5", FI_SOURCE), nullptr);
  const Info numeric = Named("127.0.0.1", nullptr, FI_NUMERICHOST);
  ASSERT_NE(numeric, nullptr);
  EXPECT_NE(numeric->dest_addr, nullptr);  // on the port that stands for no service
  EXPECT_NE(numeric->src_addr, nullptr);
  EXPECT_STREQ(Named("127.0.0.2", "5", 0)->domain_attr->name, "lo");
  const Info own = Named("127.0.0.1", nullptr, FI_SOURCE);
  ASSERT_NE(own, nullptr);
  EXPECT_NE(own->src_addr, nullptr);
  EXPECT_EQ(own->dest_addr, nullptr);
}

// Programs look at their own address before they have an endpoint.
TEST_F(NamesTest, AnOwnAddressIsToldWhateverWasNamed) {
  const Info any = Named(nullptr, nullptr, 0);
  ASSERT_NE(any, nullptr);
  for (const fi_info* one = any.get(); one != nullptr; one = one->next) {
    EXPECT_EQ(one->src_addrlen, 64u) << one->domain_attr->name;
    EXPECT_NE(one->src_addr, nullptr);
    EXPECT_EQ(one->dest_addr, nullptr);
  }
  const Info on_a_port = Named(nullptr, "7000", FI_SOURCE);
  ASSERT_NE(on_a_port, nullptr);
  EXPECT_NE(std::memcmp(on_a_port->src_addr, any->src_addr, 64), 0);
  // With no port in it, it binds nobody: two may be opened.
  Info loopback = GetInfo(), again = GetInfo();
  ASSERT_NE(loopback, nullptr);
  EXPECT_EQ(loopback->src_addrlen, 64u);
  a_.OpenWith(std::move(loopback));
  b_.OpenWith(std::move(again));
  Introduce(a_, b_);
  int in = 0;
  const int out = 3;
  Post([&] { return fi_recv(b_.endpoint, &in, sizeof(in), nullptr, FI_ADDR_UNSPEC, nullptr); });
  Post([&] { return fi_inject(a_.endpoint, &out, sizeof(out), a_.peer); });
  Take(b_);
  EXPECT_EQ(in, out);
}

// PACELINE_BIND may name addresses, and several.
TEST_F(NamesTest, TheOwnAddressIsTheFirstThatIsBoundTo) {
  const Info loopback = GetInfo();
  for (const char* bind : {"lo", "127.0.0.1", "127.0.0.1,lo"}) {
    setenv("PACELINE_BIND", bind, 1);
    const Info info = Named(nullptr, nullptr, 0);
    unsetenv("PACELINE_BIND");
    ASSERT_NE(info, nullptr) << bind;
    ASSERT_EQ(info->src_addrlen, 64u) << bind;
    EXPECT_EQ(std::memcmp(info->src_addr, loopback->src_addr, 64), 0) << bind;
  }
}

// What is of one fabric reaches each other, so the loopback interface has one of its own.
TEST_F(NamesTest, AFabricIsANetwork) {
  EXPECT_STREQ(GetInfo()->fabric_attr->name, "127.0.0.0/8");
  const struct {
    const char *bind, *fabric;
  } kCases[] = {{"127.0.0.2", "127.0.0.0/8"}, {"127.0.0.1,lo", "127.0.0.0/8,127.0.0.0/8"}, {"lo,none", "paceline"}};
  for (const auto& one : kCases) {
    setenv("PACELINE_BIND", one.bind, 1);
    const Info info = Named(nullptr, nullptr, 0);
    unsetenv("PACELINE_BIND");
    ASSERT_NE(info, nullptr) << one.bind;
    EXPECT_STREQ(info->fabric_attr->name, one.fabric) << one.bind;
  }
  const Info of_network = GetInfo([](fi_info& hints) { hints.fabric_attr->name = strdup("127.0.0.0/8"); });
  ASSERT_NE(of_network, nullptr);
  EXPECT_STREQ(of_network->domain_attr->name, "lo");
}

// Programs also give the address that they are to be reached at as a socket address in the hints.
TEST_F(NamesTest, ASocketAddressInTheHintsIsTheOwn) {
  const Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup("paceline");
  auto* own = static_cast<sockaddr_in*>(std::calloc(1, sizeof(sockaddr_in)));
  *own = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  hints->src_addr = own;
  hints->src_addrlen = sizeof(*own);
  hints->ep_attr->type = FI_EP_RDM;
  fi_info* info = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "7000", 0, hints.get(), &info), 0);
  const Info owner(info);
  EXPECT_STREQ(info->domain_attr->name, "lo");
  EXPECT_EQ(info->next, nullptr);
  EXPECT_NE(info->dest_addr, nullptr);
}

// Addresses of ours in the hints come back.
TEST_F(NamesTest, AnAddressInTheHintsComesBack) {
  const Info first = Named("127.0.0.1", "7000", 0);
  ASSERT_NE(first, nullptr);
  const Info hints(fi_dupinfo(first.get()));
  fi_info* info = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &info), 0);
  const Info owner(info);
  ASSERT_EQ(info->dest_addrlen, 64u);
  EXPECT_EQ(std::memcmp(info->dest_addr, first->dest_addr, 64), 0);
}

}  // namespace
}  // namespace paceline::libfabric
