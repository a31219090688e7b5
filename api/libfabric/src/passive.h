// Passive endpoints: they listen, in a domain of their own, and tell their event queue who asks for a connection. The
// program answers with an endpoint that accepts (Endpoint::Accept), in any domain, or here, with a rejection.
//
// Thread rule: any thread. What changes until it listens has a lock of its own, the rest is under its domain's guard.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "api/libfabric/src/address.h"
#include "api/libfabric/src/domain.h"
#include "api/libfabric/src/eq.h"
#include "api/libfabric/src/info.h"
#include "api/libfabric/src/request.h"
#include "api/libfabric/src/use.h"

namespace paceline::libfabric {

class PassiveEndpoint : public fid_pep {
 public:
  PassiveEndpoint(fid_fabric* fabric, OwnedInfo info);
  // Rejections are carried out, for at most 250 ms; who else has asked and has no answer hears that nobody accepts.
  ~PassiveEndpoint();

  // As the calls of libfabric.
  int Bind(fid_t other);
  int Listen();
  int Reject(fid_t handle, std::span<const uint8_t> data);
  int GetName(void* address, size_t* size);
  int SetName(const void* address, size_t size);

  // From the domain: takes requests.
  void Care();

 private:
  struct Rejection {
    std::unique_ptr<Request> request;
    api::Connection answer;
  };
  void TakeRequest(api::Connection connection);

  fid_fabric* const fabric_;
  std::mutex mutex_;
  OwnedInfo info_;
  Use<Eq> eq_;
  std::shared_ptr<Domain> domain_;  // it listens; lives on while requests do
  Address own_;
  std::optional<api::Listener> listener_;
  std::vector<Rejection> rejections_;  // under way
};

int OpenPassive(fid_fabric* fabric, fi_info* info, fid_pep** passive, void* context);

}  // namespace paceline::libfabric
