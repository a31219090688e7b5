// The plugin over the verbs lane: cards in memory behind a libibverbs of the tests.
#include <dlfcn.h>

#include <utility>

#include "tests/unit/api/nccl/plugin_fixture.h"

namespace paceline::nccl_test {
namespace {

constexpr int kEcnBits = 3;

class VerbsTest : public PluginFixture {
 protected:
  void SetUp() override {
    library_ = dlopen(PACELINE_FAKE_IBVERBS, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    const std::lock_guard lock(log_mutex);
    logged.clear();
  }
  void Set(const std::vector<std::pair<const char*, const char*>>& variables) {
    for (const auto& [name, value] : variables) PluginFixture::Set(name, value);
  }
  int traffic_class() const {
    return reinterpret_cast<int (*)()>(dlsym(library_, "fake_verbs_traffic_class"))() & ~kEcnBits;
  }
  // Initialises the plugin, which fails.
  void ExpectRefused() {
    const auto net = Net::Load(PACELINE_NCCL_PLUGIN, 0);
    ASSERT_TRUE(net.ok()) << net.status();
    void* communicator = nullptr;
    EXPECT_NE((*net)->Init(&communicator, 1, abi::kUndefined, Record, nullptr), Result::kSuccess);
  }

 private:
  void* library_ = nullptr;
};

TEST_F(VerbsTest, TheTrafficClassReachesTheCard) {
  Set({{"PACELINE_LANE", "verbs"}, {"PACELINE_HCA", "fake"}, {"PACELINE_TRAFFIC_CLASS", "104"}});
  Start(0, nullptr);
  Connect(0, 1);
  EXPECT_EQ(traffic_class(), 104);
}

TEST_F(VerbsTest, CardsThatAreNotUsedAreNamed) {
  Set({{"PACELINE_HCA", "=lo"}});
  Start(0, nullptr);
  EXPECT_TRUE(WasLogged("RDMA cards are not used, PACELINE_LANE=verbs does: fake0:1, fake1:1"));
}

TEST_F(VerbsTest, NobodyIsToldOfCardsWhoHasChosenALane) {
  Set({{"PACELINE_HCA", "=lo"}, {"PACELINE_LANE", "udp"}});
  Start(0, nullptr);
  EXPECT_FALSE(WasLogged("fake0"));
}

// As whoever knows NCCL_IB_HCA writes it first.
TEST_F(VerbsTest, WhoNamesACardAndNoLaneIsToldTheLane) {
  Set({{"PACELINE_HCA", "fake0"}});
  ExpectRefused();
  EXPECT_TRUE(WasLogged("; with PACELINE_LANE=verbs: fake0:1, fake1:1")) << LastLog();
}

TEST_F(VerbsTest, WhoBindsToACardAndNamesNoLaneIsToldTheLane) {
  Set({{"PACELINE_BIND", "fake0"}});
  Start(0, nullptr);
  uint8_t handle[abi::kHandleBytes];
  void* listener = nullptr;
  EXPECT_NE(net_->Listen(communicator_, 0, handle, &listener), Result::kSuccess);
  EXPECT_TRUE(WasLogged("\"fake0\" is an RDMA card, which lane \"verbs\" drives")) << LastLog();
}

}  // namespace
}  // namespace paceline::nccl_test
