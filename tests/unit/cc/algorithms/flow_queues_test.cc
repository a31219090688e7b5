// FlowRing and FlowHeap against plain containers.
#include <algorithm>
#include <list>
#include <map>

#include "cc/algorithms/flow_heap.h"
#include "cc/algorithms/flow_ring.h"
#include "gtest/gtest.h"
#include "transport/base/random.h"

namespace paceline {
namespace {

TEST(FlowRing, MatchesAList) {
  FlowLinks links;
  links.Reserve(50);
  FlowRing ring(&links);
  std::list<uint32_t> model;
  Random random(1);
  for (int step = 0; step < 20000; ++step) {
    const auto flow = static_cast<uint32_t>(random.Below(50));
    const auto found = std::find(model.begin(), model.end(), flow);
    ASSERT_EQ(ring.Contains(flow), found != model.end());
    if (found != model.end()) {
      ring.Remove(flow);
      model.erase(found);
    } else if (random.Chance(0.7)) {
      ring.PushBack(flow);
      model.push_back(flow);
    } else if (!model.empty()) {
      ring.PopFront();
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
    ASSERT_EQ(ring.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(ring.front(), model.front());
    }
  }
}

TEST(FlowHeap, MatchesASortedMap) {
  FlowHeap heap;
  heap.Reserve(50);
  std::map<std::pair<int64_t, uint32_t>, bool> model;
  std::map<uint32_t, int64_t> times;
  Random random(2);
  for (int step = 0; step < 20000; ++step) {
    const auto flow = static_cast<uint32_t>(random.Below(50));
    ASSERT_EQ(heap.Contains(flow), times.count(flow) == 1);
    if (times.count(flow) == 1) {
      heap.Remove(flow);
      model.erase({times[flow], flow});
      times.erase(flow);
    } else {
      const auto time = static_cast<int64_t>(random.Below(100));
      heap.Push(flow, Time::FromNanos(time));
      model[{time, flow}] = true;
      times[flow] = time;
    }
    ASSERT_EQ(heap.size(), model.size());
    ASSERT_EQ(heap.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(heap.front(), model.begin()->first.second);
      ASSERT_EQ(heap.front_time().nanos(), model.begin()->first.first);
    } else {
      ASSERT_TRUE(heap.front_time().is_never());
    }
  }
}

}  // namespace
}  // namespace paceline
