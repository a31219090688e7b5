// Every collective of MPI, blocking, and some that are not; lengths on both sides of the border between eager and
// rendezvous.
#include <algorithm>
#include <numeric>

#include "tests/interop/mpi/mpi_check.h"

namespace paceline::mpi_check {
namespace {

using Values = std::vector<int32_t>;

Values From(int from, int to, size_t count, int round) {
  Values values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Value(from, to, i, round);
  return values;
}

void Broadcast(size_t count) {
  for (int root = 0; root < Ranks(); ++root) {
    Values values = Rank() == root ? From(root, 0, count, 1) : Values(count);
    MPI_Bcast(values.data(), static_cast<int>(count), MPI_INT32_T, root, MPI_COMM_WORLD);
    Check(values == From(root, 0, count, 1), "MPI_Bcast", root);
  }
}

void Reductions(size_t count) {
  const Values mine = From(Rank(), 0, count, 2);
  Values sum(count), before(count), largest(count);
  for (int rank = 0; rank < Ranks(); ++rank) {
    const Values theirs = From(rank, 0, count, 2);
    for (size_t i = 0; i < count; ++i) {
      sum[i] += theirs[i];
      if (rank <= Rank()) before[i] += theirs[i];
      largest[i] = rank == 0 ? theirs[i] : std::max(largest[i], theirs[i]);
    }
  }
  const int n = static_cast<int>(count);
  Values got(count);
  MPI_Allreduce(mine.data(), got.data(), n, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  Check(got == sum, "MPI_Allreduce sum", n);
  MPI_Allreduce(mine.data(), got.data(), n, MPI_INT32_T, MPI_MAX, MPI_COMM_WORLD);
  Check(got == largest, "MPI_Allreduce max", n);
  MPI_Scan(mine.data(), got.data(), n, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  Check(got == before, "MPI_Scan", n);
  MPI_Exscan(mine.data(), got.data(), n, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; Rank() > 0 && i < count; ++i) Check(got[i] == before[i] - mine[i], "MPI_Exscan", n);
  for (int root = 0; root < Ranks(); ++root) {
    MPI_Reduce(mine.data(), got.data(), n, MPI_INT32_T, MPI_SUM, root, MPI_COMM_WORLD);
    if (Rank() == root) Check(got == sum, "MPI_Reduce", n);
  }
  MPI_Request request;
  MPI_Iallreduce(mine.data(), got.data(), n, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  Check(got == sum, "MPI_Iallreduce", n);
}

// All that this rank gives to each rank, and what it gets from each.
Values ToAll(size_t count, int round) {
  Values all;
  for (int to = 0; to < Ranks(); ++to) {
    const Values one = From(Rank(), to, count, round);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}
Values FromAll(int to, size_t count, int round) {
  Values all;
  for (int from = 0; from < Ranks(); ++from) {
    const Values one = From(from, to, count, round);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void Exchanges(size_t count) {
  const int n = static_cast<int>(count);
  const size_t total = count * static_cast<size_t>(Ranks());
  Values got(total);
  const Values to_all = ToAll(count, 3);
  MPI_Alltoall(to_all.data(), n, MPI_INT32_T, got.data(), n, MPI_INT32_T, MPI_COMM_WORLD);
  Check(got == FromAll(Rank(), count, 3), "MPI_Alltoall", n);
  const Values mine = From(Rank(), 0, count, 4);
  MPI_Allgather(mine.data(), n, MPI_INT32_T, got.data(), n, MPI_INT32_T, MPI_COMM_WORLD);
  Check(got == FromAll(0, count, 4), "MPI_Allgather", n);
  for (int root = 0; root < Ranks(); ++root) {
    MPI_Gather(mine.data(), n, MPI_INT32_T, got.data(), n, MPI_INT32_T, root, MPI_COMM_WORLD);
    if (Rank() == root) Check(got == FromAll(0, count, 4), "MPI_Gather", n);
    Values part(count);
    MPI_Scatter(to_all.data(), n, MPI_INT32_T, part.data(), n, MPI_INT32_T, root, MPI_COMM_WORLD);
    Check(part == From(root, Rank(), count, 3), "MPI_Scatter", n);
  }
  Values block(count), wanted(count);
  for (int from = 0; from < Ranks(); ++from) {
    const Values theirs = From(from, Rank(), count, 3);
    for (size_t i = 0; i < count; ++i) wanted[i] += theirs[i];
  }
  MPI_Reduce_scatter_block(to_all.data(), block.data(), n, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  Check(block == wanted, "MPI_Reduce_scatter_block", n);
  const std::vector<int> counts(static_cast<size_t>(Ranks()), n);
  MPI_Reduce_scatter(to_all.data(), block.data(), counts.data(), MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  Check(block == wanted, "MPI_Reduce_scatter", n);
}

// Rank r gives r + 1 values to each: lengths that differ.
void UnequalExchanges() {
  const auto ranks = static_cast<size_t>(Ranks());
  const size_t mine = static_cast<size_t>(Rank()) + 1;
  std::vector<int> send_counts(ranks, static_cast<int>(mine)), send_at(ranks), counts(ranks), at(ranks);
  Values out, wanted_all, wanted_gather;
  for (size_t peer = 0; peer < ranks; ++peer) {
    send_at[peer] = static_cast<int>(peer * mine);
    counts[peer] = static_cast<int>(peer) + 1;
    at[peer] = static_cast<int>(peer * (peer + 1) / 2);
    const Values to = From(Rank(), static_cast<int>(peer), mine, 5),
                 from = From(static_cast<int>(peer), Rank(), peer + 1, 5);
    out.insert(out.end(), to.begin(), to.end());
    wanted_all.insert(wanted_all.end(), from.begin(), from.end());
    const Values same = From(static_cast<int>(peer), 0, peer + 1, 6);
    wanted_gather.insert(wanted_gather.end(), same.begin(), same.end());
  }
  Values got(wanted_all.size());
  MPI_Alltoallv(out.data(), send_counts.data(), send_at.data(), MPI_INT32_T, got.data(), counts.data(), at.data(),
                MPI_INT32_T, MPI_COMM_WORLD);
  Check(got == wanted_all, "MPI_Alltoallv");
  const Values same = From(Rank(), 0, mine, 6);
  MPI_Allgatherv(same.data(), static_cast<int>(mine), MPI_INT32_T, got.data(), counts.data(), at.data(), MPI_INT32_T,
                 MPI_COMM_WORLD);
  Check(got == wanted_gather, "MPI_Allgatherv");
  MPI_Gatherv(same.data(), static_cast<int>(mine), MPI_INT32_T, got.data(), counts.data(), at.data(), MPI_INT32_T, 0,
              MPI_COMM_WORLD);
  if (Rank() == 0) Check(got == wanted_gather, "MPI_Gatherv");
  Values part(mine);
  MPI_Scatterv(wanted_gather.data(), counts.data(), at.data(), MPI_INT32_T, part.data(), static_cast<int>(mine),
               MPI_INT32_T, 0, MPI_COMM_WORLD);
  Check(part == same, "MPI_Scatterv");
}

// Messages of one communicator do not meet receives of another.
void Communicators() {
  MPI_Comm halves;
  MPI_Comm_split(MPI_COMM_WORLD, Rank() % 2, Rank(), &halves);
  int sum = 0;
  const int rank = Rank();
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, halves);
  int wanted = 0;
  for (int other = rank % 2; other < Ranks(); other += 2) wanted += other;
  Check(sum == wanted, "MPI_Allreduce of a part", sum);
  MPI_Comm_free(&halves);
}

}  // namespace

void CheckCollectives() {
  for (int round = 0; round < 100; ++round) MPI_Barrier(MPI_COMM_WORLD);
  for (const size_t count : {size_t{1}, size_t{100}, size_t{5000}, size_t{100'000}}) {
    Broadcast(count);
    Reductions(count);
    Exchanges(count);
  }
  UnequalExchanges();
  Communicators();
}

}  // namespace paceline::mpi_check
