#include "transport/lane/dpdk/dpdk_memory.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_vfio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

// What the process has mapped for all its cards.
class CardMappings {
 public:
  static CardMappings& Get() {
    static CardMappings* const mappings = new CardMappings;
    return *mappings;
  }

  // `device`: see CardMapping.
  absl::Status Add(rte_device* device, const PageRange& pages) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto next = mappings_.lower_bound({device, pages.begin});
    const bool is_mapped = next != mappings_.end() && next->first == Place{device, pages.begin};
    if (is_mapped && next->second.end == pages.end && !next->second.ends) {
      ++next->second.ports;
      return absl::OkStatus();
    }
    if (is_mapped) return Overlaps();
    if (absl::Status status = Register(pages); !status.ok()) return status;
    if (Map(device, pages) != 0) {
      absl::Status status = Failed(device == nullptr ? "the IOMMU does not map it" : "the driver does not map it",
                                   device == nullptr ? errno : rte_errno);
      Unregister(pages);
      return status;
    }
    mappings_[{device, pages.begin}] = {.end = pages.end};
    return absl::OkStatus();
  }

  // Its owner is about to give these pages back: from now on others may be at these addresses.
  void End(rte_device* device, const PageRange& pages) {
    const std::lock_guard<std::mutex> lock(mutex_);
    mappings_.find({device, pages.begin})->second.ends = true;
  }

  void Remove(rte_device* device, const PageRange& pages) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = mappings_.find({device, pages.begin});
    if (--found->second.ports > 0) return;
    if (device == nullptr) {
      rte_vfio_container_dma_unmap(RTE_VFIO_DEFAULT_CONTAINER_FD, pages.begin, pages.begin, pages.bytes());
    } else {
      rte_dev_dma_unmap(device, pages.base(), pages.begin, pages.bytes());
    }
    Unregister(pages);
    mappings_.erase(found);
  }

 private:
  using Place = std::pair<rte_device*, uintptr_t>;  // the first page
  struct Mapping {
    uintptr_t end = 0;
    uint32_t ports = 1;
    bool ends = false;  // no other port may have it
  };
  struct Registered {
    uintptr_t end = 0;
    uint32_t mappings = 1;
  };

  static absl::Status Overlaps() { return absl::AlreadyExistsError("it overlaps other memory that is mapped"); }
  static absl::Status Failed(const char* what, int error) {
    return absl::ResourceExhaustedError(absl::StrCat(what, " (", rte_strerror(error), "): ", LastDpdkErrors()));
  }
  static int Map(rte_device* device, const PageRange& pages) {
    if (device != nullptr) return rte_dev_dma_map(device, pages.base(), pages.begin, pages.bytes());
    return rte_vfio_container_dma_map(RTE_VFIO_DEFAULT_CONTAINER_FD, pages.begin, pages.begin, pages.bytes());
  }
  // With DPDK, which keeps account of it once for all cards.
  absl::Status Register(const PageRange& pages) {
    const auto next = registered_.lower_bound(pages.begin);
    if (next != registered_.end() && next->first == pages.begin && next->second.end == pages.end) {
      ++next->second.mappings;
      return absl::OkStatus();
    }
    const bool meets_next = next != registered_.end() && next->first < pages.end;
    const bool meets_previous = next != registered_.begin() && std::prev(next)->second.end > pages.begin;
    if (meets_next || meets_previous) return Overlaps();
    // The larger the pages are said to be, the less DPDK has to remember.
    const uintptr_t page = (pages.begin | pages.bytes()) & -(pages.begin | pages.bytes());
    if (IsKnownToDpdk(pages)) return absl::FailedPreconditionError("DPDK has it mapped already");
    if (rte_extmem_register(pages.base(), pages.bytes(), nullptr, 0, page) != 0) {
      return Failed("DPDK does not take it", rte_errno);
    }
    registered_[pages.begin] = {.end = pages.end};
    return absl::OkStatus();
  }
  void Unregister(const PageRange& pages) {
    const auto found = registered_.find(pages.begin);
    if (--found->second.mappings > 0) return;
    rte_extmem_unregister(pages.base(), pages.bytes());
    registered_.erase(found);
  }
  // Memory of its own, or of the application's that was registered with it, in any part of the range: mapping it again
  // would succeed, and unmapping it take it from whoever had it.
  static bool IsKnownToDpdk(PageRange pages) {
    const auto overlaps = [](const rte_memseg_list* list, void* range) {
      const auto* const asked = static_cast<const PageRange*>(range);
      return list->addr_64 < asked->end && list->addr_64 + list->len > asked->begin ? 1 : 0;
    };
    return rte_memseg_list_walk(overlaps, &pages) != 0;
  }

  std::mutex mutex_;
  std::map<Place, Mapping> mappings_;
  std::map<uintptr_t, Registered> registered_;  // by their first page
};

}  // namespace

bool DpdkMemory::CanMapFor(const std::string& pci_address) {
  std::error_code error;
  const auto driver =
      std::filesystem::read_symlink(absl::StrCat("/sys/bus/pci/devices/", pci_address, "/driver"), error);
  return !error && driver.filename() == "vfio-pci" && rte_eal_iova_mode() == RTE_IOVA_VA;
}

void DpdkMemory::UnmapAll() {
  for (std::vector<Pages>* list : {&lent_, &returned_}) {
    for (const Pages& pages : *list) CardMappings::Get().Remove(mapping_.device, {pages.begin, pages.end});
    list->clear();
  }
  waiting_.clear();
}

absl::Status DpdkMemory::Lend(const LaneMemory& memory) {
  const PageRange range = PagesIn(memory);
  if (memory.on_device() && !mapping_.takes_devices) {
    return absl::InvalidArgumentError("memory of a GPU is read by cards with card_reads=1 only");
  }
  if (range.bytes() == 0) return absl::InvalidArgumentError("there is no whole page in it");
  absl::Status status = Lend(range.begin, range.end);
  if (!absl::IsAlreadyExists(status) || memory.on_device()) return status;
  waiting_.emplace_back(range.begin, range.end);
  return absl::OkStatus();
}

absl::Status DpdkMemory::Lend(uintptr_t begin, uintptr_t end) {
  for (Pages& lent : lent_) {
    if (lent.begin != begin || lent.end != end) continue;
    ++lent.times;
    return absl::OkStatus();
  }
  absl::Status status = CardMappings::Get().Add(mapping_.device, {begin, end});
  if (status.ok()) Insert(begin, end);
  return status;
}

void DpdkMemory::Insert(uintptr_t begin, uintptr_t end) {
  const auto at = std::lower_bound(lent_.begin(), lent_.end(), begin,
                                   [](const Pages& lent, uintptr_t address) { return lent.begin < address; });
  lent_.emplace(at, begin, end);
}

void DpdkMemory::Return(const LaneMemory& memory) {
  const PageRange range = PagesIn(memory);
  const auto is_it = [&range](const Pages& pages) { return pages.begin == range.begin && pages.end == range.end; };
  if (const auto at = std::find_if(waiting_.begin(), waiting_.end(), is_it); at != waiting_.end()) {
    waiting_.erase(at);
    return;
  }
  const auto at = std::find_if(lent_.begin(), lent_.end(), is_it);
  if (at == lent_.end() || --at->times > 0) return;
  CardMappings::Get().End(mapping_.device, range);
  returned_.push_back(std::move(*at));
  lent_.erase(at);
  MakeChanges();
}

void DpdkMemory::MakeChanges() {
  std::erase_if(returned_, [this](const Pages& pages) {
    if (pages.loans.any()) return false;
    CardMappings::Get().Remove(mapping_.device, {pages.begin, pages.end});
    return true;
  });
  std::erase_if(waiting_, [this](const Pages& pages) { return !absl::IsAlreadyExists(Lend(pages.begin, pages.end)); });
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
