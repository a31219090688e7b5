#include "tools/study/link_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "transport/base/random.h"

namespace paceline::tools {
namespace {

TEST(LinkScheduleTest, NothingTakesNoTime) { EXPECT_EQ(EarliestEnd({}), 0); }

TEST(LinkScheduleTest, OneTransmissionTakesItsHeadServiceAndTail) {
  const std::vector<Transmission> one = {{.head = 5, .service = 7, .tail = 11}};
  EXPECT_EQ(EarliestEnd(one), 23);
}

TEST(LinkScheduleTest, AnEarlyShortTailFillsTheLinkFirstAndLast) {
  // From 1 to 9 the first, until the second is there, which has the longer tail; the rest of the first behind it.
  const std::vector<Transmission> two = {{.head = 1, .service = 20, .tail = 2}, {.head = 9, .service = 10, .tail = 8}};
  EXPECT_EQ(EarliestEnd(two), 1 + 20 + 10 + 2);
}

TEST(LinkScheduleTest, ALinkWaitsForALateTransmission) {
  const std::vector<Transmission> two = {{.head = 0, .service = 10, .tail = 50},
                                         {.head = 100, .service = 10, .tail = 3}};
  EXPECT_EQ(EarliestEnd(two), 113);
}

TEST(LinkScheduleTest, IsTheLargestBoundOfAnySet) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Transmission> all(1 + random.Below(7));
    for (Transmission& one : all) {
      one.head = static_cast<sim::Picos>(random.Below(40));
      one.service = static_cast<double>(1 + random.Below(20));
      one.tail = static_cast<sim::Picos>(random.Below(40));
    }
    std::sort(all.begin(), all.end(), [](const Transmission& a, const Transmission& b) { return a.head < b.head; });
    sim::Picos largest = 0;
    for (unsigned set = 1; set < 1u << all.size(); ++set) {
      sim::Picos head = std::numeric_limits<sim::Picos>::max(), tail = head, service = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        head = std::min(head, all[i].head);
        tail = std::min(tail, all[i].tail);
        service += static_cast<sim::Picos>(all[i].service);
      }
      largest = std::max(largest, head + service + tail);
    }
    ASSERT_EQ(EarliestEnd(all), largest) << "round " << round;
  }
}

}  // namespace
}  // namespace paceline::tools
