// The algorithms of collective operations as steps of ranks, with the bytes that they really move. Every step starts as
// soon as its own chunk has arrived, so that the chunks of a buffer follow each other through the steps; what reducing
// takes is left out.
//
//   ring        reduce-scatter: G - 1 steps, each rank passes a G-th of the buffer on; all-gather: the same. Together
//               2 (G - 1) / G of the buffer per rank (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
//               clusters of workstations", JPDC 2009).
//   tree        two binary trees with half of the buffer each, up and down again, such that a rank that has children in
//               one is a leaf of the other: each rank but the roots sends up and gets down the whole buffer, 2 (G - 1)
//               buffers in all (Sanders, Speck, Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and
//               scan", Parallel Computing 2009).
//   two_level   ring reduce-scatter inside each host, one ring all-reduce between the hosts for each rank of a host (so
//               one per HCA where ranks and HCAs are as many), ring all-gather inside each host.
//   chain       each rank passes chunks on to the next.
//   binomial    in round k the 2^k ranks that have the buffer send it to as many others.
//
// `ranks`: who takes part, in order. `ready`: by position, when it has its data; empty: all at the start. The result
// is, by position, when that rank is done.
// Thread rule: as RankGraph.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/study/workloads/rank_graph.h"

namespace paceline::tools {

struct Collective {
  std::vector<uint32_t> ranks;
  uint64_t bytes = 0;   // of the whole buffer, as each rank has it before or after
  uint32_t chunks = 1;  // that every piece which a step sends is cut into
  std::vector<Event> ready;

  Event ready_at(size_t position) const { return ready.empty() ? kAtStart : ready[position]; }
};

std::vector<Event> AddRingReduceScatter(RankGraph& graph, const Collective& what);
std::vector<Event> AddRingAllGather(RankGraph& graph, const Collective& what);
std::vector<Event> AddRingAllReduce(RankGraph& graph, const Collective& what);
std::vector<Event> AddTreeAllReduce(RankGraph& graph, const Collective& what);
// `ranks` by host, graph.ranks_per_host() of each.
std::vector<Event> AddTwoLevelAllReduce(RankGraph& graph, const Collective& what);
// From the first rank.
std::vector<Event> AddChainBroadcast(RankGraph& graph, const Collective& what);
std::vector<Event> AddBinomialBroadcast(RankGraph& graph, const Collective& what);

}  // namespace paceline::tools
