#include "api/cpp/src/cluster_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <span>

namespace paceline::api {
namespace {

constexpr size_t kDigits = 2 * sizeof(crypto::Secret);
constexpr size_t kMostBytes = 256;  // with white space

Status SystemError(const std::string& what) {
  const bool ours = errno == EACCES || errno == EPERM;
  return Status(ours ? StatusCode::kPermissionDenied : StatusCode::kNotFound, what + ": " + std::strerror(errno));
}

int Digit(uint8_t character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

Status CheckOwner(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return Status(StatusCode::kInvalidArgument, "is not a regular file");
  if (file.st_uid != geteuid() && file.st_uid != 0) {
    return Status(StatusCode::kPermissionDenied, "belongs to another user; it must be this user's or root's");
  }
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Status(StatusCode::kPermissionDenied, "may be read or changed by group or others; chmod 600 it");
  }
  return Status();
}

Result<crypto::Secret> Decode(std::span<const uint8_t> text) {
  while (!text.empty() && std::isspace(text.front()) != 0) text = text.subspan(1);
  while (!text.empty() && std::isspace(text.back()) != 0) text = text.first(text.size() - 1);
  crypto::Secret key{};
  bool good = text.size() == kDigits;
  for (size_t i = 0; good && i < key.size(); ++i) {
    const int high = Digit(text[2 * i]), low = Digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    key[i] = static_cast<uint8_t>(high << 4 | low);
  }
  if (good) return key;
  return Status(StatusCode::kInvalidArgument, "must hold 64 hexadecimal digits (make one: openssl rand -hex 32)");
}

Result<crypto::Secret> Read(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return SystemError("cannot be examined");
  if (Status status = CheckOwner(file); !status.ok()) return status;
  std::array<uint8_t, kMostBytes> text;
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("cannot be read");
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  Result<crypto::Secret> key = Decode(std::span(text).first(size));
  crypto::Erase(text);
  return key;
}

}  // namespace

Result<crypto::Secret> ReadClusterKey(const std::string& path) {
  const auto failed = [&path](const Status& status) {
    return Status(status.code(), "cluster key file \"" + path + "\" " + std::string(status.message()));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return failed(SystemError("cannot be opened"));
  Result<crypto::Secret> key = Read(fd);
  close(fd);
  if (!key.ok()) return failed(key.status());
  return key;
}

}  // namespace paceline::api
