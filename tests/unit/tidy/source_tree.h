// The sources of the repository as text, for the rules of tree_rules.h.
// Single thread; a SourceTree owns its texts and does not change once loaded. Lines count from 1.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace paceline::tidy {

struct SourceFile {
  std::string path;                // from the top of the tree, "transport/base/time.h"
  std::vector<std::string> lines;  // as written
  std::vector<std::string> code;   // the same lines, with comments and the insides of string literals made blank
};

struct SourceTree {
  std::vector<SourceFile> sources;      // .h, .cc and .c
  std::vector<SourceFile> build_files;  // CMakeLists.txt and .cmake; their `code` is `lines`
};

SourceFile ParseSource(std::string path, const std::string& text);

// Reads the source folders below `root`; folders called "vendor" are others' work and left out.
SourceTree LoadSourceTree(const std::filesystem::path& root);

}  // namespace paceline::tidy
