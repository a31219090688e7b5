#include "transport/lane/dpdk/dpdk_eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/lane/dpdk/dpdk_eal_arguments.h"

namespace paceline {
namespace {

constexpr uint64_t kLeastHugeBytes = uint64_t{64} << 20;
constexpr size_t kKeptErrorBytes = 600;

// What DPDK writes to its log, the end of it.
class ErrorLog {
 public:
  static ErrorLog& Get() {
    static ErrorLog* const log = new ErrorLog;
    return *log;
  }
  // From now on; DPDK keeps the stream for good.
  void Capture() {
    cookie_io_functions_t functions{};
    functions.write = [](void* log, const char* text, size_t size) {
      static_cast<ErrorLog*>(log)->Append({text, size});
      return static_cast<ssize_t>(size);
    };
    FILE* stream = fopencookie(this, "w", functions);
    if (stream == nullptr) return;
    setvbuf(stream, nullptr, _IOLBF, 0);
    rte_openlog_stream(stream);
  }
  // In one line.
  std::string Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string text = std::exchange(text_, "");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    for (char& c : text) {
      if (c == '\n') c = ';';
    }
    return text;
  }

 private:
  void Append(std::string_view text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    text_.append(text);
    if (text_.size() > kKeptErrorBytes) text_.erase(0, text_.size() - kKeptErrorBytes);
  }
  std::mutex mutex_;
  std::string text_;
};

uint64_t FreeHugeBytes() {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& size : std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    uint64_t pages = 0;
    std::ifstream(size.path() / "free_hugepages") >> pages;
    const std::string name = size.path().filename().string();  // "hugepages-2048kB"
    bytes += pages * std::strtoull(name.c_str() + std::strlen("hugepages-"), nullptr, 10) * 1024;
  }
  return bytes;
}

int FirstAllowedCore() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) return core;
  }
  return 0;
}

absl::Status Start(std::span<const DpdkDevice> devices, const std::string& own) {
  if (rte_lcore_count() > 0) return absl::OkStatus();  // the application has started it
  if (absl::Status status = CheckDpdkEal(); !status.ok()) return status;
  DpdkMachine machine;
  machine.has_hugepages = FreeHugeBytes() >= kLeastHugeBytes;
  machine.core = FirstAllowedCore();
  for (const DpdkDevice& device : devices) {
    if (IsPciAddress(device.name)) machine.pci_devices.push_back(device.devargs);
  }
  std::vector<std::string> arguments = EalArguments(machine, own);
  if (!absl::StrContains(own, "--log-level")) ErrorLog::Get().Capture();
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int result = -1;
  int error = 0;
  // EAL ties the thread that starts it to its core: a thread that then ends.
  std::thread starter([&pointers, &result, &error] {
    result = rte_eal_init(static_cast<int>(pointers.size()), pointers.data());
    error = rte_errno;
  });
  starter.join();
  if (result >= 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("DPDK does not start with \"", absl::StrJoin(arguments, " "), "\" (", rte_strerror(error),
                   "): ", LastDpdkErrors(), "; PACELINE_DPDK_EAL sets other arguments, docs/lanes/dpdk.md has advice"));
}

// Of one thread.
class Membership {
 public:
  Membership() : registered_(rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0) {}
  ~Membership() {
    if (registered_) rte_thread_unregister();
  }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

 private:
  bool registered_;
};

}  // namespace

absl::Status CheckDpdkEal() {
  const std::string core = absl::StrCat("/sys/devices/system/cpu/cpu", FirstAllowedCore(), "/topology/core_id");
  if (std::error_code error; std::filesystem::exists(core, error)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("DPDK finds no processor: there is no ", core, "; is /sys mounted here?"));
}

absl::Status StartDpdkEal(std::span<const DpdkDevice> devices, const std::string& arguments) {
  static std::mutex* const mutex = new std::mutex;
  const std::lock_guard<std::mutex> lock(*mutex);
  // EAL does not start a second time after it has failed.
  static const absl::Status* status = nullptr;
  if (status == nullptr) status = new absl::Status(Start(devices, arguments));
  return *status;
}

std::string LastDpdkErrors() { return ErrorLog::Get().Take(); }

void JoinDpdk() { static thread_local const Membership membership; }

}  // namespace paceline
