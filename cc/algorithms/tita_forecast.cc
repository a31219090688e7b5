#include "cc/algorithms/tita_forecast.h"

#include <algorithm>
#include <utility>

#include "cc/algorithms/bdp.h"

namespace paceline {
namespace {

constexpr uint64_t kLeastCohort = 8;   // flows: credit of fewer leaves room in the budget
constexpr uint64_t kFirstBudgets = 4;  // of trust, at most
constexpr uint64_t kGrowth = 4;        // for each further round trip with starts
constexpr uint64_t kLeastShare = 16;   // of the budget: so little is given while the port has nothing free
constexpr uint64_t kSurprise = 4;      // starts in a round trip that end all trust if they are more than stay silent
constexpr double kForget = 0.875;      // of the most starts, in each round trip that had some
constexpr double kFree = 2;            // BDP: a port is not idle at all when others can send so much in a round trip
constexpr double kFirstStart = 0.35;   // BDP, of all that begin in a round trip
constexpr double kMostStart = 0.5;     // BDP, of one
constexpr double kHeavy = 0.8, kLight = 0.6;       // BDP in use after a start
constexpr double kShrink = 0.875, kExpand = 1.05;  // of the start credit then

}  // namespace

void TitaForecast::OnStart(bool trusted, Time now) {
  if (!std::exchange(counting_, true)) {
    counted_since_ = now;
    trusted_starts_ = fresh_starts_ = 0;
  }
  ++(trusted ? trusted_starts_ : fresh_starts_);
}

void TitaForecast::OnLoad(uint64_t charged, const TitaSizes& sizes) {
  const double load = static_cast<double>(charged) / static_cast<double>(sizes.bdp);
  const double factor = load > kHeavy ? kShrink : load < kLight ? kExpand : 1;
  start_credit_ = std::clamp(start_credit_ * factor, static_cast<double>(sizes.grain),
                             std::max(kMostStart * static_cast<double>(sizes.bdp), static_cast<double>(sizes.grain)));
}

void TitaForecast::OnLoss(Time now, const TitaSizes& sizes) {
  if (now - shrunk_at_ < sizes.rtt) return;
  shrunk_at_ = now;
  start_credit_ = std::max(start_credit_ / 2, static_cast<double>(sizes.grain));
}

uint64_t TitaForecast::Most(uint64_t flows, uint64_t ready, uint64_t budget, const TitaSizes& sizes) const {
  const double idle = std::clamp(kFree - static_cast<double>(ready) / static_cast<double>(sizes.bdp), 0.0, 1.0);
  const double most = idle * static_cast<double>(budget) * static_cast<double>(flows) / std::max(starts_, 1.0);
  return std::max(static_cast<uint64_t>(std::min(most, static_cast<double>(kMaxBytes))), budget / kLeastShare);
}

TitaForecast::Verdict TitaForecast::Close(uint64_t trusted, uint64_t fresh, uint64_t ready, uint64_t budget,
                                          const TitaSizes& sizes) {
  counting_ = false;
  if (trusted_starts_ > 0) {
    starts_ = std::max(static_cast<double>(trusted_starts_), starts_ * kForget);
    if (trusted_starts_ >= kSurprise && trusted_starts_ > trusted) {
      ahead_limit_ = 0;
      return Verdict::kTrustNobody;
    }
    ahead_limit_ = std::min(ahead_limit_ * kGrowth, Most(trusted + trusted_starts_, ready, budget, sizes));
  }
  most_fresh_starts_ = fresh > 0 ? std::max(most_fresh_starts_, fresh_starts_) : 0;
  if (fresh_starts_ + fresh < kLeastCohort) return Verdict::kAsBefore;
  if (fresh_starts_ == 0 || fresh_starts_ > fresh) return Verdict::kAsBefore;
  const auto begin = static_cast<double>(std::exchange(most_fresh_starts_, 0));
  starts_ = ahead_limit_ > 0 ? std::max(starts_, begin) : begin;
  ahead_limit_ = std::min(Most(trusted + fresh, ready, budget, sizes), kFirstBudgets * budget);
  start_credit_ = kFirstStart * static_cast<double>(sizes.bdp) / starts_;
  return Verdict::kTrustFresh;
}

}  // namespace paceline
