// Calls of MPI whose results can be told beforehand: mpi_check [ROUNDS], under mpirun with 2 ranks or more. After each
// round rank 0 says so, so that a script can break something between two.
#include "tests/interop/mpi/mpi_check.h"

#include <cstdlib>

int main(int argc, char** argv) {
  using namespace paceline::mpi_check;
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int round = 1; round <= rounds; ++round) {
    CheckPointToPoint();
    CheckCollectives();
    MPI_Barrier(MPI_COMM_WORLD);
    if (Rank() == 0) {
      std::printf("round %d of %d passed\n", round, rounds);
      std::fflush(stdout);
    }
  }
  if (Rank() == 0) std::printf("%d ranks: all checks passed\n", Ranks());
  MPI_Finalize();
  return 0;
}
