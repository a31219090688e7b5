// A histogram of durations with a bounded relative error (1/64, 1.6 %) over the whole range of 64-bit nanoseconds, so
// that percentiles of millions of samples cost no memory per sample. Smallest, largest and mean are exact.
//
// Thread rule: one owner at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nlohmann/json.hpp"

namespace paceline::tools {

class Histogram {
 public:
  void Add(int64_t nanos);
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  // Nanoseconds, as doubles; 0 without samples.
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double min() const { return count_ == 0 ? 0 : static_cast<double>(min_); }
  double max() const { return static_cast<double>(max_); }
  // The smallest value that at least `fraction` of the samples do not exceed, to within the error: as if those of a
  // bucket were spread over it evenly.
  double Quantile(double fraction) const;

  // {"p50":..,"p90":..,"p99":..,"p999":..,"max":..,"mean":..,"min":..,"samples":n}; times `scale` (0.001:
  // microseconds).
  nlohmann::json Summary(double scale) const;
  // One line per used bucket: upper bound in microseconds, samples, share of samples up to here.
  std::string Table(double scale) const;

  // To and from another process.
  nlohmann::json ToJson() const;
  static Histogram FromJson(const nlohmann::json& json);

 private:
  static constexpr int kSubBits = 6;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) << kSubBits;
  static size_t BucketOf(uint64_t value);
  static uint64_t UpperBound(size_t bucket);

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t min_ = ~uint64_t{0};
  uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace paceline::tools
