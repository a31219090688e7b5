// The text that names a port and says what it is to be: "NAME[,key=value...]".
//
// Ours are, in any order:
//   address=192.0.2.1/24, address=fd00::1/64   the port's own IP address, needed; without "/bits" every address is on
//                                              the link
//   gateway=192.0.2.254                        who takes what is not on the link
//   udp_port=49152                             the UDP port that receives, 1 to 65535
//   queues=4                                   in each direction, 1 to 64; goes to drivers too that want to know how
//   many
//                                              there will be, by the name that it has there
//   send_on_time=1                             packets of a paced flow are given to the port ahead, with the time at
//                                              which each is to leave, 0 or 1
//   card_reads=1                               registered memory, GPUs' too, is mapped by the card's driver, and the
//                                              card reads payloads where they lie, 0 or 1
// All others are the driver's and go to DPDK with the name.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "transport/lane/ethernet/frame.h"

namespace paceline {

struct DpdkDevice {
  static constexpr uint16_t kDefaultUdpPort = 49152;  // the first that is nobody's (RFC 6335)

  std::string name;     // "0000:3b:00.0", "net_memif0", or whatever a running application called its port
  std::string devargs;  // the name and what its driver takes
  IpVersion version = IpVersion::kV4;
  IpAddress address{};
  uint8_t prefix_bits = 0;
  std::optional<IpAddress> gateway;
  uint16_t udp_port = kDefaultUdpPort;
  uint16_t queues = 0;  // in each direction; 0: see ChooseDpdkQueues
  bool send_on_time = false;
  bool card_reads = false;
  bool is_own_pair = false;  // OpenMemifPair's: at the other end is a process of this user, and no switch
};

// The error names the device, the key at fault and what it may be.
absl::StatusOr<DpdkDevice> ParseDpdkDevice(std::string_view text);

// "0000:3b:00.0" or "3b:00.0".
bool IsPciAddress(std::string_view name);

// The number that a driver's arguments ("iface=v0,framesz=4096") have for a key ("framesz"), the last if there are
// several; `otherwise` where there is none.
uint32_t DpdkDriverNumber(std::string_view arguments, std::string_view key, uint32_t otherwise);

}  // namespace paceline
