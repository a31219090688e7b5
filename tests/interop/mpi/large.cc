// A message whose bytes no int can count, and no 32 bits with a sign.
#include "tests/interop/mpi/mpi_check.h"

namespace paceline::mpi_check {
namespace {

constexpr size_t kCount = (size_t{1} << 28) + 1000;  // of 8 bytes: 2 GiB and 8,000 bytes
constexpr int kTag = 40;

uint64_t ValueAt(size_t i) { return (i + 1) * 0x9e37'79b9'7f4a'7c15; }

}  // namespace

void CheckLarge() {
  std::vector<uint64_t> values;
  if (Rank() == 0) {
    values.resize(kCount);
    for (size_t i = 0; i < kCount; ++i) values[i] = ValueAt(i);
    MPI_Send(values.data(), static_cast<int>(kCount), MPI_UINT64_T, 1, kTag, MPI_COMM_WORLD);
  } else if (Rank() == 1) {
    values.resize(kCount + 1);
    MPI_Status status;
    MPI_Recv(values.data(), static_cast<int>(kCount + 1), MPI_UINT64_T, 0, kTag, MPI_COMM_WORLD, &status);
    int got = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &got);
    Check(got == static_cast<int>(kCount), "the length of a large message", got);
    for (size_t i = 0; i < kCount; ++i) Check(values[i] == ValueAt(i), "a large message", static_cast<long>(i));
    Check(values[kCount] == 0, "what is behind a large message");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace paceline::mpi_check
