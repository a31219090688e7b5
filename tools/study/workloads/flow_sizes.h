// A distribution of flow sizes: points of its cumulative distribution, straight lines between them.
//
// As a file: lines of "BYTES SHARE", both ascending, where SHARE of the flows (0 to 1) have at most BYTES; the last
// share is 1. Lines that start with # and empty lines are skipped.
//
// Thread rule: a value; loading reads a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace paceline::tools {

class FlowSizes {
 public:
  // "web_search", "data_mining", "1024" (all alike), or a file, where relative ones start from `directory`.
  static absl::StatusOr<FlowSizes> Load(const std::string& name, const std::string& directory);
  // An error begins with "NAME:LINE: ".
  static absl::StatusOr<FlowSizes> Parse(std::string_view text, const std::string& name);

  // The size that the share `quantile` of all flows, 0 to 1, is at or below.
  uint64_t At(double quantile) const;
  double mean() const { return mean_; }

 private:
  struct Point {
    double bytes = 0;
    double share = 0;
  };
  std::vector<Point> points_;
  double mean_ = 0;
};

}  // namespace paceline::tools
