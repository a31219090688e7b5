#include "api/cpp/src/counters_page.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace paceline::api {
namespace {

constexpr char kFolder[] = "/dev/shm/";
constexpr char kPrefix[] = "paceline-";
constexpr char kMagic[8] = {'P', 'C', 'L', 'C', 'N', 'T', 'R', 'S'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 64, kRecordBytes = 64, kNameBytes = 40, kUnitBytes = 16;
constexpr size_t kMaxRecords = 65536;
// A page is empty and not locked for a moment while it is made; one that stays so is of a process that was killed then.
constexpr time_t kMakingSeconds = 60;

struct Header {
  char magic[8];
  uint32_t version, header_bytes, record_bytes, records;
  uint64_t pid, started, updated;
  uint64_t zero[2];
};
static_assert(sizeof(Header) == kHeaderBytes);

struct Record {
  char name[kNameBytes];
  char unit[kUnitBytes];
  uint64_t value;
};
static_assert(sizeof(Record) == kRecordBytes);

uint64_t UnixNanos() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::string TextOf(const char* field, size_t size) { return std::string(field, strnlen(field, size)); }

bool IsPageName(const std::string& name) { return name.rfind(kPrefix, 0) == 0 && name.find('/') == std::string::npos; }

// Not only a size: where shared memory is full, a write to what has no memory yet would end the process.
bool Allocate(int fd, size_t bytes) {
  do {
    errno = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (errno == EINTR);
  return errno == 0;
}

Status Error(const std::string& name, const char* what) {
  return Status(StatusCode::kInternal, "counters page " + name + ": " + what + ": " + std::strerror(errno));
}

template <typename Value>
bool ReadAt(int fd, uint64_t offset, Value& value) {
  return pread(fd, &value, sizeof(value), static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof(value));
}

// Not mapped: whose page it is, perhaps a stranger, may shorten it, and a look behind its end would end the process.
Result<CountersSnapshot> ReadCounters(const std::string& name, int fd) {
  const auto refused = [&name](const char* what) {
    return Status(StatusCode::kInvalidArgument, "counters page " + name + ": " + what);
  };
  struct stat info {};
  Header header;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !ReadAt(fd, 0, header)) return refused("too short");
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.version != kVersion ||
      header.header_bytes < kHeaderBytes || header.record_bytes < kRecordBytes || header.records > kMaxRecords) {
    return refused("not version 1 of the layout, or damaged");
  }
  CountersSnapshot snapshot;
  snapshot.pid = header.pid;
  snapshot.started_unix_nanos = header.started;
  snapshot.updated_unix_nanos = header.updated;
  for (uint32_t i = 0; i < header.records; ++i) {
    Record record;
    if (!ReadAt(fd, header.header_bytes + uint64_t{i} * header.record_bytes, record))
      return refused("damaged: cut off");
    snapshot.counters.push_back({TextOf(record.name, kNameBytes), TextOf(record.unit, kUnitBytes), "", record.value});
  }
  return snapshot;
}

}  // namespace

std::vector<std::string> ListCounterPages() {
  std::vector<std::string> names;
  DIR* folder = opendir(kFolder);
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (!IsPageName(name)) continue;
    const std::string path = kFolder + name;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
      // Nobody holds it: its owner is dead. Looked at by name again, for it may have been replaced meanwhile.
      struct stat ours {
      }, now{};
      if (fstat(fd, &ours) == 0 && S_ISREG(ours.st_mode) && stat(path.c_str(), &now) == 0 &&
          ours.st_ino == now.st_ino && (ours.st_size > 0 || time(nullptr) - now.st_mtime > kMakingSeconds)) {
        unlink(path.c_str());
      }
    } else {
      names.push_back(name);
    }
    close(fd);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

Result<CountersSnapshot> ReadCounterPage(const std::string& name) {
  if (!IsPageName(name))
    return Status(StatusCode::kInvalidArgument, "\"" + name + "\" is not the name of a counters page");
  const std::string path = kFolder + name;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    const StatusCode code = errno == ENOENT ? StatusCode::kNotFound : StatusCode::kPermissionDenied;
    return Status(code, "counters page " + name + ": " + std::strerror(errno));
  }
  Result<CountersSnapshot> result = ReadCounters(name, fd);
  close(fd);
  return result;
}

Result<std::unique_ptr<CountersPage>> CountersPage::Create(std::span<const Counter> counters) {
  ListCounterPages();  // for its tidying up
  static std::atomic<uint32_t> number{0};
  std::string name;
  int fd = -1;
  for (int attempt = 0; attempt < 1000 && fd < 0; ++attempt) {  // a name may be taken from another process namespace
    name = kPrefix + std::to_string(getpid()) + "-" + std::to_string(number.fetch_add(1));
    fd = open((kFolder + name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno != EEXIST) return Error(name, "open");
  }
  if (fd < 0) return Error(name, "open");
  const size_t bytes = kHeaderBytes + counters.size() * kRecordBytes;
  void* map = MAP_FAILED;
  // Locked while still empty: an empty page is not taken for one that was left over before kMakingSeconds.
  if (flock(fd, LOCK_EX) == 0 && Allocate(fd, bytes)) {
    map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (map == MAP_FAILED) {
    const Status status = Error(name, "memory");
    unlink((kFolder + name).c_str());
    close(fd);
    return status;
  }
  std::unique_ptr<CountersPage> page(new CountersPage(name, fd, static_cast<uint8_t*>(map), bytes));
  auto* records = reinterpret_cast<Record*>(page->map_ + kHeaderBytes);
  for (size_t i = 0; i < counters.size(); ++i) {
    std::memcpy(records[i].name, counters[i].name.data(), std::min(counters[i].name.size(), kNameBytes - 1));
    std::memcpy(records[i].unit, counters[i].unit.data(), std::min(counters[i].unit.size(), kUnitBytes - 1));
    records[i].value = counters[i].value;
  }
  auto* header = reinterpret_cast<Header*>(page->map_);
  header->version = kVersion;
  header->header_bytes = kHeaderBytes;
  header->record_bytes = kRecordBytes;
  header->records = static_cast<uint32_t>(counters.size());
  header->pid = static_cast<uint64_t>(getpid());
  header->started = header->updated = UnixNanos();
  uint64_t magic;
  std::memcpy(&magic, kMagic, sizeof(magic));
  __atomic_store_n(reinterpret_cast<uint64_t*>(header->magic), magic, __ATOMIC_RELEASE);
  return page;
}

CountersPage::CountersPage(std::string name, int fd, uint8_t* map, size_t bytes)
    : name_(std::move(name)), fd_(fd), map_(map), bytes_(bytes) {}

CountersPage::~CountersPage() {
  unlink((kFolder + name_).c_str());
  munmap(map_, bytes_);
  close(fd_);
}

void CountersPage::Set(size_t record, uint64_t value) {
  auto* records = reinterpret_cast<Record*>(map_ + kHeaderBytes);
  __atomic_store_n(&records[record].value, value, __ATOMIC_RELAXED);
}

void CountersPage::Stamp() {
  __atomic_store_n(&reinterpret_cast<Header*>(map_)->updated, UnixNanos(), __ATOMIC_RELEASE);
}

}  // namespace paceline::api
