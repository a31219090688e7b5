// The unix sockets of a shm lane. A lane listens under its token; who wants to send to it connects, makes a ring and
// offers it over the connection. From then on the connection carries single bytes, either way, that wake the other
// side, and its end says that the other side is gone, however it went.
//
// Both ends must be processes of the same user (the kernel says who the other one is): all others are turned away.
//
// Thread rule: functions without state. None blocks.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "transport/lane/file_descriptor.h"
#include "transport/lane/shm/shm_address.h"

namespace paceline {

// What the writer of a ring tells its reader, in the connection's first message, beside the memory's descriptor.
struct ShmOffer {
  uint32_t version = 1;
  uint32_t source_bytes = 0;
  uint64_t ring_bytes = 0;
  std::array<uint8_t, LaneAddress::kMaxBytes> source{};  // the sending lane's own address
};

absl::StatusOr<FileDescriptor> ListenShm(const ShmToken& token);
// NotFound: nobody of that name here; PermissionDenied: another user's.
absl::StatusOr<FileDescriptor> ConnectShm(const ShmToken& token);

bool SendOffer(const FileDescriptor& connection, const ShmOffer& offer, const FileDescriptor& memory);

enum class OfferState : uint8_t { kWaiting, kTaken, kBad };
// kBad: the other side is gone, is another user's, or says what no writer of ours does.
OfferState TakeOffer(const FileDescriptor& connection, ShmOffer* offer, FileDescriptor* memory);

void Ring(const FileDescriptor& connection);
// Takes in rings, some tens of them: the other side may send them faster than we do. False: it is gone.
bool TakeRings(const FileDescriptor& connection);

}  // namespace paceline
