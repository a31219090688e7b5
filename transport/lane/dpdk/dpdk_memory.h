// Memory of the host that is lent to a port, so that its card reads payloads where they lie.
//
// Whole pages inside what is lent are mapped for the card: it sees nothing beside them, and two regions that share a
// page do not get in each other's way. Payload that reaches into the first or last part of a page is not there.
//
// A driver lets go of a buffer some time after the card has read it. Pages that were given back meanwhile stay mapped,
// and so in memory, until no buffer refers to them: the card reads what its owner left there, or has put there since,
// which a receiver finds out by the checksum, but never pages of somebody else.
//
// Thread rule: the engine's thread of the port. Mappings, which ports of one process share, are locked, on the control
// path alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "transport/lane/dpdk/payload_loans.h"
#include "transport/lane/lane.h"

namespace paceline {

class DpdkMemory {
 public:
  DpdkMemory() = default;
  // The port is closed: all that is still mapped is mapped no more.
  ~DpdkMemory();
  DpdkMemory(const DpdkMemory&) = delete;
  DpdkMemory& operator=(const DpdkMemory&) = delete;

  // Whether memory can be mapped for the card at this PCI address: vfio-pci has handed it over, behind an IOMMU, so
  // that it can use the process's own addresses.
  static bool IsPossible(const std::string& pci_address);

  // Not OK: it is not mapped, and payloads in it are to be copied. Of regions that overlap one is taken, if they are
  // not the same.
  absl::Status Lend(const LaneMemory& memory);
  void Return(const LaneMemory& memory);

  // What a buffer that refers to these bytes is to hold; nullptr: they are not there for the card.
  const PayloadLoans* Find(const uint8_t* data, size_t bytes) const;

  // Something given back is still mapped.
  bool has_returned() const { return !returned_.empty(); }
  // Of that, what no buffer refers to any more.
  void UnmapReturned();

 private:
  struct Pages {
    uintptr_t begin = 0, end = 0;
    uint32_t times = 1;  // lent
    PayloadLoans loans;
  };

  std::vector<Pages> lent_;  // by address; none overlap
  std::vector<Pages> returned_;
  mutable size_t last_ = 0;  // what was asked for last is asked for again
};

}  // namespace paceline
