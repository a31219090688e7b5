// The devices that NCCL sees: what a context of the lane can be bound to (network interfaces; with PACELINE_LANE=verbs
// ports of RDMA cards) and PACELINE_HCA or PACELINE_BIND name, or a sensible choice; behind them, with higher numbers,
// the virtual devices that NCCL has made of several. With PACELINE_LANE=shm there is one device, without an interface.
//
// Thread rule: under the plugin's lock. Names and paths handed out live as long as the object.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "gpudirect/registration_path.h"
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
  int port = 0;  // of its card's, from 1; 0: they are not numbered
  int speed_mbps = 0;
  std::vector<int> parts;         // its own number, or those of the devices that it is made of
  bool open_to_others = false;    // other machines reach it
  gpudirect::CardAbilities card;  // of all its parts
};

// Which of `interfaces` are used: those that `hca` (PACELINE_HCA) names; if it is empty, those with a card behind them,
// else virtual ones, else the loopback. Only usable ones. Fails with the reason where none is left.
api::Result<std::vector<api::Interface>> ChooseInterfaces(const std::vector<api::Interface>& interfaces,
                                                          const std::string& hca);

// The ports of RDMA cards that PACELINE_LANE=verbs would drive, by name, comma separated; empty: there are none.
std::string UsableCards();

// What an entry of PACELINE_BIND names: an interface, a port of an RDMA card, or, where it names the card, the port
// that a context would take. nullptr: an address, or nothing that is here.
const api::Interface* Named(const std::vector<api::Interface>& interfaces, const std::string& bind);

// The device of this number. `stated_gbps`: PACELINE_LINK_GBPS; 0: as the driver says.
Nic NicOf(const api::Interface& interface, int number, double stated_gbps);

class Nics {
 public:
  // `options`: lane, bind and link_gbps count. `hca`: PACELINE_HCA, empty if not set.
  static api::Result<Nics> Find(const api::ContextOptions& options, const std::string& hca);

  int count() const { return static_cast<int>(nics_.size()); }
  // nullptr: no such device.
  const Nic* Get(int number) const;
  // Makes a virtual device; its number. Parts are physical devices, each at most once.
  api::Result<int> Merge(const std::vector<int>& parts);
  // What the virtual devices are made of, in their order; and to have none.
  std::vector<std::vector<int>> Merged() const;
  void DropMerged() { nics_.resize(static_cast<size_t>(physical_)); }

 private:
  std::deque<Nic> nics_;  // which keeps their places
  int physical_ = 0;
};

}  // namespace paceline::nccl
