#include "api/cpp/src/request_spreader.h"

#include <algorithm>

#include "transport/core/cookie.h"

namespace paceline::api {
namespace {

constexpr size_t kMostRemembered = 16384;
constexpr Duration kBurst = Duration::Millis(100);  // of requests: engines have not seen the first when the last comes

}  // namespace

void RequestSpreader::Join(RequestTaker* engine) {
  std::lock_guard lock(mutex_);
  engines_.push_back({.taker = engine});
}

void RequestSpreader::Leave(RequestTaker* engine) {
  std::lock_guard lock(mutex_);
  std::erase_if(engines_, [engine](const Engine& one) { return one.taker == engine; });
  absl::erase_if(listeners_, [engine](const auto& item) { return item.second == engine; });
  absl::erase_if(chosen_, [engine](const auto& item) { return item.second == engine; });
}

void RequestSpreader::AddListener(uint64_t listener, RequestTaker* home) {
  std::lock_guard lock(mutex_);
  listeners_[listener] = home;
}

void RequestSpreader::RemoveListener(uint64_t listener) {
  std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

bool RequestSpreader::PassOn(const RequestTaker* at, const ConnectionRequest& request, Time now) {
  std::lock_guard lock(mutex_);
  RequestTaker* taker = Choose(request, now);
  if (taker == nullptr || taker == at) return false;
  taker->Bring(request);
  return true;
}

RequestTaker* RequestSpreader::Choose(const ConnectionRequest& request, Time now) {
  const auto listener = listeners_.find(request.listener);
  if (listener == listeners_.end()) return nullptr;
  if (listener->second != nullptr) return listener->second;
  Forget(now);
  const Key key(request.client_nonce, request.client);
  const auto known = chosen_.find(key);
  if (known != chosen_.end()) return known->second;
  RequestTaker* taker = Lightest(now);
  if (taker == nullptr) return nullptr;
  chosen_[key] = taker;
  until_.emplace_back(key, now + CookieJar::kLife);
  return taker;
}

RequestTaker* RequestSpreader::Lightest(Time now) {
  if (now - last_choice_ > kBurst) {
    for (Engine& engine : engines_) engine.load = engine.taker->load();
  }
  last_choice_ = now;
  const auto lightest = std::min_element(engines_.begin(), engines_.end(),
                                         [](const Engine& a, const Engine& b) { return a.load < b.load; });
  if (lightest == engines_.end()) return nullptr;
  ++lightest->load;
  return lightest->taker;
}

// A request is good as long as its cookie.
void RequestSpreader::Forget(Time now) {
  while (!until_.empty() && (until_.front().second <= now || until_.size() >= kMostRemembered)) {
    chosen_.erase(until_.front().first);
    until_.pop_front();
  }
}

}  // namespace paceline::api
