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
#include <span>

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

// An error entry, with `detail` in err_data. Since version 1.5 of the interface the buffer there may be the program's,
// with its size beside it, which gets as much as it has room for; otherwise it is the provider's: `detail` itself.
// Before, the structure ended with it.
template <typename Entry>
void GiveError(const Entry& error, std::span<uint8_t> detail, uint32_t api_version, Entry* out) {
  std::memcpy(static_cast<void*>(out), &error, offsetof(Entry, err_data));
  const bool has_size = api_version >= FI_VERSION(1, 5);
  if (has_size && out->err_data_size > 0) {
    out->err_data_size = std::min(out->err_data_size, detail.size());
    std::copy_n(detail.begin(), out->err_data_size, static_cast<uint8_t*>(out->err_data));
    return;
  }
  out->err_data = detail.empty() ? nullptr : detail.data();
  if (has_size) out->err_data_size = detail.size();
}

// As the calls named getopt, of an option that is a size.
inline int GiveSize(size_t size, void* value, size_t* room) {
  if (*room < sizeof(size)) return -FI_ETOOSMALL;
  std::memcpy(value, &size, sizeof(size));
  *room = sizeof(size);
  return 0;
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
