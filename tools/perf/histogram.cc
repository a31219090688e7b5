#include "tools/perf/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

namespace paceline::tools {

// Values below 64 have a bucket each; above, each power of two is cut into 64.
size_t Histogram::BucketOf(uint64_t value) {
  const int exponent = std::bit_width(value) - 1 - kSubBits;
  if (exponent < 0) return value;
  return (static_cast<size_t>(exponent + 1) << kSubBits) + ((value >> exponent) - (uint64_t{1} << kSubBits));
}

uint64_t Histogram::UpperBound(size_t bucket) {
  if (bucket < (size_t{1} << kSubBits)) return bucket;
  const int exponent = static_cast<int>(bucket >> kSubBits) - 1;
  const uint64_t base = (uint64_t{1} << kSubBits) + (bucket & ((size_t{1} << kSubBits) - 1));
  return ((base + 1) << exponent) - 1;
}

void Histogram::Add(int64_t nanos) {
  const uint64_t value = nanos < 0 ? 0 : static_cast<uint64_t>(nanos);
  ++buckets_[BucketOf(value)];
  ++count_;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::Quantile(double fraction) const {
  if (count_ == 0) return 0;
  const auto wanted = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (seen + buckets_[i] < wanted) {
      seen += buckets_[i];
      continue;
    }
    const double lower = i == 0 ? 0 : static_cast<double>(UpperBound(i - 1) + 1);
    const double upper = static_cast<double>(UpperBound(i));
    const double share = (static_cast<double>(wanted - seen) - 0.5) / static_cast<double>(buckets_[i]);
    return std::clamp(lower + share * (upper - lower), min(), max());
  }
  return max();
}

nlohmann::json Histogram::Summary(double scale) const {
  const auto rounded = [scale](double nanos) { return std::round(nanos * scale * 1000) / 1000; };
  return {{"p50", rounded(Quantile(0.5))},  {"p90", rounded(Quantile(0.9))},
          {"p99", rounded(Quantile(0.99))}, {"p999", rounded(Quantile(0.999))},
          {"max", rounded(max())},          {"mean", rounded(mean())},
          {"min", rounded(min())},          {"samples", count_}};
}

std::string Histogram::Table(double scale) const {
  std::string text = "    up to us      samples   share\n";
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] == 0) continue;
    seen += buckets_[i];
    char line[96];
    std::snprintf(line, sizeof(line), "%12.3f %12llu  %6.2f%%\n", static_cast<double>(UpperBound(i)) * scale,
                  static_cast<unsigned long long>(buckets_[i]),
                  100.0 * static_cast<double>(seen) / static_cast<double>(count_));
    text += line;
  }
  return text;
}

nlohmann::json Histogram::ToJson() const {
  nlohmann::json used = nlohmann::json::array();
  for (size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] != 0) used.push_back({i, buckets_[i]});
  }
  return {{"buckets", used}, {"min", min_}, {"max", max_}, {"sum", sum_}};
}

Histogram Histogram::FromJson(const nlohmann::json& json) {
  Histogram result;
  for (const auto& bucket : json.at("buckets")) {
    const auto index = bucket.at(0).get<size_t>();
    if (index >= kBuckets) continue;
    result.buckets_[index] = bucket.at(1).get<uint64_t>();
    result.count_ += result.buckets_[index];
  }
  result.min_ = json.at("min").get<uint64_t>();
  result.max_ = json.at("max").get<uint64_t>();
  result.sum_ = json.at("sum").get<double>();
  return result;
}

}  // namespace paceline::tools
