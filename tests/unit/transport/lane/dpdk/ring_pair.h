// Two net_ring ports of DPDK where what one sends the other receives, for tests and benchmarks. They are made here, as
// by an application that uses DPDK itself, and found by lanes by their names. EAL runs.
#pragma once

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace paceline {

// Two ports back to back, for as long as the process lives.
struct RingPair {
  std::string a, b;  // names of the ports

  static RingPair Make(unsigned entries = 1024) {
    static int made = 0;
    const int number = made++;
    const auto ring = [&](const char* way) {
      return rte_ring_create(absl::StrCat("pl_test_", way, number).c_str(), entries, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
    };
    rte_ring* there = ring("there");
    rte_ring* back = ring("back");
    if (there == nullptr || back == nullptr) std::abort();
    const auto port = [&](const char* end, rte_ring* in, rte_ring* out) {
      const std::string name = absl::StrCat("pl_", end, number);
      const int id = rte_eth_from_rings(name.c_str(), &in, 1, &out, 1, 0);
      std::string full(RTE_ETH_NAME_MAX_LEN, '\0');
      if (id < 0 || rte_eth_dev_get_name_by_port(static_cast<uint16_t>(id), full.data()) != 0) std::abort();
      return std::string(full.c_str());
    };
    return {port("a", back, there), port("b", there, back)};
  }
};

}  // namespace paceline
