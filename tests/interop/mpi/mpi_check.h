// What the parts of the program share: where it runs, and a check that ends the job with a message.
//
// Thread rule: one thread per process.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace paceline::mpi_check {

inline int Rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int Ranks() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

inline void Check(bool good, const char* what, long detail = 0) {
  if (good) return;
  std::fprintf(stderr, "rank %d: failed: %s (%ld)\n", Rank(), what, detail);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// What rank `from` gives to rank `to` at place `i` of the `round`th exchange.
inline int32_t Value(int from, int to, size_t i, int round) {
  return static_cast<int32_t>(from * 1'000'003 + to * 10'007 + static_cast<int>(i) * 31 + round * 7);
}

void CheckCollectives();
void CheckLarge();  // needs 2 GiB for each of ranks 0 and 1
void CheckOneSided();
void CheckPointToPoint();

}  // namespace paceline::mpi_check
