#include "transport/lane/sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "transport/base/random.h"

namespace paceline::sim {
namespace {

TEST(EventQueueTest, SameDelaySharesALine) {
  EventQueue queue;
  const uint8_t a = queue.AddLine(100);
  EXPECT_EQ(queue.AddLine(100), a);
  EXPECT_NE(queue.AddLine(200), a);
  EXPECT_EQ(queue.line_delay(a), 100);
}

TEST(EventQueueTest, RefusesMoreLinesThanItHas) {
  EventQueue queue;
  for (size_t i = 0; i < EventQueue::kMaxLines; ++i) EXPECT_NE(queue.AddLine(static_cast<Picos>(i)), queue.kNoLine);
  EXPECT_EQ(queue.AddLine(1000), EventQueue::kNoLine);
  EXPECT_EQ(queue.AddLine(3), 3);
}

TEST(EventQueueTest, EqualTimesComeInOrderOfScheduling) {
  EventQueue queue;
  const uint8_t line = queue.AddLine(10);
  queue.PushAt(10, 1, 0, 0);
  queue.PushLine(line, 1, 1, 0);
  queue.PushAt(10, 1, 2, 0);
  queue.PushLine(line, 1, 3, 0);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(queue.Pop().index(), i);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.now(), 10);
}

TEST(EventQueueTest, CarriesKindIndexAndPacket) {
  EventQueue queue;
  queue.PushAt(5, 6, 0x0abcdef1, 77);
  EXPECT_EQ(queue.next_time(), 5);
  const Event event = queue.Pop();
  EXPECT_EQ(event.kind(), 6u);
  EXPECT_EQ(event.index(), 0x0abcdef1u);
  EXPECT_EQ(event.packet, 77u);
}

// Against a sorted list, with pushes between pops.
TEST(EventQueueTest, RandomOperationsComeOutInOrder) {
  Random random(7);
  EventQueue queue;
  const std::vector<uint8_t> lines = {queue.AddLine(0), queue.AddLine(17), queue.AddLine(1000)};
  std::vector<std::tuple<Picos, uint32_t>> expected;
  uint32_t number = 0;
  size_t popped = 0;
  for (int step = 0; step < 3000; ++step) {
    const uint64_t what = random.Below(6);
    if (what < 3) {
      queue.PushLine(lines[what], 0, number, 0);
      expected.emplace_back(queue.now() + queue.line_delay(lines[what]), number++);
    } else if (what == 3) {
      const Picos at = queue.now() + static_cast<Picos>(random.Below(500));
      queue.PushAt(at, 0, number, 0);
      expected.emplace_back(at, number++);
    } else if (!queue.empty()) {
      std::sort(expected.begin() + static_cast<ptrdiff_t>(popped), expected.end());
      const Event event = queue.Pop();
      EXPECT_EQ(std::make_tuple(event.time, event.index()), expected[popped]);
      ++popped;
    }
  }
  EXPECT_EQ(queue.size(), expected.size() - popped);
}

}  // namespace
}  // namespace paceline::sim
