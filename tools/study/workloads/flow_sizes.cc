#include "tools/study/workloads/flow_sizes.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/study/read_file.h"
#include "tools/study/workloads/size_files.h"

namespace paceline::tools {

absl::StatusOr<FlowSizes> FlowSizes::Load(const std::string& name, const std::string& directory) {
  if (name == "web_search") return Parse(kWebSearchSizes, name);
  if (name == "data_mining") return Parse(kDataMiningSizes, name);
  if (uint64_t bytes; absl::SimpleAtoi(name, &bytes)) return Parse(name + " 1", name);
  const std::filesystem::path path = std::filesystem::path(directory) / name;
  const absl::StatusOr<std::string> text = ReadFile(path.string());
  if (text.ok()) return Parse(*text, path.string());
  return absl::NotFoundError(absl::StrCat("\"", name,
                                          "\" is neither web_search nor data_mining, a number of bytes or a file that "
                                          "can be read: ",
                                          text.status().message()));
}

absl::StatusOr<FlowSizes> FlowSizes::Parse(std::string_view text, const std::string& name) {
  FlowSizes sizes;
  size_t number = 0;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> tokens = absl::StrSplit(line, absl::ByAnyChar(" \t\r,"), absl::SkipEmpty());
    if (tokens.empty() || tokens[0][0] == '#') continue;
    const auto error = [&](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat(name, ":", number, ": ", what));
    };
    Point point;
    if (tokens.size() != 2 || !absl::SimpleAtod(tokens[0], &point.bytes) ||
        !absl::SimpleAtod(tokens[1], &point.share)) {
      return error("must be BYTES SHARE, two numbers");
    }
    const Point before = sizes.points_.empty() ? Point{.bytes = 0, .share = 0} : sizes.points_.back();
    if (!(point.bytes > before.bytes && point.bytes >= 1 && point.bytes <= 1e12)) {
      return error("bytes must ascend, from 1 to 1e12");
    }
    if (!(point.share >= before.share && point.share <= 1)) return error("shares must ascend from 0 to 1");
    sizes.mean_ +=
        (point.share - before.share) * (sizes.points_.empty() ? point.bytes : (point.bytes + before.bytes) / 2);
    sizes.points_.push_back(point);
  }
  if (sizes.points_.empty() || sizes.points_.back().share != 1) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the last share must be 1"));
  }
  return sizes;
}

uint64_t FlowSizes::At(double quantile) const {
  const auto above = std::lower_bound(points_.begin(), points_.end(), quantile,
                                      [](const Point& point, double share) { return point.share < share; });
  if (above == points_.begin()) return static_cast<uint64_t>(std::llround(above->bytes));
  const Point& low = *(above - 1);
  const double part = (quantile - low.share) / (above->share - low.share);
  return static_cast<uint64_t>(std::llround(low.bytes + part * (above->bytes - low.bytes)));
}

}  // namespace paceline::tools
