#include "api/nccl/src/hca_list.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace paceline::nccl {

api::Result<HcaList> HcaList::Parse(std::string_view text) {
  HcaList list;
  std::string rest(text);
  const auto consume = [&rest](char sign) {
    const bool there = rest.starts_with(sign);
    if (there) rest.erase(0, 1);
    return there;
  };
  list.excludes_ = consume('^');
  list.exact_ = consume('=');
  for (const auto& part : absl::StrSplit(rest, ',', absl::SkipWhitespace())) {
    list.names_.emplace_back(absl::StripAsciiWhitespace(part));
  }
  const std::vector<std::string>& names = list.names_;
  const bool odd = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find_first_of("^= \t") != std::string::npos;
  });
  if (names.empty() || odd) {
    return api::Status(api::StatusCode::kInvalidArgument,
                       "PACELINE_HCA=" + std::string(text) +
                           ": write beginnings of the names of interfaces or of ports of RDMA cards, comma "
                           "separated; in front of all of them ^ to leave them out, = to take names as they are");
  }
  return list;
}

bool HcaList::Takes(std::string_view name) const {
  const bool named = std::any_of(names_.begin(), names_.end(), [&](const std::string& entry) {
    if (!name.starts_with(entry)) return false;
    const std::string_view rest = name.substr(entry.size());
    return !exact_ || rest.empty() || rest.front() == ':';
  });
  return named != excludes_;
}

}  // namespace paceline::nccl
