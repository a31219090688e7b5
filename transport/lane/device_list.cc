#include "transport/lane/device_list.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace paceline {

std::vector<std::string> SplitDevices(const std::string& text) {
  std::vector<std::string> devices;
  for (const absl::string_view piece : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const absl::string_view part = absl::StripAsciiWhitespace(piece);
    if (!devices.empty() && absl::StrContains(part, '=')) {
      absl::StrAppend(&devices.back(), ",", part);
    } else {
      devices.emplace_back(part);
    }
  }
  return devices;
}

}  // namespace paceline
