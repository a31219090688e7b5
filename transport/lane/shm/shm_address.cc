#include "transport/lane/shm/shm_address.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

constexpr uint8_t kMark = 's';

}  // namespace

LaneAddress ToLaneAddress(const ShmToken& token) {
  LaneAddress address;
  address.size = 1 + token.size();
  address.bytes[0] = kMark;
  std::copy(token.begin(), token.end(), address.bytes.begin() + 1);
  return address;
}

bool ToShmToken(const LaneAddress& address, ShmToken& token) {
  if (address.size != 1 + token.size() || address.bytes[0] != kMark) return false;
  std::copy_n(address.bytes.begin() + 1, token.size(), token.begin());
  return true;
}

std::string SocketName(const ShmToken& token) {
  const absl::string_view bytes(reinterpret_cast<const char*>(token.data()), token.size());
  return absl::StrCat("paceline-", absl::BytesToHexString(bytes));
}

}  // namespace paceline
