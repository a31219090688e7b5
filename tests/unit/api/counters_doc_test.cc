// docs/counters.md lists every counter with the unit and the meaning that the source gives it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "paceline/context.h"

namespace paceline::api {
namespace {

using ::testing::HasSubstr;

TEST(CountersDoc, ListsEveryCounter) {
  std::ifstream file(PACELINE_SOURCE_DIR "/docs/counters.md");
  std::stringstream text;
  text << file.rdbuf();
  ContextOptions options;
  options.impair = "loss=1%";
  const auto context = Context::Create(options);
  ASSERT_TRUE(context.ok()) << context.status().message();
  for (const Counter& counter : context->counters()) {
    std::string name = counter.name;
    for (const std::string prefix : {"port0_", "port1_", "impair_"}) {
      if (name.rfind(prefix, 0) == 0) name = name.substr(prefix.size());
    }
    EXPECT_THAT(text.str(), HasSubstr("| `" + name + "` | " + counter.unit + " | " + counter.meaning + " |"));
  }
}

}  // namespace
}  // namespace paceline::api
