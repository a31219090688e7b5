#include "transport/lane/dpdk/dpdk_memory.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_vfio.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/lane/dpdk/dpdk_eal.h"

namespace paceline {
namespace {

struct PageRange {
  uintptr_t begin = 0, end = 0;
  void* base() const { return reinterpret_cast<void*>(begin); }
  size_t bytes() const { return end - begin; }
};

// Empty (begin == end) where there is no whole page.
PageRange PagesIn(const LaneMemory& memory) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto base = reinterpret_cast<uintptr_t>(memory.base);
  const uintptr_t begin = (base + page - 1) / page * page, end = (base + memory.bytes) / page * page;
  return {begin, std::max(begin, end)};
}

// What the process has mapped for all its cards: those of vfio-pci share one table.
class CardMappings {
 public:
  static CardMappings& Get() {
    static CardMappings* const mappings = new CardMappings;
    return *mappings;
  }

  absl::Status Add(const PageRange& pages) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto next = mappings_.lower_bound(pages.begin);
    if (next != mappings_.end() && next->first == pages.begin && next->second.end == pages.end && !next->second.ends) {
      ++next->second.ports;
      return absl::OkStatus();
    }
    const bool meets_next = next != mappings_.end() && next->first < pages.end;
    const bool meets_previous = next != mappings_.begin() && std::prev(next)->second.end > pages.begin;
    if (meets_next || meets_previous) return absl::AlreadyExistsError("it overlaps other memory that is mapped");
    // The larger the pages are said to be, the less DPDK has to remember.
    const uintptr_t page = (pages.begin | pages.bytes()) & -(pages.begin | pages.bytes());
    if (rte_extmem_register(pages.base(), pages.bytes(), nullptr, 0, page) != 0) return Failed("DPDK does not take it");
    if (rte_vfio_container_dma_map(RTE_VFIO_DEFAULT_CONTAINER_FD, pages.begin, pages.begin, pages.bytes()) != 0) {
      absl::Status status = Failed("the IOMMU does not map it");
      rte_extmem_unregister(pages.base(), pages.bytes());
      return status;
    }
    mappings_[pages.begin] = {.end = pages.end};
    return absl::OkStatus();
  }

  // Its owner is about to give these pages back: from now on others may be at these addresses.
  void End(const PageRange& pages) {
    const std::lock_guard<std::mutex> lock(mutex_);
    mappings_.find(pages.begin)->second.ends = true;
  }

  void Remove(const PageRange& pages) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = mappings_.find(pages.begin);
    if (--found->second.ports > 0) return;
    rte_vfio_container_dma_unmap(RTE_VFIO_DEFAULT_CONTAINER_FD, pages.begin, pages.begin, pages.bytes());
    rte_extmem_unregister(pages.base(), pages.bytes());
    mappings_.erase(found);
  }

 private:
  struct Mapping {
    uintptr_t end = 0;
    uint32_t ports = 1;
    bool ends = false;  // no other port may have it
  };
  static absl::Status Failed(const char* what) {
    return absl::ResourceExhaustedError(absl::StrCat(what, " (", rte_strerror(rte_errno), "): ", LastDpdkErrors()));
  }
  std::mutex mutex_;
  std::map<uintptr_t, Mapping> mappings_;  // by their first page
};

}  // namespace

bool DpdkMemory::IsPossible(const std::string& name) {
  std::error_code error;
  const auto driver = std::filesystem::read_symlink(absl::StrCat("/sys/bus/pci/devices/", name, "/driver"), error);
  return !error && driver.filename() == "vfio-pci" && rte_eal_iova_mode() == RTE_IOVA_VA;
}

DpdkMemory::~DpdkMemory() {
  for (const std::vector<Pages>* list : {&lent_, &returned_}) {
    for (const Pages& pages : *list) CardMappings::Get().Remove({pages.begin, pages.end});
  }
}

absl::Status DpdkMemory::Lend(const LaneMemory& memory) {
  const PageRange pages = PagesIn(memory);
  if (memory.on_device() || pages.bytes() == 0) return absl::InvalidArgumentError("there is no page of the host's");
  const auto at = std::lower_bound(lent_.begin(), lent_.end(), pages.begin,
                                   [](const Pages& lent, uintptr_t begin) { return lent.begin < begin; });
  if (at != lent_.end() && at->begin == pages.begin && at->end == pages.end) {
    ++at->times;
    return absl::OkStatus();
  }
  if (absl::Status status = CardMappings::Get().Add(pages); !status.ok()) return status;
  Pages lent;
  lent.begin = pages.begin;
  lent.end = pages.end;
  lent_.insert(at, std::move(lent));
  return absl::OkStatus();
}

void DpdkMemory::Return(const LaneMemory& memory) {
  const PageRange pages = PagesIn(memory);
  const auto at =
      std::find_if(lent_.begin(), lent_.end(), [&pages](const Pages& lent) { return lent.begin == pages.begin; });
  if (at == lent_.end() || --at->times > 0) return;
  CardMappings::Get().End(pages);
  returned_.push_back(std::move(*at));
  lent_.erase(at);
  UnmapReturned();
}

void DpdkMemory::UnmapReturned() {
  std::erase_if(returned_, [](const Pages& pages) {
    if (pages.loans.any()) return false;
    CardMappings::Get().Remove({pages.begin, pages.end});
    return true;
  });
}

const PayloadLoans* DpdkMemory::Find(const uint8_t* data, size_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto holds = [begin, bytes](const Pages& pages) {
    return begin >= pages.begin && begin < pages.end && bytes <= pages.end - begin;
  };
  if (last_ < lent_.size() && holds(lent_[last_])) return &lent_[last_].loans;
  const auto behind = std::upper_bound(lent_.begin(), lent_.end(), begin,
                                       [](uintptr_t at, const Pages& pages) { return at < pages.begin; });
  if (behind == lent_.begin() || !holds(*std::prev(behind))) return nullptr;
  last_ = static_cast<size_t>(std::prev(behind) - lent_.begin());
  return &lent_[last_].loans;
}

}  // namespace paceline
