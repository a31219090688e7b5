// Requests for connections that passive endpoints have told the program of, until it answers them: fi_info::handle of
// their events names them. Each has the connection by which it was made: as long as that lives, who asks waits.
//
// Thread rule: Requests: any thread, it has a lock of its own, and ends no request under it. A request's end takes the
// guard of its domain.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "api/libfabric/src/address.h"
#include "paceline/context.h"

namespace paceline::libfabric {

class Domain;
class PassiveEndpoint;

struct Request {
  Request() = default;
  ~Request();  // who asks hears, if there has been no answer, that nobody accepts

  struct fid handle = {.fclass = FI_CLASS_CONNREQ, .context = nullptr, .ops = nullptr};
  std::shared_ptr<Domain> domain;  // the passive endpoint's own, of which the connection is
  api::Connection connection;
  const PassiveEndpoint* passive = nullptr;  // which one: a name
  Address from;                              // who asks, and where the answer is awaited
  Address to;                                // whom they have asked
};

class Requests {
 public:
  // What handle it has now.
  fid_t Add(std::unique_ptr<Request> request);
  // nullptr: no request that waits for an answer, or of another endpoint than `passive`, if that is named.
  std::unique_ptr<Request> Take(const fid* handle, const PassiveEndpoint* passive = nullptr);
  // Ends those of one endpoint, which closes.
  void EndAllOf(const PassiveEndpoint* passive);
  size_t CountOf(const PassiveEndpoint* passive) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> waiting_;
};

}  // namespace paceline::libfabric
