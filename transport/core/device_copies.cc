#include "transport/core/device_copies.h"

#include "transport/core/endpoint.h"

namespace paceline {

const uint8_t* DeviceCopies::FromDevice(ConnectionId connection, int device, const uint8_t* from, size_t bytes) {
  uint8_t* const to = burst_memory_->Next();
  if (!Note(environment_->CopyFromDevice(device, to, from, bytes), connection, bytes)) return nullptr;
  burst_memory_->Use(bytes);
  return to;
}

bool DeviceCopies::ToDevice(ConnectionId connection, int device, uint8_t* to, const uint8_t* from, size_t bytes) {
  return Note(environment_->CopyToDevice(device, to, from, bytes), connection, bytes);
}

bool DeviceCopies::Note(bool copied, ConnectionId connection, size_t bytes) {
  if (copied) {
    ++counters_->device_copies;
    counters_->device_copied_bytes += bytes;
  } else {
    ++counters_->device_copies_failed;
    failed_.push_back(connection);
  }
  return copied;
}

}  // namespace paceline
