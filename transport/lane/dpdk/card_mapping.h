// How memory is mapped for a card, so that it reads payloads where they lie (DpdkMemory).
//
// Thread rule: a value. The device is DPDK's, and has to be there as long as something is mapped.
#pragma once

struct rte_device;

namespace paceline {

struct CardMapping {
  rte_device* device = nullptr;  // by its driver; nullptr: in the table that all cards of vfio-pci share
  bool takes_devices = false;    // that of GPUs too
};

}  // namespace paceline
