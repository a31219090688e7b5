// Memory of a GPU in a test: addresses that the processor cannot touch (a fault ends the process), over a file that
// stands for the dma-buf. Fake cards map the file; the test and the copies of the driver use a mapping of their own.
//
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/lane/lane.h"

namespace paceline::support {

class FakeDeviceMemory {
 public:
  static constexpr int kDevice = 3;

  explicit FakeDeviceMemory(size_t bytes);
  ~FakeDeviceMemory();
  FakeDeviceMemory(const FakeDeviceMemory&) = delete;
  FakeDeviceMemory& operator=(const FakeDeviceMemory&) = delete;

  uint8_t* address() const { return address_; }  // not to be touched
  uint8_t* bytes() const { return bytes_; }      // the same, to be touched
  size_t size() const { return size_; }
  int dma_buf() const { return dma_buf_; }
  void CloseDmaBuf();
  // All from `offset` on, as lanes are told of it.
  LaneMemory memory(size_t offset = 0) const {
    return {.base = address_ + offset,
            .bytes = size_ - offset,
            .device = kDevice,
            .dma_buf = dma_buf_,
            .dma_buf_offset = offset};
  }
  // Where the bytes at this address can be touched; nullptr: it is not in here.
  uint8_t* Reach(const void* address, size_t bytes) const;

 private:
  size_t size_;
  int dma_buf_;
  uint8_t* address_;
  uint8_t* bytes_;
};

}  // namespace paceline::support
