// The messages by which two verbs lanes set up the queue pairs of their paths. They travel as datagrams, any may be
// lost or come twice.
//
//    0  |     type      |    version    |           entropy             |
//    4  |                          connection                           |
//    8  |                            epoch                              |
//   12  |                           attempt                             |
//   16  |                     QP number of the sender                   |
//   20  |                            PSN                                |
//   24  |            MTU, bytes         |    service    |    reserved   |
//
// A path is (lane that writes, lane that is written to, connection, entropy). All numbers are big endian.
//
//   Open    the writer has a QP, and wants one to write to. It ends the QP of any earlier attempt.
//   Accept  the other side's QP takes writes
//   Refuse  it has none to give
//   Close   either side: the path's QP of this attempt is no more
//
// Thread rule: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace paceline {

enum class VerbsMessageType : uint8_t { kOpen = 1, kAccept = 2, kRefuse = 3, kClose = 4 };
enum class VerbsService : uint8_t { kUnreliable = 1, kReliable = 2 };  // UC, RC

struct VerbsMessage {
  VerbsMessageType type = VerbsMessageType::kOpen;
  uint16_t entropy = 0;
  uint32_t connection = 0;  // of the side that is written to
  uint32_t epoch = 0;       // of the writing lane: another one each time that a lane is made
  uint32_t attempt = 0;     // within an epoch, one more each time
  uint32_t qp_number = 0;
  uint32_t psn = 0;
  uint16_t mtu = 0;
  VerbsService service = VerbsService::kUnreliable;
};

inline constexpr size_t kVerbsMessageBytes = 28;

std::array<uint8_t, kVerbsMessageBytes> EncodeVerbsMessage(const VerbsMessage& message);
// Nothing: another length, version, type or service, or a QP number, PSN or MTU that cannot be.
std::optional<VerbsMessage> ParseVerbsMessage(std::span<const uint8_t> bytes);

}  // namespace paceline
