// One of two processes that use libfabric as its own test programs do: a server on a port, and a client that knows host
// and port alone and tells the server its name in its first message. All calls that wait read the completion queue; a
// check that fails ends the process with a message and status 1.
//
// Thread rule: one thread.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace paceline::fabric_pair {

inline constexpr uint64_t kKey = 7;

void Require(bool good, const char* what, long detail = 0);
// Waits for the next entry of a queue in FI_CQ_FORMAT_CONTEXT, which is a success.
void Await(fid_cq* queue);

class Peer {
 public:
  // `node`: the own host of a server, the server's of a client.
  Peer(const char* node, const char* port, bool is_server);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool is_server() const { return is_server_; }
  fid_domain* domain() const { return domain_; }
  fid_ep* endpoint() const { return endpoint_; }
  fi_addr_t peer() const { return peer_; }
  fid_cntr* remote_writes() const { return remote_writes_; }
  std::vector<uint64_t>& memory() { return memory_; }  // open to the other process under kKey, by offsets

  // Repeats a post while it answers -FI_EAGAIN; returns what it answered then.
  ssize_t Post(const std::function<ssize_t()>& post);
  void PostOk(const char* what, const std::function<ssize_t()>& post);
  // The next completion; of one that succeeded `err` is 0.
  fi_cq_err_entry Take();
  void Progress();
  void Until(const char* what, const std::function<bool()>& done);
  // Both have come here.
  void Meet();
  // Servers: the next client, in the place of the one before.
  void Welcome();
  // Takes the peer out of the address vector and puts it in again, under another index.
  void Reinsert();

 private:
  bool is_server_;
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* av_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_cntr* remote_writes_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fid_mr* region_ = nullptr;
  fi_addr_t peer_ = FI_ADDR_NOTAVAIL;
  std::vector<uint64_t> memory_ = std::vector<uint64_t>(4096);
  std::deque<fi_cq_err_entry> completions_;
};

}  // namespace paceline::fabric_pair
