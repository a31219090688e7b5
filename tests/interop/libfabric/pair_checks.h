// The checks of two processes, by name.
//
// Thread rule: one thread.
#pragma once

#include "tests/interop/libfabric/fabric_pair.h"

namespace paceline::fabric_pair {

// pair_data.cc: what is carried.
void Vectors(Peer& peer);
void Atomics(Peer& peer);
void Events(Peer& peer);
void Triggered(Peer& peer);
void Killed(Peer& peer);

// pair_flow.cc: one side far ahead of the other, or gone and back.
void Asleep(Peer& peer);
void Unexpected(Peer& peer);
void Windows(Peer& peer);
void Reinserted(Peer& peer);

// With endpoints of their own, as Peer's constructor.
void Clients(const char* node, const char* port, bool is_server);

// pair_scalable.cc and pair_shared.cc: the same.
void Scalable(const char* node, const char* port, bool is_server);
void Shared(const char* node, const char* port, bool is_server);

// pair_connected.cc: the same, with connected endpoints.
void Connecting(const char* node, const char* port, bool is_server);
void UnansweredKilled(const char* node, const char* port, bool is_server);
void ConnectedKilled(const char* node, const char* port, bool is_server);

}  // namespace paceline::fabric_pair
