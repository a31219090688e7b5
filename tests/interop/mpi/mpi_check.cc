// Calls of MPI whose results can be told beforehand: mpi_check [ROUNDS [FILE] | large], under mpirun with 2 ranks or
// more. After each round rank 0 says so. With FILE it goes on until a script has broken something and then made FILE,
// and does ROUNDS more. "large": one message of 2 GiB instead. In the end it says how many one-sided operations of
// Paceline were carried out for them, and how many bytes went with them and with messages, as the provider's counters
// have it.
#include "tests/interop/mpi/mpi_check.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "paceline/counters.h"

namespace paceline::mpi_check {
namespace {

// Of this process: writes, reads and atomics of peers, and bytes that have come.
using Counts = std::array<uint64_t, 4>;

Counts CountsOfProvider() {
  Counts counts{};
  for (const std::string& page : api::ListCounterPages()) {
    const auto snapshot = api::ReadCounterPage(page);
    if (!snapshot.ok() || snapshot->pid != static_cast<uint64_t>(getpid())) continue;
    for (const api::Counter& counter : snapshot->counters) {
      if (counter.name == "rx_writes") counts[0] += counter.value;
      if (counter.name == "rx_reads") counts[1] += counter.value;
      if (counter.name == "rx_atomics") counts[2] += counter.value;
      if (counter.name == "rx_data_bytes") counts[3] += counter.value;
    }
  }
  return counts;
}

// Counters are written from time to time: it looks until they have not changed for a while.
void TellCounts() {
  Counts mine = CountsOfProvider(), sum{};
  for (int same = 0; same < 10; ++same) {
    usleep(10'000);
    MPI_Barrier(MPI_COMM_WORLD);
    const Counts again = CountsOfProvider();
    bool changed = false;  // barriers of this loop move some bytes
    for (size_t i = 0; i < 3; ++i) changed |= again[i] != mine[i];
    if (changed) same = 0;
    mine = again;
    int most = 0;
    MPI_Allreduce(&same, &most, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    same = most;
  }
  MPI_Reduce(mine.data(), sum.data(), 4, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (Rank() != 0) return;
  std::printf("one-sided: %ld writes, %ld reads, %ld atomics\nbytes: %ld\n", static_cast<long>(sum[0]),
              static_cast<long>(sum[1]), static_cast<long>(sum[2]), static_cast<long>(sum[3]));
}

// What rank 0 sees holds for all.
bool Exists(const char* file) {
  int there = access(file, F_OK) == 0 ? 1 : 0;
  MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return there != 0;
}

}  // namespace
}  // namespace paceline::mpi_check

int main(int argc, char** argv) {
  using namespace paceline::mpi_check;
  MPI_Init(&argc, &argv);
  const bool large = argc > 1 && std::string(argv[1]) == "large";
  int rounds = large ? 0 : argc > 1 ? std::atoi(argv[1]) : 1;
  const char* awaited = argc > 2 ? argv[2] : nullptr;
  if (large) CheckLarge();
  for (int round = 1; rounds > 0; ++round) {
    if (awaited != nullptr && Exists(awaited)) awaited = nullptr;
    CheckPointToPoint();
    CheckCollectives();
    CheckOneSided();
    MPI_Barrier(MPI_COMM_WORLD);
    if (awaited == nullptr) --rounds;
    if (Rank() == 0) {
      std::printf("round %d passed\n", round);
      std::fflush(stdout);
    }
  }
  TellCounts();
  if (Rank() == 0) std::printf("%d ranks: all checks passed\n", Ranks());
  MPI_Finalize();
  return 0;
}
