#include "transport/core/path/path_policy.h"

#include <algorithm>
#include <array>
#include <vector>

namespace paceline {
namespace {

class RoundRobin final : public PathPolicy {
 public:
  RoundRobin(uint32_t entropies, Random& random)
      : entropies_(entropies), next_(static_cast<uint32_t>(random.Below(entropies))) {}
  uint16_t Next() override {
    const uint32_t entropy = next_;
    next_ = next_ + 1 == entropies_ ? 0 : next_ + 1;
    return static_cast<uint16_t>(entropy);
  }

 private:
  uint32_t entropies_, next_;
};

class RandomChoice final : public PathPolicy {
 public:
  RandomChoice(uint32_t entropies, Random& random) : entropies_(entropies), random_(random.Next()) {}
  uint16_t Next() override { return static_cast<uint16_t>(random_.Below(entropies_)); }

 private:
  uint32_t entropies_;
  Random random_;
};

class SinglePath final : public PathPolicy {
 public:
  SinglePath(uint32_t entropies, Random& random) : entropy_(static_cast<uint16_t>(random.Below(entropies))) {}
  uint16_t Next() override { return entropy_; }

 private:
  uint16_t entropy_;
};

class Reps final : public PathPolicy {
 public:
  Reps(uint32_t entropies, Random& random) : explore_(entropies, random), entropies_(entropies) {}

  uint16_t Next() override {
    if (chosen_ < kExplore) {
      ++chosen_;
      return explore_.Next();
    }
    while (count_ > 0) {
      const uint16_t entropy = ring_[head_];
      head_ = (head_ + 1) % kRing;
      --count_;
      if (!Skip(entropy)) return entropy;
    }
    for (uint32_t tries = 0; tries < entropies_; ++tries) {
      const uint16_t entropy = explore_.Next();
      if (!Skip(entropy)) return entropy;
    }
    return explore_.Next();  // everything is penalised: any
  }

  void OnAck(uint16_t entropy, bool marked) override {
    if (marked) {
      Penalise(entropy, kMarkPenalty);
      return;
    }
    if (count_ == kRing) return;  // enough good ones are waiting
    ring_[(head_ + count_) % kRing] = entropy;
    ++count_;
  }

  void OnLoss(uint16_t entropy, LossCause cause) override {
    Penalise(entropy, cause == LossCause::kTimeout ? kTimeoutPenalty : kTrimPenalty);
  }

 private:
  static constexpr uint32_t kRing = 8;      // as published
  static constexpr uint32_t kExplore = 48;  // ours: short flows spread evenly instead of meeting on the same routes
  static constexpr uint8_t kMarkPenalty = 1, kTrimPenalty = 4, kTimeoutPenalty = 15;

  bool Skip(uint16_t entropy) {
    if (penalties_.empty() || penalties_[entropy] == 0) return false;
    --penalties_[entropy];
    return true;
  }
  void Penalise(uint16_t entropy, uint8_t by) {
    if (penalties_.empty()) penalties_.resize(entropies_);
    penalties_[entropy] = static_cast<uint8_t>(std::min(15, penalties_[entropy] + by));
  }

  RoundRobin explore_;
  uint32_t entropies_;
  std::array<uint16_t, kRing> ring_{};
  uint32_t head_ = 0, count_ = 0;
  uint32_t chosen_ = 0;
  std::vector<uint8_t> penalties_;  // by entropy; empty until the first penalty
};

template <typename Policy>
std::unique_ptr<PathPolicy> Make(uint32_t entropies, Random& random) {
  return std::make_unique<Policy>(entropies, random);
}

const std::array<std::string, 4> kNames = {"ecmp", "random", "reps", "round_robin"};

}  // namespace

std::span<const std::string> PathPolicyNames() { return kNames; }

std::unique_ptr<PathPolicy> CreatePathPolicy(const std::string& name, uint32_t entropies, Random& random) {
  if (name == "ecmp") return Make<SinglePath>(entropies, random);
  if (name == "random") return Make<RandomChoice>(entropies, random);
  if (name == "reps") return Make<Reps>(entropies, random);
  if (name == "round_robin") return Make<RoundRobin>(entropies, random);
  return nullptr;
}

}  // namespace paceline
