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

// pair_flow.cc: one side far ahead of the other.
void Asleep(Peer& peer);
void Unexpected(Peer& peer);
void Windows(Peer& peer);
void Reinserted(Peer& peer);

// pair_scalable.cc: as Peer's constructor, with all that it needs of its own.
void Scalable(const char* node, const char* port, bool is_server);

}  // namespace paceline::fabric_pair
