// The distributions of flow sizes that are built in: the files of the folder sizes, embedded at build time.
// Thread rule: constants.
#pragma once

#include <string_view>

namespace paceline::tools {

extern const std::string_view kWebSearchSizes;   // sizes/web_search.txt
extern const std::string_view kDataMiningSizes;  // sizes/data_mining.txt

}  // namespace paceline::tools
