// The cluster key: a file that all processes of a job, or of a cluster, share, and nobody else may read.
//
// The file holds 64 hexadecimal digits (white space around them is ignored), for example from `openssl rand -hex 32`.
// It must be a regular file that belongs to the user of the process or to root, and that neither group nor others may
// touch.
//
// Thread rule: functions without state.
#pragma once

#include <string>

#include "paceline/status.h"
#include "transport/crypto/key_derivation.h"

namespace paceline::api {

// An error names the file and what is wrong with it, never what it holds.
Result<crypto::Secret> ReadClusterKey(const std::string& path);

}  // namespace paceline::api
