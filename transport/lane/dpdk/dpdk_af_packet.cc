#include "transport/lane/dpdk/dpdk_af_packet.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "transport/lane/dpdk/dpdk_device.h"
#include "transport/lane/file_descriptor.h"

namespace paceline {
namespace {

constexpr uint32_t kDefaultFrameBytes = 2048;  // the driver's
// Of a frame in the ring, before the IP packet: tpacket2_hdr, sockaddr_ll and the Ethernet header, aligned.
constexpr uint32_t kRingHeaderBytes = 80;

}  // namespace

uint32_t AfPacketRoom::frame_mtu() const { return frame_bytes - std::min(frame_bytes, kRingHeaderBytes); }

absl::StatusOr<AfPacketRoom> AskAfPacket(unsigned interface_index, std::string_view arguments) {
  AfPacketRoom room;
  room.frame_bytes = DpdkDriverNumber(arguments, "framesz", kDefaultFrameBytes);
  std::array<char, IF_NAMESIZE> name{};
  const FileDescriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || if_indextoname(interface_index, name.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("no interface ", interface_index));
  }
  room.interface = name.data();
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), name.size());
  if (ioctl(fd.get(), SIOCGIFMTU, &request) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the MTU of interface ", room.interface));
  }
  room.interface_mtu = static_cast<uint32_t>(request.ifr_mtu);
  return room;
}

}  // namespace paceline
