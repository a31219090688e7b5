// The network interfaces that a domain can be opened on: each that is up and has an address, those of other machines'
// reach first; or, with PACELINE_BIND, what that names, as one.
//
// Thread rule: functions that ask the operating system.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

namespace paceline::libfabric {

struct Interface {
  std::string name;               // of the domain: "eth0", or the value of PACELINE_BIND
  std::vector<std::string> bind;  // ContextOptions::bind
  std::string networks;           // "192.0.2.0/24", of several ports one after the other; empty: not known
};

std::vector<Interface> ListInterfaces();

// The addresses of a host (nullptr: any) and a port or service (nullptr: 0). `numeric`: names are not looked up.
std::vector<sockaddr_storage> LookUp(const char* node, const char* service, bool numeric);
// The interface with this address; empty: none.
std::string InterfaceWith(const sockaddr_storage& address);
// The local address from which packets to `target` leave.
std::optional<sockaddr_storage> RouteTo(const sockaddr_storage& target);
// The first address, with port 0, of what a domain is bound to: an interface, or itself an address.
std::optional<sockaddr_storage> AddressOf(const Interface& interface);

uint16_t PortOf(const sockaddr_storage& address);
void SetPort(sockaddr_storage& address, uint16_t port);
// "192.0.2.1:4791", "[fd00::2]:4791", "[fe80::1%eth0]:4791"
std::string TextOf(const sockaddr_storage& address);

}  // namespace paceline::libfabric
