#include "api/cpp/src/convert.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline::api {
namespace {

TEST(CloseCodes, AreTheCoresReasons) {
  for (uint16_t number = 1; number <= static_cast<uint16_t>(CloseReason::kRefusedNoRoute); ++number) {
    const auto reason = static_cast<CloseReason>(number);
    EXPECT_EQ(FromCore(reason), static_cast<CloseCode>(number));
    EXPECT_EQ(CloseCodeName(FromCore(reason)), std::string(CloseReasonName(reason)));
  }
}

// Whatever a peer's refusal says.
TEST(CloseCodes, AConnectionThatIsOverHasOne) {
  EXPECT_EQ(FromCore(CloseReason::kNone), CloseCode::kRefusedByApplication);
}

}  // namespace
}  // namespace paceline::api
