// The module study_mpi.so: a RunExchange over MPI. Errors of MPI itself end the job, which is MPI's default.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tools/study/ranks/run_exchange.h"

namespace paceline::tools {
namespace {

// MPI counts in int.
constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;

// Calls transfer(position, length) for pieces of `size` bytes that MPI takes.
template <typename Transfer>
void InPieces(uint64_t size, const Transfer& transfer) {
  for (uint64_t at = 0; at < size; at += kMostAtOnce) transfer(at, static_cast<int>(std::min(kMostAtOnce, size - at)));
}

class MpiExchange : public RunExchange {
 public:
  MpiExchange() {
    // Open MPI would read out of the other process's memory, which containers forbid, and complain of that.
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiExchange() override { MPI_Finalize(); }

  uint32_t rank() const override { return static_cast<uint32_t>(rank_); }
  uint32_t size() const override { return static_cast<uint32_t>(size_); }

  std::vector<std::string> Gather(std::string bytes) override {
    WaitForAll();
    const uint64_t own = bytes.size();
    std::vector<uint64_t> sizes(size());
    MPI_Gather(&own, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank_ != 0) {
      InPieces(own,
               [&](uint64_t at, int length) { MPI_Send(bytes.data() + at, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD); });
      return {};
    }
    std::vector<std::string> all(size());
    all[0] = std::move(bytes);
    for (int from = 1; from < size_; ++from) {
      std::string& into = all[static_cast<size_t>(from)];
      into.resize(sizes[static_cast<size_t>(from)]);
      InPieces(into.size(), [&](uint64_t at, int length) {
        MPI_Recv(into.data() + at, length, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      });
    }
    return all;
  }

  std::string Broadcast(std::string bytes) override {
    WaitForAll();
    uint64_t size = bytes.size();
    MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    bytes.resize(size);
    InPieces(size, [&](uint64_t at, int length) { MPI_Bcast(bytes.data() + at, length, MPI_BYTE, 0, MPI_COMM_WORLD); });
    return bytes;
  }

 private:
  // MPI waits by spinning, on a core that a rank beside this one may still need for its runs.
  static void WaitForAll() {
    constexpr useconds_t kShortest = 20, kLongest = 20'000;
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    int all_here = 0;
    for (useconds_t pause = kShortest;; pause = std::min(pause * 2, kLongest)) {
      MPI_Test(&request, &all_here, MPI_STATUS_IGNORE);
      if (all_here != 0) return;
      usleep(pause);
    }
  }

  int rank_ = 0;
  int size_ = 1;
};

}  // namespace
}  // namespace paceline::tools

extern "C" paceline::tools::RunExchange* PacelineMakeRunExchange() {
  return std::make_unique<paceline::tools::MpiExchange>().release();
}
