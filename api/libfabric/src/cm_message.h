// What connected endpoints say to each other while they connect, as the private data of connections: who asks connects
// to the passive endpoint, and listens for the answer, which is a connection too. One that accepts carries the data
// from then on; one that rejects has done its work when it is made.
//
//   0  magic (u32)   4  version (u8)   5  kind (u8)   6  bytes of data (u8)   7  0
//   8  in requests: the address of who asks, where the answer is awaited (64); otherwise zero
//  72  the program's data, zero behind them (56)
//
// Thread rule: values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "api/libfabric/src/address.h"

namespace paceline::libfabric {

inline constexpr size_t kCmDataBytes = 56;  // of the program's, in one message

struct CmMessage {
  enum class Kind : uint8_t { kRequest = 1, kAccept = 2, kReject = 3 };
  static constexpr size_t kBytes = 128;

  Kind kind = Kind::kRequest;
  Address from;
  std::vector<uint8_t> data;  // at most kCmDataBytes
};

std::array<uint8_t, CmMessage::kBytes> Encode(const CmMessage& message);
// nullopt: something else.
std::optional<CmMessage> DecodeCmMessage(std::span<const uint8_t> bytes);

}  // namespace paceline::libfabric
