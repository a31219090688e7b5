#include "gpudirect/pci_distance.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/gpudirect/fake_gpu.h"

namespace paceline::gpudirect {
namespace {

// A machine of two NUMA nodes, as sysfs shows it. All names are in small letters, as the kernel has them.
class PciDistanceTest : public ::testing::Test {
 protected:
  PciDistanceTest() : root_("/tmp/pci_distance_test." + std::to_string(getpid())) {
    Add("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:04.0/0000:3d:00.0", 0);
    Add("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/0000:3e:00.0", 0);
    Add("pci0000:3a/0000:3a:02.0/0000:40:00.0", 0);
    Add("pci0000:50/0000:50:00.0/0000:51:00.0", 0);
    Add("pci0000:ba/0000:ba:00.0/0000:bb:00.0", 1);
    Add("pci0000:ca/0000:ca:00.0/0000:cb:00.0", -1);
    std::filesystem::create_directories(root_ / "platform/other");
  }
  ~PciDistanceTest() override { std::filesystem::remove_all(root_); }
  void Add(const std::string& device, int node) {
    std::filesystem::create_directories(root_ / device);
    std::ofstream(root_ / device / "numa_node") << node << "\n";
    std::filesystem::create_symlink(root_ / device, root_ / device.substr(device.size() - 12));
  }
  std::string At(const std::string& id) const { return root_ / id; }
  PciDistance Between(const std::string& one, const std::string& other) const {
    return DistanceBetween(PciPlaceOf(At(one)), PciPlaceOf(At(other)));
  }
  const std::filesystem::path root_;
};

TEST_F(PciDistanceTest, IsByWhatTwoDevicesHaveInCommon) {
  const std::string gpu = "0000:3d:00.0";
  EXPECT_EQ(Between(gpu, "0000:3e:00.0"), (PciDistance{PciLevel::kSwitch, 4}));
  EXPECT_EQ(Between(gpu, "0000:40:00.0"), (PciDistance{PciLevel::kRootComplex, 6}));
  EXPECT_EQ(Between(gpu, "0000:51:00.0"), (PciDistance{PciLevel::kNumaNode, 8}));
  EXPECT_EQ(Between(gpu, "0000:bb:00.0"), (PciDistance{PciLevel::kSystem, 8}));
  EXPECT_EQ(Between("0000:cb:00.0", "0000:51:00.0").level, PciLevel::kSystem) << "the node of one is not known";
  EXPECT_EQ(Between(gpu, "platform/other").level, PciLevel::kUnknown);
  EXPECT_EQ(Between(gpu, "not there").level, PciLevel::kUnknown);
  EXPECT_EQ(DistanceBetween(PciPlaceOf(""), PciPlaceOf(At(gpu))).level, PciLevel::kUnknown);
}

TEST_F(PciDistanceTest, TheNearerIsTheSmaller) {
  const std::string gpu = "0000:3d:00.0";
  EXPECT_LT(Between(gpu, "0000:3e:00.0"), Between(gpu, "0000:40:00.0"));
  EXPECT_LT(Between(gpu, "0000:40:00.0"), Between(gpu, "0000:51:00.0"));
  EXPECT_LT(Between(gpu, "0000:51:00.0"), Between(gpu, "0000:bb:00.0"));
  EXPECT_LT(Between(gpu, "0000:bb:00.0"), Between(gpu, "not there"));
  EXPECT_LT((PciDistance{PciLevel::kSwitch, 2}), Between(gpu, "0000:3e:00.0"));
}

TEST_F(PciDistanceTest, TheDriverSaysWhereAGpuIs) {
  if (!std::filesystem::exists("/sys/bus/pci/devices")) GTEST_SKIP() << "no PCI on this machine";
  // From the folder that the identifier is looked for in to the one of this test; the driver writes capital letters.
  setenv("FAKE_CUDA_PCI_BUS_ID", ("../../../.." + At("0000:3D:00.0")).c_str(), 1);
  const PciPlace place = PciPlaceOf(Gpu().driver(), 0);
  unsetenv("FAKE_CUDA_PCI_BUS_ID");
  ASSERT_EQ(place.way.size(), 5u);
  EXPECT_EQ(place.way.back(), "0000:3d:00.0");
  EXPECT_EQ(place.numa_node, 0);
  Gpu().fail("cuDeviceGetPCIBusId", 1, 1);
  EXPECT_TRUE(PciPlaceOf(Gpu().driver(), 0).way.empty());
}

}  // namespace
}  // namespace paceline::gpudirect
