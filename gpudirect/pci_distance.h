// How near two devices of this machine are by PCI Express: of the cards that could move a GPU's memory the nearest does
// it fastest, and one that has to cross the processor may be several times slower.
//
// Thread rule: functions without state; control path only (they read sysfs).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "gpudirect/cuda_driver.h"

namespace paceline::gpudirect {

// Where a device is plugged in.
struct PciPlace {
  std::vector<std::string> way;  // from the root complex ("pci0000:3a") over bridges to the device; empty: not known
  int numa_node = -1;            // -1: not known
};

// `folder`: of the device in sysfs, or a link to it.
PciPlace PciPlaceOf(const std::string& folder);
// `gpu`: ordinal.
PciPlace PciPlaceOf(const CudaDriver& driver, int gpu);

// What two devices have in common; nearer ones first.
enum class PciLevel : uint8_t {
  kSwitch,       // a bridge or switch above both: what they exchange stays below it
  kRootComplex,  // no more than the processor's root complex
  kNumaNode,     // other root complexes of the same NUMA node
  kSystem,       // nothing: another NUMA node, or it is not known which
  kUnknown,      // one of them is no PCI device
};
const char* PciLevelName(PciLevel level);

struct PciDistance {
  PciLevel level = PciLevel::kUnknown;
  uint32_t hops = 0;  // links of PCIe between them

  friend auto operator<=>(const PciDistance&, const PciDistance&) = default;
};
PciDistance DistanceBetween(const PciPlace& one, const PciPlace& other);

}  // namespace paceline::gpudirect
