// Two endpoints of the provider in two domains of one process, used as any program uses them: through libfabric, which
// finds the provider by FI_PROVIDER_PATH. Both are moved in turn, as one thread has both.
//
// Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace paceline::libfabric {

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

// What the provider offers on the loopback interface under hints that `change` may have changed; nullptr: nothing.
Info GetInfo(const std::function<void(fi_info&)>& change = {});

struct Side {
  Info info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* endpoint = nullptr;
  fi_addr_t peer = FI_ADDR_NOTAVAIL;
  std::deque<fi_cq_err_entry> completions;  // err 0: successes
  std::deque<fi_addr_t> sources;

  void Open(const std::function<void(fi_info&)>& change, uint64_t queue_flags);
  void OpenWith(Info with, uint64_t queue_flags = 0);
  void Close();
  std::vector<uint8_t> Name();
  void Read();  // takes what the queue has, if there is one
};

class FabricTest : public ::testing::Test {
 protected:
  void TearDown() override;
  void Open(const std::function<void(fi_info&)>& change = {}, uint64_t queue_flags = 0, bool introduce = true);
  void Introduce(Side& to, Side& whom);

  // Repeats `post` while it answers -FI_EAGAIN.
  void Post(const std::function<ssize_t()>& post);
  bool Until(const std::function<bool()>& done);
  // The next completion of this side.
  fi_cq_err_entry Take(Side& side);
  virtual void MoveBoth();

  Side a_, b_;
  fi_addr_t source_ = 0;  // of the completion that was taken last
};

std::vector<uint8_t> Pattern(size_t bytes, uint8_t seed);
// A UDP port of 127.0.0.1 that is free now, as a service.
std::string FreePort();

}  // namespace paceline::libfabric
