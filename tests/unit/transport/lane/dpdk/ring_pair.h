// Two net_ring ports of DPDK where what one sends the other receives, for tests and benchmarks. They are made here, as
// by an application that uses DPDK itself, and found by lanes by their names. EAL runs.
#pragma once

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <array>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace paceline {

// Two ports back to back, for as long as the process lives.
struct RingPair {
  static constexpr unsigned kMostQueues = 4;
  std::string a, b;  // names of the ports

  // `queues`: of each port in each direction, a ring each; at most kMostQueues.
  static RingPair Make(unsigned entries = 1024, unsigned queues = 1) {
    static int made = 0;
    const int number = made++;
    using Rings = std::array<rte_ring*, kMostQueues>;
    const auto make_rings = [&](const char* way) {
      Rings rings{};
      for (unsigned i = 0; i < queues; ++i) {
        rings[i] = rte_ring_create(absl::StrCat("pl_test_", way, number, "_", i).c_str(), entries, 0,
                                   RING_F_SP_ENQ | RING_F_SC_DEQ);
        if (rings[i] == nullptr) std::abort();
      }
      return rings;
    };
    Rings there = make_rings("there"), back = make_rings("back");
    const auto port = [&](const char* end, Rings& in, Rings& out) {
      const std::string name = absl::StrCat("pl_", end, number);
      const int id = rte_eth_from_rings(name.c_str(), in.data(), queues, out.data(), queues, 0);
      std::string full(RTE_ETH_NAME_MAX_LEN, '\0');
      if (id < 0 || rte_eth_dev_get_name_by_port(static_cast<uint16_t>(id), full.data()) != 0) std::abort();
      return std::string(full.c_str());
    };
    return {port("a", back, there), port("b", there, back)};
  }
};

}  // namespace paceline
