#include "transport/lane/shm/shm_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paceline {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The kernel ends a process that makes a file longer than it may, and takes this for one.
absl::Status CheckFileLimit(uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("files of this process may have ", limit.rlim_cur,
                                                   " bytes (ulimit -f), and shared memory needs ", bytes));
}

size_t MappedBytes(uint64_t ring_bytes) { return kShmControlBytes + 2 * ring_bytes; }

}  // namespace

absl::StatusOr<ShmMemory> ShmMemory::Create(uint64_t ring_bytes, FileDescriptor* descriptor) {
  const uint64_t bytes = kShmControlBytes + ring_bytes;
  if (absl::Status status = CheckFileLimit(bytes); !status.ok()) return status;
  FileDescriptor fd(memfd_create("paceline-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 || fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return absl::ErrnoToStatus(errno, "cannot size and seal shared memory");
  }
  absl::StatusOr<ShmMemory> memory = Map(fd, ring_bytes);
  if (memory.ok()) *descriptor = std::move(fd);
  return memory;
}

absl::StatusOr<ShmMemory> ShmMemory::Map(const FileDescriptor& descriptor, uint64_t ring_bytes) {
  if (ring_bytes < kLeastRing || ring_bytes > kMostRing || !std::has_single_bit(ring_bytes)) {
    return absl::InvalidArgumentError("a ring of a size that cannot be");
  }
  const int fd = descriptor.get();
  struct stat file {};
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd, &file) != 0 ||
      static_cast<uint64_t>(file.st_size) != kShmControlBytes + ring_bytes) {
    return absl::InvalidArgumentError("shared memory of another size, or not sealed");
  }
  // Room for everything first, then the file into it: once whole, and the packets once more behind that.
  void* room = mmap(nullptr, MappedBytes(ring_bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot map shared memory");
  auto* base = static_cast<uint8_t*>(room);
  ShmMemory memory;
  memory.ring_ = {std::launder(reinterpret_cast<ShmRingControl*>(base)), base + kShmControlBytes, ring_bytes};
  constexpr int kFlags = MAP_SHARED | MAP_FIXED;
  uint8_t* again = memory.ring_.packets + ring_bytes;
  if (mmap(base, kShmControlBytes + ring_bytes, PROT_READ | PROT_WRITE, kFlags, fd, 0) == MAP_FAILED ||
      mmap(again, ring_bytes, PROT_READ | PROT_WRITE, kFlags, fd, kShmControlBytes) == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, "cannot map shared memory");
  }
  return memory;
}

ShmMemory::ShmMemory(ShmMemory&& other) noexcept : ring_(std::exchange(other.ring_, {})) {}

ShmMemory& ShmMemory::operator=(ShmMemory&& other) noexcept {
  std::swap(ring_, other.ring_);
  return *this;
}

ShmMemory::~ShmMemory() {
  if (ring_.control != nullptr) munmap(ring_.control, MappedBytes(ring_.ring_bytes));
}

}  // namespace paceline
