// The arguments with which EAL, DPDK's base, is started.
//
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct DpdkMachine {
  bool has_hugepages = false;            // enough of them are free
  int core = 0;                          // one that this process may use
  std::vector<std::string> pci_devices;  // that lanes are to be made on, with what their drivers take
};

// What is chosen for an application that wants to notice nothing of DPDK: one core, no files, no other PCI device than
// those named, no telemetry socket, errors alone said. `own` are the user's arguments, separated by blanks: each takes
// the place of what is chosen for the same purpose. The first is the name of the program.
std::vector<std::string> EalArguments(const DpdkMachine& machine, std::string_view own);

}  // namespace paceline
