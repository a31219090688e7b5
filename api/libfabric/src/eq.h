// An event queue: of a fabric, for events that the provider and the program write. Reading takes the oldest.
//
// Thread rule: any thread; it has a lock of its own.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "api/libfabric/src/use.h"

namespace paceline::libfabric {

class Eq : public fid_eq, public Usable {
 public:
  // `api_version`: of the interface, that the program has.
  Eq(const fi_eq_attr& attributes, uint32_t api_version, int descriptor);
  ~Eq();

  // As fi_eq_write.
  ssize_t Write(uint32_t event, const void* bytes, size_t size);
  void WriteError(const fi_eq_err_entry& error);
  ssize_t Read(uint32_t* event, void* bytes, size_t size, uint64_t flags);
  ssize_t ReadError(fi_eq_err_entry* error, uint64_t flags);
  ssize_t WaitRead(uint32_t* event, void* bytes, size_t size, int timeout, uint64_t flags);
  int TryWait();
  int descriptor() const { return descriptor_; }
  bool may_be_written() const { return writable_; }
  fi_wait_obj wait_object() const { return wait_; }

 private:
  struct Event {
    bool is_error = false;
    uint32_t event = 0;
    std::vector<uint8_t> bytes;
    fi_eq_err_entry error{};
  };
  void Push(Event event);
  void Pop();

  const uint32_t api_version_;
  const bool writable_;
  const fi_wait_obj wait_;
  const int descriptor_;  // readable while there is an event
  std::mutex mutex_;
  std::deque<Event> events_;
};

int OpenEq(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** eq, void* context);

}  // namespace paceline::libfabric
