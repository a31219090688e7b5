// A listener's address as the 128 opaque bytes of a Handle, and back.
//
//   0  "PCLH"     8  nonce (u64)                  124  FNV-1a of bytes 0..123 (u32)
//   4  version 1  16 ports x {size (u8), address (24 bytes)}
//   5  ports      all little endian
//
// Thread rule: pure functions.
#pragma once

#include "paceline/status.h"
#include "paceline/types.h"
#include "transport/core/types.h"

namespace paceline::api {

Handle EncodeHandle(const paceline::ListenAddress& address);
// kInvalidArgument: not a handle, damaged, or of another version.
Result<paceline::ListenAddress> DecodeHandle(const Handle& handle);

}  // namespace paceline::api
