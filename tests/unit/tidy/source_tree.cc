#include "tests/unit/tidy/source_tree.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

namespace paceline::tidy {
namespace {

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

// Where a raw string that opens at `quote` (the position of its `"`) ends; text.size() when it never does.
size_t EndOfRawString(const std::string& text, size_t quote) {
  const size_t open = text.find('(', quote);
  if (open == std::string::npos) return text.size();
  const std::string close = ")" + text.substr(quote + 1, open - quote - 1) + "\"";
  const size_t end = text.find(close, open);
  return end == std::string::npos ? text.size() : end + close.size();
}

// Where a comment or literal that starts at `at` ends; `at` when none starts there.
size_t EndOfBlank(const std::string& text, size_t at) {
  if (text.compare(at, 2, "//") == 0) return std::min(text.find('\n', at), text.size());
  if (text.compare(at, 2, "/*") == 0) {
    const size_t end = text.find("*/", at + 2);
    return end == std::string::npos ? text.size() : end + 2;
  }
  const char quote = text[at];
  if (quote == '"' && at > 0 && text[at - 1] == 'R') return EndOfRawString(text, at);
  const bool digit_separator = quote == '\'' && at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1])) != 0;
  if ((quote != '"' && quote != '\'') || digit_separator) return at;
  size_t end = at + 1;
  while (end < text.size() && text[end] != quote && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

std::string BlankCommentsAndStrings(std::string text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = EndOfBlank(text, at);
    for (size_t i = at; i < end; ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
    at = std::max(end, at + 1);
  }
  return text;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

SourceFile ParseSource(std::string path, const std::string& text) {
  return {std::move(path), SplitLines(text), SplitLines(BlankCommentsAndStrings(text))};
}

SourceTree LoadSourceTree(const std::filesystem::path& root) {
  SourceTree tree;
  for (const char* folder : {"transport", "cc", "gpudirect", "api", "tools", "tests", "examples"}) {
    if (!std::filesystem::is_directory(root / folder)) continue;
    auto entry = std::filesystem::recursive_directory_iterator(root / folder);
    for (; entry != std::filesystem::recursive_directory_iterator(); ++entry) {
      const std::filesystem::path& path = entry->path();
      if (entry->is_directory() && path.filename() == "vendor") entry.disable_recursion_pending();
      if (!entry->is_regular_file()) continue;
      const std::string name = path.lexically_relative(root).generic_string();
      const std::string extension = path.extension().string();
      if (extension == ".h" || extension == ".cc" || extension == ".c") {
        tree.sources.push_back(ParseSource(name, ReadFile(path)));
      } else if (extension == ".cmake" || path.filename() == "CMakeLists.txt") {
        const std::vector<std::string> lines = SplitLines(ReadFile(path));
        tree.build_files.push_back({name, lines, lines});
      }
    }
  }
  const auto by_path = [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; };
  std::sort(tree.sources.begin(), tree.sources.end(), by_path);
  std::sort(tree.build_files.begin(), tree.build_files.end(), by_path);
  return tree;
}

}  // namespace paceline::tidy
