// Ring algorithms, see collectives.h.
#include "tools/study/workloads/collectives.h"

namespace paceline::tools {
namespace {

// In step s the rank at position p sends shard p - s to position p + 1.
std::vector<Event> AddRing(RankGraph& graph, const Collective& what, size_t steps) {
  const size_t size = what.ranks.size();
  std::vector<Event> done;
  if (size < 2) return {what.ready_at(0)};
  for (size_t p = 0; p < size; ++p) done.push_back(graph.NewEvent(static_cast<uint32_t>(steps * what.chunks)));
  std::vector<std::vector<Event>> arrived(size), next(size, std::vector<Event>(what.chunks));
  for (size_t p = 0; p < size; ++p) arrived[p].assign(what.chunks, what.ready_at(p));
  for (size_t step = 0; step < steps; ++step) {
    for (size_t p = 0; p < size; ++p) {
      const size_t to = (p + 1) % size;
      const uint64_t shard = PartOf(what.bytes, size, (p + size * 2 - step) % size);
      for (uint32_t chunk = 0; chunk < what.chunks; ++chunk) {
        const uint64_t bytes = PartOf(shard, what.chunks, chunk);
        next[to][chunk] = graph.Send(what.ranks[p], what.ranks[to], bytes, arrived[p][chunk]);
        graph.Link(next[to][chunk], done[to]);
      }
    }
    arrived.swap(next);
  }
  return done;
}

}  // namespace

std::vector<Event> AddRingReduceScatter(RankGraph& graph, const Collective& what) {
  return AddRing(graph, what, what.ranks.size() - 1);
}

std::vector<Event> AddRingAllGather(RankGraph& graph, const Collective& what) {
  return AddRing(graph, what, what.ranks.size() - 1);
}

std::vector<Event> AddRingAllReduce(RankGraph& graph, const Collective& what) {
  return AddRing(graph, what, 2 * (what.ranks.size() - 1));
}

std::vector<Event> AddTwoLevelAllReduce(RankGraph& graph, const Collective& what) {
  const uint32_t per_host = graph.ranks_per_host();
  const size_t hosts = what.ranks.size() / per_host;
  std::vector<Event> ready(what.ranks.size()), done(what.ranks.size());
  const auto inside = [&](size_t host, auto add, std::vector<Event>& before, std::vector<Event>& after) {
    Collective part = {.bytes = what.bytes};  // in whole shards: chunks would each have NVLink for themselves
    for (size_t local = 0; local < per_host; ++local) {
      part.ranks.push_back(what.ranks[host * per_host + local]);
      part.ready.push_back(before[host * per_host + local]);
    }
    const std::vector<Event> events = add(graph, part);
    for (size_t local = 0; local < per_host; ++local) after[host * per_host + local] = events[local];
  };
  for (size_t i = 0; i < ready.size(); ++i) ready[i] = what.ready_at(i);
  for (size_t host = 0; host < hosts; ++host) inside(host, AddRingReduceScatter, ready, done);
  for (size_t local = 0; local < per_host; ++local) {
    Collective ring = {.bytes = PartOf(what.bytes, per_host, local), .chunks = what.chunks};
    for (size_t host = 0; host < hosts; ++host) {
      ring.ranks.push_back(what.ranks[host * per_host + local]);
      ring.ready.push_back(done[host * per_host + local]);
    }
    const std::vector<Event> events = AddRingAllReduce(graph, ring);
    for (size_t host = 0; host < hosts; ++host) ready[host * per_host + local] = events[host];
  }
  for (size_t host = 0; host < hosts; ++host) inside(host, AddRingAllGather, ready, done);
  return done;
}

}  // namespace paceline::tools
