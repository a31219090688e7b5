#include "tests/support/fake_device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace paceline::support {
namespace {

uint8_t* Map(size_t bytes, int access, int flags, int fd) {
  void* mapped = mmap(nullptr, bytes, access, flags, fd, 0);
  if (mapped == MAP_FAILED) std::abort();
  return static_cast<uint8_t*>(mapped);
}

}  // namespace

FakeDeviceMemory::FakeDeviceMemory(size_t bytes) : size_(bytes), dma_buf_(memfd_create("device memory", MFD_CLOEXEC)) {
  if (dma_buf_ < 0 || ftruncate(dma_buf_, static_cast<off_t>(bytes)) != 0) std::abort();
  address_ = Map(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  bytes_ = Map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, dma_buf_);
}

FakeDeviceMemory::~FakeDeviceMemory() {
  munmap(address_, size_);
  munmap(bytes_, size_);
  CloseDmaBuf();
}

void FakeDeviceMemory::CloseDmaBuf() {
  if (dma_buf_ >= 0) close(dma_buf_);
  dma_buf_ = -1;
}

uint8_t* FakeDeviceMemory::Reach(const void* address, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address), begin = reinterpret_cast<uintptr_t>(address_);
  return at < begin || bytes > size_ || at - begin > size_ - bytes ? nullptr : bytes_ + (at - begin);
}

}  // namespace paceline::support
