// The devices that NCCL sees: the interfaces of this machine that PACELINE_HCA or PACELINE_BIND name, or a sensible
// choice; behind them, with higher numbers, the virtual devices that NCCL has made of several. With PACELINE_LANE=shm
// there is one device, without an interface.
//
// Thread rule: under the plugin's lock. Names and paths handed out live as long as the object.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "paceline/interfaces.h"
#include "paceline/options.h"
#include "paceline/status.h"

namespace paceline::nccl {

inline constexpr int kMostParts = 8;  // devices that one virtual device may have; as many ports as a context may have

struct Nic {
  std::string name;
  std::vector<std::string> bind;  // ContextOptions::bind
  std::string pci_path;           // empty: not a PCI device
  uint64_t guid = 0;
  int speed_mbps = 0;
  std::vector<int> parts;       // its own number, or those of the devices that it is made of
  bool open_to_others = false;  // other machines reach it
};

// Which of `interfaces` are used: those that `hca` (PACELINE_HCA) names; if it is empty, those with a card behind them,
// else virtual ones, else the loopback. Only usable ones. Fails with the reason where none is left.
api::Result<std::vector<api::Interface>> ChooseInterfaces(const std::vector<api::Interface>& interfaces,
                                                          const std::string& hca);

class Nics {
 public:
  // `options`: lane, bind and link_gbps count. `hca`: PACELINE_HCA, empty if not set.
  static api::Result<Nics> Find(const api::ContextOptions& options, const std::string& hca);

  int count() const { return static_cast<int>(nics_.size()); }
  // nullptr: no such device.
  const Nic* Get(int number) const;
  // Makes a virtual device; its number. Parts are physical devices, each at most once.
  api::Result<int> Merge(const std::vector<int>& parts);

 private:
  std::deque<Nic> nics_;  // which keeps their places
  int physical_ = 0;
};

}  // namespace paceline::nccl
