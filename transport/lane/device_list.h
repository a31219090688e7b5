// Devices as a user writes them in one word.
//
// Thread rule: callable from anywhere.
#pragma once

#include <string>
#include <vector>

namespace paceline {

// "eth0,eth1" as devices. A part like "key=value" belongs to the device before it, as DPDK writes settings of a port:
// "net_memif0,role=server,net_memif1" are two. Empty parts are left out.
std::vector<std::string> SplitDevices(const std::string& text);

}  // namespace paceline
