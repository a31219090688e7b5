// Addresses by name: what fi_getinfo makes of a node and a service, so that a program reaches a peer of which it knows
// host and port alone, as with any socket. The service is the UDP port, and with it the number of the listener.
//
// Thread rule: functions that ask the operating system.
#pragma once

#include <rdma/fabric.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "api/libfabric/src/address.h"
#include "api/libfabric/src/interfaces.h"

namespace paceline::libfabric {

// Where an endpoint that was asked for by name listens, or is to be found.
struct Named {
  std::string interface;                // a domain's name; empty: any
  std::optional<uint16_t> port;         // to listen on
  std::optional<Address> peer;          // who was named
  std::optional<sockaddr_storage> own;  // where to listen, if it was named

  bool names_own() const { return own.has_value() || port.value_or(0) != 0; }
};

// What node, service, flags and the hints' own addresses name. nullopt: no such host, or it cannot be reached.
std::optional<Named> Resolve(const char* node, const char* service, uint64_t flags, const fi_info* hints);

// The address of an endpoint that listens there on this interface; with port 0, on a port that is found when it is
// opened. nullopt: such addresses have no meaning on this lane, or the interface has none. And the other way round:
// where a domain binds that is opened with it instead of at its own places.
std::optional<Address> ListeningAddress(const Interface& interface, const Named& named);
// The number to listen by of an address with a port; 0: any.
uint64_t NamedService(const Address& address);
std::vector<std::string> BindTo(const Address& address, const std::vector<std::string>& bind);

// What an endpoint that listens there is called: if by a name, then as who knows host and port makes it, without the
// way through shared memory.
Address NameOf(const api::Handle& listener);

// As fi_av_insertsvc.
std::optional<Address> PeerAddress(const char* node, const char* service, bool numeric);

}  // namespace paceline::libfabric
