#include "transport/lane/verbs/verbs_address.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr uint8_t kMark = 'v';
constexpr uint8_t kSize = 23;
constexpr uint8_t kInfiniBand = 1;
constexpr uint8_t kEthernet = 2;

constexpr VerbsGid kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool IsIpv4(const VerbsGid& gid) { return std::equal(gid.begin(), gid.begin() + 12, kMapped.begin()); }

LaneAddress ToLaneAddress(const VerbsAddress& address) {
  LaneAddress lane;
  lane.size = kSize;
  lane.bytes[0] = kMark;
  std::copy(address.gid.begin(), address.gid.end(), lane.bytes.begin() + 1);
  lane.bytes[17] = static_cast<uint8_t>(address.qp_number >> 16);
  lane.bytes[18] = static_cast<uint8_t>(address.qp_number >> 8);
  lane.bytes[19] = static_cast<uint8_t>(address.qp_number);
  lane.bytes[20] = static_cast<uint8_t>(address.lid >> 8);
  lane.bytes[21] = static_cast<uint8_t>(address.lid);
  lane.bytes[22] = address.ethernet ? kEthernet : kInfiniBand;
  return lane;
}

bool ToVerbsAddress(const LaneAddress& address, VerbsAddress& verbs) {
  if (address.size != kSize || address.bytes[0] != kMark) return false;
  if (address.bytes[22] != kEthernet && address.bytes[22] != kInfiniBand) return false;
  std::copy_n(address.bytes.begin() + 1, verbs.gid.size(), verbs.gid.begin());
  verbs.qp_number = uint32_t{address.bytes[17]} << 16 | uint32_t{address.bytes[18]} << 8 | address.bytes[19];
  verbs.lid = static_cast<uint16_t>(address.bytes[20] << 8 | address.bytes[21]);
  verbs.ethernet = address.bytes[22] == kEthernet;
  return true;
}

}  // namespace paceline
