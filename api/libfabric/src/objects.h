// What queues and counters answer alike.
//
// Thread rule: functions without state.
#pragma once

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace paceline::libfabric {

// fi_control of what can be waited for: FI_GETWAITOBJ, and FI_GETWAIT of the descriptor that `get` answers, or the
// error in its place.
template <typename Get>
int AnswerWait(int command, void* argument, fi_wait_obj object, Get get) {
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = object;
    return 0;
  }
  if (command != FI_GETWAIT || object != FI_WAIT_FD) return -FI_ENOSYS;
  const int descriptor = get();
  if (descriptor < 0) return descriptor;
  *static_cast<int*>(argument) = descriptor;
  return 0;
}

// FI_WAIT_UNSPEC is ours to choose: a descriptor.
inline fi_wait_obj ChosenWait(fi_wait_obj asked) { return asked == FI_WAIT_UNSPEC ? FI_WAIT_FD : asked; }

// An error entry, given without detail in err_data. Since version 1.5 of the interface the buffer there is the
// program's, with its size beside it; before, it was the provider's, and the structure ended with it.
template <typename Entry>
void GiveError(const Entry& error, uint32_t api_version, Entry* out) {
  std::memcpy(static_cast<void*>(out), &error, offsetof(Entry, err_data));
  const bool owned = api_version >= FI_VERSION(1, 5) && out->err_data_size > 0;
  if (!owned) out->err_data = nullptr;
  if (api_version >= FI_VERSION(1, 5)) out->err_data_size = 0;
}

// A text as the calls named strerror give it: returned, and copied as far as there is room.
inline const char* GiveText(const char* text, char* buffer, size_t size) {
  if (buffer == nullptr || size == 0) return text;
  const size_t count = std::min(size - 1, std::strlen(text));
  std::memcpy(buffer, text, count);
  buffer[count] = '\0';
  return text;
}

}  // namespace paceline::libfabric
