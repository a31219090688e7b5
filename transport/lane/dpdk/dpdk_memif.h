// One end of the net_memif pair that two processes of one user and machine meet at when they name no port: packets go
// through shared memory, and neither needs a privilege, hugepages, or a setting.
//
// Thread rule: control path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "transport/lane/file_descriptor.h"

namespace paceline {

struct MemifEnd {
  std::string device;   // for ParseDpdkDevice
  FileDescriptor lock;  // holds the end until it is closed or the process ends
};

// The first process gets 169.254.1.1, the second 169.254.1.2; a third is refused until one of them ends. The pair's
// files are in $XDG_RUNTIME_DIR, or else in a folder of the user's own in /tmp. `mtu`: bytes of the largest IP packet
// that is to go through; 0: as of other memifs.
absl::StatusOr<MemifEnd> OpenMemifPair(uint32_t mtu = 0);

// Of each buffer of a memif's, by its driver's arguments ("role=server,bsize=9216"). A frame has to fit into one: where
// it takes several, the driver of DPDK 22.11 writes over buffers that the other end has not read yet, and takes the
// next frame for a part of it (eth_memif_tx; it counts one buffer too many as free, and leaves the mark of a first
// buffer that others follow).
uint32_t MemifBufferBytes(std::string_view arguments);

// Where sockets go that are for processes of this user alone: $XDG_RUNTIME_DIR, or that folder.
absl::StatusOr<std::string> OwnMemifFolder();

}  // namespace paceline
