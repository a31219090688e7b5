// All bytes of a file that a user named.
//
// Thread rule: a pure function.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace paceline::tools {

// The message of an error is the reason alone ("Is a directory"): the caller says of what.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace paceline::tools
