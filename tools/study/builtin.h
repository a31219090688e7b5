// The studies that are built into the command: the TOML files of tools/study/studies.
// Thread rule: constants.
#pragma once

#include <span>
#include <string_view>

namespace paceline::tools {

struct BuiltinStudy {
  std::string_view name;
  std::string_view toml;
};

std::span<const BuiltinStudy> BuiltinStudies();

}  // namespace paceline::tools
