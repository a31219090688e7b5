// Tree and chain algorithms, see collectives.h.
#include <optional>

#include "tools/study/workloads/collectives.h"

namespace paceline::tools {
namespace {

// The binary tree whose levels are the numbers of trailing zeros: odd positions are leaves, position 0 is the root.
std::optional<size_t> ParentOf(size_t position, size_t size) {
  if (position == 0) return std::nullopt;
  const size_t bit = position & (~position + 1);
  const size_t above = (position ^ bit) | (bit << 1);
  return above < size ? above : position ^ bit;
}

// The positions of the second tree: mirrored, or shifted where mirroring would keep odd ones odd.
size_t InSecondTree(size_t position, size_t size) {
  return size % 2 == 0 ? size - 1 - position : (position + 1) % size;
}

}  // namespace

std::vector<Event> AddTreeAllReduce(RankGraph& graph, const Collective& what) {
  const size_t size = what.ranks.size();
  std::vector<Event> done;
  if (size < 2) return {what.ready_at(0)};
  for (size_t p = 0; p < size; ++p) done.push_back(graph.NewEvent(2 * what.chunks));
  for (size_t tree = 0; tree < 2; ++tree) {
    const auto place = [&](size_t p) { return tree == 0 ? p : InSecondTree(p, size); };
    std::vector<std::vector<size_t>> children(size);
    for (size_t p = 0; p < size; ++p) {
      if (const auto parent = ParentOf(p, size)) children[*parent].push_back(p);
    }
    for (uint32_t chunk = 0; chunk < what.chunks; ++chunk) {
      const uint64_t bytes = PartOf(PartOf(what.bytes, 2, tree), what.chunks, chunk);
      std::vector<Event> reduced, arrived(size);
      for (size_t p = 0; p < size; ++p) {
        const Event ready = what.ready_at(place(p));
        reduced.push_back(children[p].empty() ? ready : graph.NewEvent(1 + static_cast<uint32_t>(children[p].size())));
        if (reduced[p] != ready) graph.Link(ready, reduced[p]);
      }
      for (size_t p = 1; p < size; ++p) {
        const size_t parent = *ParentOf(p, size);
        graph.Send(what.ranks[place(p)], what.ranks[place(parent)], bytes, reduced[p], reduced[parent]);
      }
      arrived[0] = reduced[0];
      for (size_t p = 1; p < size; ++p) arrived[p] = graph.NewEvent(1);
      for (size_t p = 0; p < size; ++p) {
        for (size_t child : children[p]) {
          graph.Send(what.ranks[place(p)], what.ranks[place(child)], bytes, arrived[p], arrived[child]);
        }
        graph.Link(arrived[p], done[place(p)]);
      }
    }
  }
  return done;
}

std::vector<Event> AddChainBroadcast(RankGraph& graph, const Collective& what) {
  const size_t size = what.ranks.size();
  std::vector<Event> done = {what.ready_at(0)};
  for (size_t p = 1; p < size; ++p) done.push_back(graph.NewEvent(what.chunks));
  for (uint32_t chunk = 0; chunk < what.chunks; ++chunk) {
    Event arrived = what.ready_at(0);
    for (size_t p = 1; p < size; ++p) {
      arrived = graph.Send(what.ranks[p - 1], what.ranks[p], PartOf(what.bytes, what.chunks, chunk), arrived);
      graph.Link(arrived, done[p]);
    }
  }
  return done;
}

std::vector<Event> AddBinomialBroadcast(RankGraph& graph, const Collective& what) {
  const size_t size = what.ranks.size();
  std::vector<Event> done = {what.ready_at(0)};
  for (size_t p = 1; p < size; ++p) done.push_back(graph.NewEvent(what.chunks));
  for (uint32_t chunk = 0; chunk < what.chunks; ++chunk) {
    std::vector<Event> arrived = {what.ready_at(0)};
    for (size_t have = 1; have < size; have *= 2) {
      for (size_t p = 0; p < have && have + p < size; ++p) {
        arrived.push_back(
            graph.Send(what.ranks[p], what.ranks[have + p], PartOf(what.bytes, what.chunks, chunk), arrived[p]));
        graph.Link(arrived.back(), done[have + p]);
      }
    }
  }
  return done;
}

}  // namespace paceline::tools
