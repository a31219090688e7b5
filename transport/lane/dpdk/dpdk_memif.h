// One end of the net_memif pair that two processes of one user and machine meet at when they name no port: packets go
// through shared memory, and neither needs a privilege, hugepages, or a setting.
//
// Thread rule: control path.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "transport/lane/file_descriptor.h"

namespace paceline {

struct MemifEnd {
  std::string device;   // for ParseDpdkDevice
  FileDescriptor lock;  // holds the end until it is closed or the process ends
};

// The first process gets 169.254.1.1, the second 169.254.1.2; a third is refused until one of them ends. The pair's
// files are in $XDG_RUNTIME_DIR, or else in a folder of the user's own in /tmp.
absl::StatusOr<MemifEnd> OpenMemifPair();

// Where sockets go that are for processes of this user alone: $XDG_RUNTIME_DIR, or that folder.
absl::StatusOr<std::string> OwnMemifFolder();

}  // namespace paceline
