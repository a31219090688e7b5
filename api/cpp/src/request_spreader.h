// Which engine of a context takes a request to connect: all come to the first one, whose addresses the handles name.
// One that comes again, as its answer was lost, goes to the same engine as before.
//
// Thread rule: any thread. PassOn comes from engines' threads that have their engine locked, so that nothing here waits
// for an engine. Ownership: engines are borrowed from Join to Leave.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/base/time.h"
#include "transport/core/endpoint.h"

namespace paceline::api {

// An engine as the spreader sees it. Calls come with the spreader locked: they do not wait, and do not call back.
class RequestTaker {
 public:
  virtual ~RequestTaker() = default;
  virtual size_t load() const = 0;  // its connections
  // It copies what it needs, and takes it soon (Endpoint::TakeRequest). False: it has no room.
  virtual bool Bring(const ConnectionRequest& request) = 0;
};

class RequestSpreader {
 public:
  void Join(RequestTaker* engine);
  void Leave(RequestTaker* engine);

  // Requests for this listener (ListenAddress::nonce) go to `home`; nullptr: they are spread over all.
  void AddListener(uint64_t listener, RequestTaker* home);
  void RemoveListener(uint64_t listener);

  // Of a request that has come to `at`. One that is known goes where it went before, also when its listener is closed.
  PassedOn PassOn(const RequestTaker* at, const ConnectionRequest& request, Time now);

 private:
  using Key = std::pair<uint64_t, ConnectionId>;  // of a request: the client's nonce and number
  struct Engine {
    RequestTaker* taker = nullptr;
    size_t load = 0;  // as it will be when all that was given to it has come there
  };
  struct Choice {
    RequestTaker* taker = nullptr;
    Time until;  // a copy may come
  };
  RequestTaker* Choose(const ConnectionRequest& request, Time now);
  RequestTaker* Lightest(Time now);
  void Forget(Time now);

  std::mutex mutex_;
  std::vector<Engine> engines_;
  absl::flat_hash_map<uint64_t, RequestTaker*> listeners_;
  absl::flat_hash_map<Key, Choice> chosen_;
  std::deque<std::pair<Key, Time>>
      until_;  // when to look whether each of those is to be forgotten, the first one first
  Time loads_read_;
};

}  // namespace paceline::api
