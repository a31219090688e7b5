// Holds the tree to the rules of the house, and proves on planted breaches that each rule can fail.
#include "tests/unit/tidy/tree_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const SourceTree& Tree() {
  static const SourceTree tree = LoadSourceTree(PACELINE_SOURCE_DIR);
  return tree;
}

Complaints CheckAll(Complaints (*rule)(const SourceFile&)) {
  Complaints all;
  for (const SourceFile& file : Tree().sources) {
    const Complaints some = rule(file);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string Report(const Complaints& complaints) {
  std::string report;
  for (const std::string& complaint : complaints) report += "\n  " + complaint;
  return report;
}

#define EXPECT_IN_ORDER(complaints)                             \
  do {                                                          \
    const Complaints found = (complaints);                      \
    EXPECT_TRUE(found.empty()) << "breaches:" << Report(found); \
  } while (false)

TEST(TreeRules, TreeIsFound) { EXPECT_GT(Tree().sources.size(), 20U); }
TEST(TreeRules, Layers) { EXPECT_IN_ORDER(CheckAll(CheckLayers)); }
TEST(TreeRules, Purity) { EXPECT_IN_ORDER(CheckAll(CheckPurity)); }
TEST(TreeRules, Conditionals) { EXPECT_IN_ORDER(CheckAll(CheckConditionals)); }
TEST(TreeRules, Shape) { EXPECT_IN_ORDER(CheckAll(CheckShape)); }
TEST(TreeRules, DeadFiles) { EXPECT_IN_ORDER(CheckDeadFiles(Tree())); }

Complaints LayersOf(const std::string& path, const std::string& include) {
  return CheckLayers(ParseSource(path, "#include \"" + include + "\"\n"));
}

TEST(PlantedBreach, Layers) {
  EXPECT_THAT(LayersOf("transport/base/time.h", "transport/wire/packet.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("transport/core/endpoint.cc", "transport/lane/udp/udp_lane.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("transport/core/endpoint.cc", "cc/algorithms/tita.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("transport/lane/udp/udp_lane.cc", "transport/core/endpoint.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("transport/lane/udp/udp_lane.cc", "transport/lane/sim/fabric.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("transport/lane/ethernet/frame.cc", "transport/lane/udp/udp_address.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("transport/lane/xdp/xdp_lane.cc", "transport/lane/verbs/verbs_lane.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("transport/engine/engine.cc", "transport/lane/udp/udp_lane.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("cc/samples.h", "cc/algorithms/tita.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("api/cpp/context.cc", "tests/support/network.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("api/cpp/paceline/context.h", "transport/engine/engine.h"), SizeIs(1));
  EXPECT_THAT(LayersOf("elsewhere/new.cc", "transport/base/time.h"), SizeIs(1));
}

TEST(PlantedBreach, LayersLetThroughWhatIsAllowed) {
  EXPECT_THAT(LayersOf("transport/core/endpoint.cc", "cc/registry.h"), IsEmpty());
  EXPECT_THAT(LayersOf("transport/core/endpoint.cc", "transport/lane/lane.h"), IsEmpty());
  EXPECT_THAT(LayersOf("transport/lane/udp/udp_lane.cc", "transport/lane/udp/udp_socket.h"), IsEmpty());
  EXPECT_THAT(LayersOf("transport/lane/xdp/xdp_lane.cc", "transport/lane/ethernet/frame.h"), IsEmpty());
  EXPECT_THAT(LayersOf("transport/lane/dpdk/dpdk_lane.cc", "transport/lane/udp/udp_address.h"), IsEmpty());
  EXPECT_THAT(LayersOf("transport/engine/lane_factory.cc", "transport/lane/udp/udp_lane.h"), IsEmpty());
  EXPECT_THAT(LayersOf("cc/registry.cc", "cc/algorithms/tita.h"), IsEmpty());
  EXPECT_THAT(LayersOf("transport/core/endpoint.cc", "absl/status/status.h"), IsEmpty());
}

Complaints PurityOf(const std::string& text) { return CheckPurity(ParseSource("transport/core/planted.cc", text)); }

TEST(PlantedBreach, Purity) {
  EXPECT_THAT(PurityOf("auto now = std::chrono::steady_clock::now();\n"), SizeIs(1));
  EXPECT_THAT(PurityOf("#include <thread>\n"), SizeIs(1));
  EXPECT_THAT(PurityOf("std::shared_mutex lock;\n"), SizeIs(1));
  EXPECT_THAT(PurityOf("#include <sys/socket.h>\n"), SizeIs(1));
  EXPECT_THAT(PurityOf("  int x = rand();\n"), SizeIs(1));
  EXPECT_THAT(PurityOf("  const char* debug = getenv(\"DEBUG\");\n"), SizeIs(1));
  EXPECT_THAT(PurityOf("  printf(\"here\");\n"), SizeIs(1));
  EXPECT_THAT(PurityOf("  seed = time(nullptr);\n"), SizeIs(1));
}

TEST(PlantedBreach, PurityLetsThroughWhatIsAllowed) {
  EXPECT_THAT(PurityOf("// calls rand() and std::thread\n"), IsEmpty());
  EXPECT_THAT(PurityOf("/* printf( \n getenv( */ int a;\n"), IsEmpty());
  EXPECT_THAT(PurityOf("const char* kText = \"rand()\";\n"), IsEmpty());
  EXPECT_THAT(PurityOf("auto text = R\"(getenv(\"x\"))\";\n"), IsEmpty());
  EXPECT_THAT(PurityOf("  peer.socket(3); limits->rand(); Time time() const;\n"), IsEmpty());
  EXPECT_THAT(PurityOf("  const int big = 1'000'000; // it's rand()\n"), IsEmpty());
  EXPECT_THAT(CheckPurity(ParseSource("transport/engine/clock.cc", "#include <thread>\n")), IsEmpty());
  EXPECT_THAT(CheckPurity(ParseSource("transport/crypto/library_context.cc", "#include <mutex>\n")), IsEmpty());
  EXPECT_THAT(CheckPurity(ParseSource("transport/crypto/aead.cc", "#include <mutex>\n")), SizeIs(1));
}

TEST(PlantedBreach, Conditionals) {
  EXPECT_THAT(CheckConditionals(ParseSource("tools/a.cc", "#ifdef HAVE_VERBS\n#endif\n")), SizeIs(1));
  EXPECT_THAT(CheckConditionals(ParseSource("tools/a.cc", "#if __has_include(<x.h>)\n#endif\n")), SizeIs(1));
  EXPECT_THAT(CheckConditionals(ParseSource("api/c/a.h", "#ifdef __cplusplus\n#endif\n")), IsEmpty());
}

TEST(PlantedBreach, Shape) {
  std::string long_text = "// What it is for.\n#pragma once\n";
  for (int i = 0; i < 1000; ++i) long_text += "int a;\n";
  EXPECT_THAT(CheckShape(ParseSource("tools/a.h", long_text)), ElementsAre(HasSubstr("1002 lines")));
  EXPECT_THAT(CheckShape(ParseSource("tools/a.h", "// What it is for.\nint a;\n")),
              ElementsAre(HasSubstr("#pragma once")));
  EXPECT_THAT(CheckShape(ParseSource("tools/a.h", "#pragma once\nint a;\n")), ElementsAre(HasSubstr("what it is for")));
  EXPECT_THAT(CheckShape(ParseSource("tools/a.cc", std::string("int a;  // TO") + "DO: more\n")), SizeIs(1));
  EXPECT_THAT(CheckShape(ParseSource("tools/a.cc", "int a;\n")), IsEmpty());
}

TEST(PlantedBreach, DeadFiles) {
  SourceTree tree;
  tree.build_files.push_back(
      ParseSource("tools/CMakeLists.txt", "add_library(x used.cc sub/deep.cc ${name}_test.cc)\n"));
  tree.sources.push_back(ParseSource("tools/used.cc", "#include \"tools/used.h\"\n"));
  tree.sources.push_back(ParseSource("tools/sub/deep.cc", ""));
  tree.sources.push_back(ParseSource("tools/loop_test.cc", ""));
  tree.sources.push_back(ParseSource("tools/used.h", ""));
  EXPECT_THAT(CheckDeadFiles(tree), IsEmpty());
  tree.sources.push_back(ParseSource("tools/dead.cc", ""));
  tree.sources.push_back(ParseSource("tools/dead.h", "#include \"tools/dead.h\"\n"));
  EXPECT_THAT(CheckDeadFiles(tree), ElementsAre(HasSubstr("dead.cc"), HasSubstr("dead.h")));
}

}  // namespace
}  // namespace paceline::tidy
