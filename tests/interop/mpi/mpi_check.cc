// Calls of MPI whose results can be told beforehand: run it under mpirun with 2 ranks or more.
#include "tests/interop/mpi/mpi_check.h"

int main(int argc, char** argv) {
  using namespace paceline::mpi_check;
  MPI_Init(&argc, &argv);
  CheckPointToPoint();
  CheckCollectives();
  MPI_Barrier(MPI_COMM_WORLD);
  if (Rank() == 0) std::printf("%d ranks: all checks passed\n", Ranks());
  MPI_Finalize();
  return 0;
}
