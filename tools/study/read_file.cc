#include "tools/study/read_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/status/status.h"

namespace paceline::tools {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const auto error = [] { return absl::NotFoundError(std::strerror(errno)); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return error();
  std::string text;
  char part[65536];
  // What is no file may open all the same: a folder.
  for (size_t read; (read = std::fread(part, 1, sizeof(part), file.get())) > 0;) text.append(part, read);
  if (std::ferror(file.get()) != 0) return error();
  return text;
}

}  // namespace paceline::tools
