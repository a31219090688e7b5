#include "api/cpp/src/request_spreader.h"

#include <algorithm>

#include "transport/core/cookie.h"

namespace paceline::api {
namespace {

constexpr size_t kMostRemembered = 16384;
constexpr Duration kBurst = Duration::Millis(100);  // requests of it are counted here: engines see them later

}  // namespace

void RequestSpreader::Join(RequestTaker* engine) {
  std::lock_guard lock(mutex_);
  engines_.push_back({.taker = engine});
}

void RequestSpreader::Leave(RequestTaker* engine) {
  std::lock_guard lock(mutex_);
  std::erase_if(engines_, [engine](const Engine& one) { return one.taker == engine; });
  absl::erase_if(listeners_, [engine](const auto& item) { return item.second == engine; });
  absl::erase_if(chosen_, [engine](const auto& item) { return item.second.taker == engine; });
}

void RequestSpreader::AddListener(uint64_t listener, RequestTaker* home) {
  std::lock_guard lock(mutex_);
  listeners_[listener] = home;
}

void RequestSpreader::RemoveListener(uint64_t listener) {
  std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

PassedOn RequestSpreader::PassOn(const RequestTaker* at, const ConnectionRequest& request, Time now) {
  std::lock_guard lock(mutex_);
  RequestTaker* taker = Choose(request, now);
  if (taker == nullptr || taker == at) return PassedOn::kNo;
  return taker->Bring(request) ? PassedOn::kYes : PassedOn::kFull;
}

RequestTaker* RequestSpreader::Choose(const ConnectionRequest& request, Time now) {
  Forget(now);
  const Key key(request.client_nonce, request.client);
  const Time until = now + CookieJar::kLife;
  if (const auto known = chosen_.find(key); known != chosen_.end()) {
    known->second.until = until;
    return known->second.taker;
  }
  const auto listener = listeners_.find(request.listener);
  if (listener == listeners_.end()) return nullptr;
  RequestTaker* taker = listener->second != nullptr ? listener->second : Lightest(now);
  if (taker == nullptr) return nullptr;
  chosen_[key] = {.taker = taker, .until = until};
  until_.emplace_back(key, until);
  return taker;
}

RequestTaker* RequestSpreader::Lightest(Time now) {
  if (now - loads_read_ > kBurst) {
    for (Engine& engine : engines_) engine.load = engine.taker->load();
    loads_read_ = now;
  }
  const auto lightest = std::min_element(engines_.begin(), engines_.end(),
                                         [](const Engine& a, const Engine& b) { return a.load < b.load; });
  if (lightest == engines_.end()) return nullptr;
  ++lightest->load;
  return lightest->taker;
}

// A request is good as long as its cookie, or a newer one of the same request.
void RequestSpreader::Forget(Time now) {
  while (!until_.empty() && (until_.front().second <= now || until_.size() >= kMostRemembered)) {
    const Key key = until_.front().first;
    until_.pop_front();
    const auto known = chosen_.find(key);
    if (known == chosen_.end()) continue;
    if (known->second.until > now && until_.size() < kMostRemembered / 2) {
      until_.emplace_back(key, known->second.until);
    } else {
      chosen_.erase(known);
    }
  }
}

}  // namespace paceline::api
