#include "api/libfabric/src/request.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/libfabric/src/domain.h"

namespace paceline::libfabric {

Request::~Request() {
  if (domain == nullptr) return;
  const Domain::Guard guard(domain.get());
  connection = {};
}

fid_t Requests::Add(std::unique_ptr<Request> request) {
  const std::lock_guard lock(mutex_);
  return &waiting_.emplace_back(std::move(request))->handle;
}

std::unique_ptr<Request> Requests::Take(const fid* handle, const PassiveEndpoint* passive) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& request) {
    return &request->handle == handle && (passive == nullptr || request->passive == passive);
  });
  if (found == waiting_.end()) return nullptr;
  std::unique_ptr<Request> request = std::move(*found);
  waiting_.erase(found);
  return request;
}

void Requests::EndAllOf(const PassiveEndpoint* passive) {
  std::vector<std::unique_ptr<Request>> ended;
  const std::lock_guard lock(mutex_);
  const auto others = std::partition(waiting_.begin(), waiting_.end(),
                                     [&](const auto& request) { return request->passive != passive; });
  ended.assign(std::make_move_iterator(others), std::make_move_iterator(waiting_.end()));
  waiting_.erase(others, waiting_.end());
}

size_t Requests::CountOf(const PassiveEndpoint* passive) const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(waiting_.begin(), waiting_.end(),
                                           [&](const auto& request) { return request->passive == passive; }));
}

}  // namespace paceline::libfabric
