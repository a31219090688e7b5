// Memory of the host that is lent to a port, so that its card reads payloads where they lie.
//
// Whole pages inside what is lent are mapped for the card: it sees nothing beside them, and two regions that share a
// page do not get in each other's way. Payload that reaches into the first or last part of a page is not there.
//
// A driver lets go of a buffer some time after the card has read it. Pages that were given back meanwhile stay mapped,
// and so in memory, until no buffer refers to them: the card reads what its owner left there, or has put there since,
// which a receiver finds out by the checksum, but never pages of somebody else.
//
// Memory of a GPU is lent likewise, to cards whose driver reaches it (that of mlx5 does where the kernel module
// nvidia_peermem is loaded); the processor does not touch it here. Its pages are the GPU's driver's: when that frees
// them, the card can read them no more. And no checksum tells of what was put there: so its owner has to leave it alone
// for longer (Lane::ReturnMemory).
//
// By rte_extmem_register, and rte_vfio_container_dma_map or rte_dev_dma_map (DPDK 22.11, rte_memory.h, rte_vfio.h and
// rte_dev.h).
//
// Thread rule: the engine's thread of the port. Mappings, which ports of one process share, are locked, on the control
// path alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "transport/lane/dpdk/card_mapping.h"
#include "transport/lane/dpdk/payload_loans.h"
#include "transport/lane/lane.h"

namespace paceline {

class DpdkMemory {
 public:
  explicit DpdkMemory(CardMapping mapping = {}) : mapping_(mapping) {}
  ~DpdkMemory() { UnmapAll(); }
  DpdkMemory(const DpdkMemory&) = delete;
  DpdkMemory& operator=(const DpdkMemory&) = delete;

  // Whether memory can be mapped in the table of vfio-pci for the card at this PCI address: that has handed it over,
  // behind an IOMMU, so that it can use the process's own addresses.
  static bool CanMapFor(const std::string& pci_address);

  // Not OK: it cannot be mapped. OK: it is, or (memory of the host) will be as soon as what overlaps it is mapped no
  // more: of regions that overlap, and are not the same, one is mapped.
  absl::Status Lend(const LaneMemory& memory);
  void Return(const LaneMemory& memory);

  // What a buffer that refers to these bytes is to hold; nullptr: they are not there for the card.
  const PayloadLoans* Find(const uint8_t* data, size_t bytes) const;

  // Something given back is still mapped, or something lent is not yet.
  bool has_changes() const { return !returned_.empty() || !waiting_.empty(); }
  // Unmaps what was given back and no buffer refers to any more, and maps what waited for that.
  void MakeChanges();
  // The port is stopped, and goes.
  void UnmapAll();

 private:
  struct Pages {
    Pages(uintptr_t first, uintptr_t last) : begin(first), end(last) {}
    uintptr_t begin, end;
    uint32_t times = 1;  // lent
    PayloadLoans loans;
  };

  // Already exists: it overlaps other memory that is mapped.
  absl::Status Lend(uintptr_t begin, uintptr_t end);
  void Insert(uintptr_t begin, uintptr_t end);

  const CardMapping mapping_;
  std::vector<Pages> lent_;  // by address; none overlap
  std::vector<Pages> returned_;
  std::vector<Pages> waiting_;  // lent, not mapped; each once for every time
  mutable size_t last_ = 0;     // what was asked for last is asked for again
};

}  // namespace paceline
