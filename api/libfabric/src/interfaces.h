// The network interfaces that a domain can be opened on: each that is up and has an address, those of other machines'
// reach first; or, with PACELINE_BIND, what that names, as one.
//
// Thread rule: functions that ask the operating system.
#pragma once

#include <string>
#include <vector>

namespace paceline::libfabric {

struct Interface {
  std::string name;               // of the domain: "eth0", or the value of PACELINE_BIND
  std::vector<std::string> bind;  // ContextOptions::bind
};

std::vector<Interface> ListInterfaces();

// The interface with this address, or, `as_source` being false, the one through which this host is reached. Empty: none
// or not known.
std::string InterfaceFor(const std::string& node, bool as_source);

}  // namespace paceline::libfabric
