#include "transport/lane/dpdk/dpdk_eal_arguments.h"

#include <gtest/gtest.h>

#include "absl/strings/str_join.h"

namespace paceline {
namespace {

std::string Text(const DpdkMachine& machine, std::string_view own) {
  return absl::StrJoin(EalArguments(machine, own), " ");
}

TEST(DpdkEalArguments, WithoutHugepagesOrCardsNothingIsNeeded) {
  EXPECT_EQ(Text({}, ""),
            "paceline --lcores 0@0 --no-huge -m 256 --no-shconf --no-telemetry --log-level=*:error --no-pci");
}

TEST(DpdkEalArguments, HugepagesAreUsedWhereTheyAreAndCardsAreAllowedOneByOne) {
  DpdkMachine machine;
  machine.has_hugepages = true;
  machine.core = 200;  // of more than DPDK has lcores
  machine.pci_devices = {"0000:3b:00.0,mprq_en=1", "0000:af:00.1"};
  EXPECT_EQ(
      Text(machine, ""),
      "paceline --lcores 0@200 --in-memory --no-shconf --no-telemetry --log-level=*:error -a 0000:3b:00.0,mprq_en=1 -a "
      "0000:af:00.1");
}

TEST(DpdkEalArguments, WhatTheUserGivesTakesThePlaceOfWhatHasItsPurpose) {
  EXPECT_EQ(Text({}, " --lcores=1@0   -m 512 --log-level=*:debug "),
            "paceline --no-huge --no-shconf --no-telemetry --no-pci --lcores=1@0 -m 512 --log-level=*:debug");
  EXPECT_EQ(Text({}, "-l1 --file-prefix=job --telemetry -a0000:3b:00.0"),
            "paceline --log-level=*:error -l1 --file-prefix=job --telemetry -a0000:3b:00.0");
  EXPECT_EQ(
      Text({}, "--legacy-memory"),  // not the name of another
      "paceline --lcores 0@0 --no-huge -m 256 --no-shconf --no-telemetry --log-level=*:error --no-pci --legacy-memory");
}

}  // namespace
}  // namespace paceline
