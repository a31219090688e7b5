#include "tests/unit/api/libfabric/fabric_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace paceline::libfabric {

namespace {

// Before the first call of libfabric, which looks for providers then.
const bool environment_is_set = [] {
  setenv("FI_PROVIDER_PATH", PACELINE_PROVIDER_PATH, 1);
  setenv("FI_PROVIDER", "paceline", 1);
  unsetenv("PACELINE_BIND");
  return true;
}();

}  // namespace

Info GetInfo(const std::function<void(fi_info&)>& change) {
  const Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup("paceline");
  hints->domain_attr->name = strdup("lo");
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->mode = ~0ull;
  if (change) change(*hints);
  fi_info* info = nullptr;
  if (fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &info) != 0) return nullptr;
  return Info(info);
}

// Of a socket that has just been closed.
std::string FreePort() {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return std::to_string(ntohs(address.sin_port));
}

void Side::Open(const std::function<void(fi_info&)>& change, uint64_t queue_flags) {
  OpenWith(GetInfo(change), queue_flags);
}

void Side::OpenWith(Info with, uint64_t queue_flags) {
  info = std::move(with);
  ASSERT_NE(info, nullptr);
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
  fi_av_attr av_attributes = {.type = FI_AV_TABLE};
  ASSERT_EQ(fi_av_open(domain, &av_attributes, &av, nullptr), 0);
  fi_cq_attr cq_attributes = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
  ASSERT_EQ(fi_cq_open(domain, &cq_attributes, &cq, nullptr), 0);
  ASSERT_EQ(fi_endpoint(domain, info.get(), &endpoint, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV | queue_flags), 0);
  ASSERT_EQ(fi_enable(endpoint), 0);
}

void Side::Close() {
  const auto close = [](auto*& object) {
    if (object != nullptr) {
      EXPECT_EQ(fi_close(&object->fid), 0);
    }
    object = nullptr;
  };
  close(endpoint);
  close(cq);
  close(av);
  close(domain);
  close(fabric);
}

std::vector<uint8_t> Side::Name() {
  size_t size = 0;
  EXPECT_EQ(fi_getname(&endpoint->fid, nullptr, &size), -FI_ETOOSMALL);
  std::vector<uint8_t> name(size);
  EXPECT_EQ(fi_getname(&endpoint->fid, name.data(), &size), 0);
  return name;
}

void Side::Read() {
  while (cq != nullptr) {
    fi_cq_tagged_entry entry{};
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    fi_cq_err_entry all{};
    const ssize_t got = fi_cq_readfrom(cq, &entry, 1, &source);
    if (got == 1) {
      std::memcpy(&all, &entry, sizeof(entry));
    } else if (got == -FI_EAVAIL) {
      ASSERT_EQ(fi_cq_readerr(cq, &all, 0), 1);
    } else {
      ASSERT_EQ(got, -FI_EAGAIN);
      return;
    }
    completions.push_back(all);
    sources.push_back(source);
  }
}

void FabricTest::TearDown() {
  a_.Close();
  b_.Close();
}

void FabricTest::Open(const std::function<void(fi_info&)>& change, uint64_t queue_flags, bool introduce) {
  a_.Open(change, queue_flags);
  b_.Open(change, queue_flags);
  if (!introduce || HasFatalFailure()) return;
  Introduce(a_, b_);
  Introduce(b_, a_);
}

void FabricTest::Introduce(Side& to, Side& whom) {
  ASSERT_EQ(fi_av_insert(to.av, whom.Name().data(), 1, &to.peer, 0, nullptr), 1);
}

void FabricTest::MoveBoth() {
  a_.Read();
  b_.Read();
}

void FabricTest::Post(const std::function<ssize_t()>& post) {
  ssize_t result = -FI_EAGAIN;
  EXPECT_TRUE(Until([&] { return (result = post()) != -FI_EAGAIN; }));
  EXPECT_EQ(result, 0) << fi_strerror(static_cast<int>(-result));
}

bool FabricTest::Until(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    MoveBoth();
  }
  return true;
}

fi_cq_err_entry FabricTest::Take(Side& side) {
  EXPECT_TRUE(Until([&] { return !side.completions.empty(); }));
  if (side.completions.empty()) return {};
  const fi_cq_err_entry first = side.completions.front();
  source_ = side.sources.front();
  side.completions.pop_front();
  side.sources.pop_front();
  return first;
}

std::vector<uint8_t> Pattern(size_t bytes, uint8_t seed) {
  std::vector<uint8_t> result(bytes);
  for (size_t i = 0; i < bytes; ++i) result[i] = static_cast<uint8_t>(seed + i * 7 + (i >> 8));
  return result;
}

}  // namespace paceline::libfabric
