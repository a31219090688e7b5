// Lies over what ports of DPDK say of themselves and how they are configured, so that ports in memory pass for others:
// DPDK's functions of these names are replaced in programs that link this.
//
// Thread rule: one thread; one overlay at a time, and none touches a port while there is none.
#pragma once

#include <dlfcn.h>
#include <rte_ethdev.h>

namespace paceline {

class PortOverlay {
 public:
  PortOverlay() { current_ = this; }
  virtual ~PortOverlay() { current_ = nullptr; }
  PortOverlay(const PortOverlay&) = delete;
  PortOverlay& operator=(const PortOverlay&) = delete;
  static PortOverlay* current() { return current_; }

  // Changes what a port says of itself, which stands in `info`.
  virtual void OnInfo(rte_eth_dev_info& info) const = 0;
  // Takes out of `conf` what the port beneath does not know.
  virtual void OnConfigure(rte_eth_conf& conf) = 0;

 private:
  static inline PortOverlay* current_ = nullptr;
};

// DPDK's own function, behind the one that replaces it.
template <typename Function>
Function* BehindDpdk(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace paceline
