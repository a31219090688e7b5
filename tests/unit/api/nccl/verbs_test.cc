// The plugin over the verbs lane: cards in memory behind a libibverbs of the tests.
#include <dlfcn.h>

#include "tests/unit/api/nccl/plugin_fixture.h"

namespace paceline::nccl_test {
namespace {

constexpr int kEcnBits = 3;

class VerbsTest : public PluginFixture {
 protected:
  ~VerbsTest() override {
    for (const char* name : {"PACELINE_LANE", "PACELINE_HCA", "PACELINE_TRAFFIC_CLASS"}) unsetenv(name);
  }
  void Begin(const char* traffic_class) {
    void* library = dlopen(PACELINE_FAKE_IBVERBS, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    seen_ = reinterpret_cast<int (*)()>(dlsym(library, "fake_verbs_traffic_class"));
    ASSERT_NE(seen_, nullptr);
    setenv("PACELINE_LANE", "verbs", 1);
    setenv("PACELINE_HCA", "fake", 1);
    setenv("PACELINE_TRAFFIC_CLASS", traffic_class, 1);
    Start(0, nullptr);
  }
  int seen() const { return seen_() & ~kEcnBits; }

 private:
  int (*seen_)() = nullptr;
};

TEST_F(VerbsTest, TheTrafficClassReachesTheCard) {
  Begin("104");
  Connect(0, 1);
  EXPECT_EQ(seen(), 104);
}

}  // namespace
}  // namespace paceline::nccl_test
