#include "transport/lane/xdp/xdp_card.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/lane/file_descriptor.h"
#include "transport/lane/xdp/xdp_target.h"

namespace paceline {
namespace {

bool AskDriver(int fd, const std::string& interface, void* question) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  request.ifr_data = static_cast<char*>(question);
  return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

// Drivers without a setting for it do not know the question, however many queues they have.
bool CountByDriver(int fd, const std::string& interface, XdpCard& card) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (!AskDriver(fd, interface, &channels)) return false;
  card.receive_queues = channels.combined_count + channels.rx_count;
  card.transmit_queues = channels.combined_count + channels.tx_count;
  return true;
}

// False: /sys does not show this interface; it may have been mounted in another network namespace, where another
// interface may have the name.
bool CountBySys(const std::string& interface, uint32_t interface_index, XdpCard& card) {
  const std::filesystem::path folder = std::filesystem::path("/sys/class/net") / interface;
  uint32_t index = 0;
  std::string mac;
  std::ifstream(folder / "ifindex") >> index;
  std::ifstream(folder / "address") >> mac;
  if (index != interface_index || mac != FormatMacAddress(card.mac)) return false;
  std::error_code error;
  uint32_t receive = 0, transmit = 0;
  for (const auto& queue : std::filesystem::directory_iterator(folder / "queues", error)) {
    const std::string name = queue.path().filename().string();
    receive += absl::StartsWith(name, "rx-") ? 1 : 0;
    transmit += absl::StartsWith(name, "tx-") ? 1 : 0;
  }
  if (error || receive == 0 || transmit == 0) return false;
  card.receive_queues = receive;
  card.transmit_queues = transmit;
  return true;
}

}  // namespace

absl::StatusOr<XdpCard> AskXdpCard(const std::string& interface, uint32_t interface_index) {
  const FileDescriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  if (!fd.valid() || ioctl(fd.get(), SIOCGIFHWADDR, &request) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the Ethernet address of interface ", interface));
  }
  XdpCard card;
  card.ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
  if (!card.ethernet) return card;
  std::memcpy(card.mac.bytes.data(), request.ifr_hwaddr.sa_data, card.mac.bytes.size());
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (AskDriver(fd.get(), interface, &driver)) card.driver = driver.driver;
  if (!CountByDriver(fd.get(), interface, card) && !CountBySys(interface, interface_index, card)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the queues of interface ", interface, " cannot be counted: its driver does not tell, and /sys ",
                     "is missing or of another network namespace (`ip netns exec` brings the right one)"));
  }
  card.receive_queues = std::max(card.receive_queues, 1u);
  card.transmit_queues = std::max(card.transmit_queues, 1u);
  return card;
}

uint32_t CountReceiveQueues(int socket, const std::string& interface) {
  XdpCard card;
  return CountByDriver(socket, interface, card) ? card.receive_queues : 0;
}

absl::Status CheckXdpCard(const std::string& interface, const XdpCard& card) {
  if (!card.ethernet) {
    return absl::InvalidArgumentError(
        absl::StrCat("interface ", interface, " is no Ethernet interface; on loopback take udp or shm"));
  }
  // The kernel runs a bond's program on its members, whose frames no socket of the bond's gets.
  if (card.driver == "bonding") {
    return absl::FailedPreconditionError(
        absl::StrCat("interface ", interface, " is a bond, on which AF_XDP receives nothing: take the udp lane, or ",
                     "take its members out of it and give each an address (a lane each)"));
  }
  if (card.receive_queues > XDP_MAX_QUEUES) {
    return absl::FailedPreconditionError(
        absl::StrCat("interface ", interface, " has ", card.receive_queues, " receive queues, more than ",
                     XDP_MAX_QUEUES, "; set fewer: ethtool -L ", interface, " combined ", XDP_MAX_QUEUES));
  }
  return absl::OkStatus();
}

}  // namespace paceline
