#include "gpudirect/pci_distance.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace paceline::gpudirect {

PciPlace PciPlaceOf(const std::string& folder) {
  std::error_code error;
  const auto path = std::filesystem::canonical(folder, error);
  if (folder.empty() || error) return {};
  PciPlace place;
  for (const auto& part : path) {
    // A root complex is "pci" with its domain and bus; other folders that begin so have no colon.
    const std::string name = part.string();
    if (!place.way.empty() || (name.starts_with("pci") && name.find(':') != std::string::npos)) {
      place.way.push_back(name);
    }
  }
  std::ifstream file(path / "numa_node");
  int node = -1;
  if (file >> node) place.numa_node = node;
  return place;
}

PciPlace PciPlaceOf(const CudaDriver& driver, int gpu) {
  int handle = 0;
  char id[64] = "";
  if (driver.cuDeviceGet(&handle, gpu) != kCudaSuccess ||
      driver.cuDeviceGetPCIBusId(id, sizeof(id), handle) != kCudaSuccess) {
    return {};
  }
  return PciPlaceOf(absl::StrCat("/sys/bus/pci/devices/", absl::AsciiStrToLower(id)));
}

const char* PciLevelName(PciLevel level) {
  switch (level) {
    case PciLevel::kSwitch:
      return "same PCIe switch";
    case PciLevel::kRootComplex:
      return "same root complex";
    case PciLevel::kNumaNode:
      return "same NUMA node";
    case PciLevel::kSystem:
      return "across the system";
    case PciLevel::kUnknown:
      return "unknown";
  }
  return "?";
}

PciDistance DistanceBetween(const PciPlace& one, const PciPlace& other) {
  if (one.way.empty() || other.way.empty()) return {};
  const auto parting = std::mismatch(one.way.begin(), one.way.end(), other.way.begin(), other.way.end());
  const auto common = static_cast<size_t>(parting.first - one.way.begin());
  PciDistance distance{.hops = static_cast<uint32_t>(one.way.size() + other.way.size() - 2 * common)};
  if (common > 1) {
    distance.level = PciLevel::kSwitch;
  } else if (common == 1) {
    distance.level = PciLevel::kRootComplex;
  } else {
    const bool together = one.numa_node >= 0 && one.numa_node == other.numa_node;
    distance.level = together ? PciLevel::kNumaNode : PciLevel::kSystem;
  }
  return distance;
}

}  // namespace paceline::gpudirect
