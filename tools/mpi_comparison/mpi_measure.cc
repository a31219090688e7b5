// What tools/compare_mpi runs under mpirun: times one operation of MPI at several sizes, and checks its results outside
// the timed part. Rank 0 prints a line of JSON per size as soon as it is done:
//   {"op", "size" (bytes), "ranks", "samples", "p50_us", "p99_us", "min_us", "max_us", "mean_us"}
//
// A sample is, for
//   allreduce   one MPI_Allreduce (sum) of doubles in a buffer of `size` bytes
//   alltoall    one MPI_Alltoall in which the buffer of each rank has `size` bytes, equal parts for all ranks
//   latency     half the round trip of a message of `size` bytes between the first two ranks
//   bandwidth   the time per message of `size` bytes: kWindow sends at once from rank 0 to rank 1, and a short answer
// Operations follow each other, with a barrier now and then between samples; a sample of a collective is the time of
// its slowest rank.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr int kWindow = 32;
constexpr size_t kFewestSamples = 5;
constexpr int kTag = 1;
constexpr int kAnswerTag = 2;

struct Options {
  std::vector<std::string> ops;
  std::vector<int> sizes;
  double seconds = 0.3;
};

int Rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int Ranks() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "rank %d: %s\n", Rank(), text.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// One operation at one size: its buffers, how it is done once, and whether its results are right.
class Operation {
 public:
  explicit Operation(size_t bytes) : out_(bytes), in_(bytes) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual void Run() = 0;
  // Runs it once with contents that can be told beforehand.
  virtual bool Verify() = 0;
  // What a sample is divided by.
  virtual double parts() const { return 1; }

 protected:
  static uint8_t Byte(int from, int to, size_t at) { return static_cast<uint8_t>(from * 37 + to * 11 + at * 7 + 1); }
  static void Fill(int from, int to, uint8_t* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) data[i] = Byte(from, to, i);
  }
  static bool Holds(int from, int to, const uint8_t* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      if (data[i] != Byte(from, to, i)) return false;
    }
    return true;
  }

  std::vector<uint8_t> out_, in_;
};

class Allreduce : public Operation {
 public:
  explicit Allreduce(size_t bytes) : Operation(0), out_values_(bytes / sizeof(double)), in_values_(out_values_) {}
  void Run() override {
    MPI_Allreduce(out_values_.data(), in_values_.data(), static_cast<int>(out_values_.size()), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
  }
  bool Verify() override {
    for (size_t i = 0; i < out_values_.size(); ++i) out_values_[i] = Value(Rank(), i);
    std::fill(in_values_.begin(), in_values_.end(), -1.0);
    Run();
    for (size_t i = 0; i < in_values_.size(); ++i) {
      double sum = 0;
      for (int rank = 0; rank < Ranks(); ++rank) sum += Value(rank, i);
      if (in_values_[i] != sum) return false;
    }
    return true;
  }

 private:
  static double Value(int rank, size_t at) { return static_cast<double>(rank + 1) * static_cast<double>(at % 1000); }
  std::vector<double> out_values_, in_values_;
};

class Alltoall : public Operation {
 public:
  explicit Alltoall(size_t bytes) : Operation(bytes), part_(bytes / static_cast<size_t>(Ranks())) {}
  void Run() override {
    const int part = static_cast<int>(part_);
    MPI_Alltoall(out_.data(), part, MPI_BYTE, in_.data(), part, MPI_BYTE, MPI_COMM_WORLD);
  }
  bool Verify() override {
    for (int to = 0; to < Ranks(); ++to) Fill(Rank(), to, &out_[static_cast<size_t>(to) * part_], part_);
    std::fill(in_.begin(), in_.end(), uint8_t{0});
    Run();
    bool good = true;
    for (int from = 0; from < Ranks(); ++from) {
      good = good && Holds(from, Rank(), &in_[static_cast<size_t>(from) * part_], part_);
    }
    return good;
  }

 private:
  const size_t part_;
};

// A round trip between ranks 0 and 1; other ranks look on.
class RoundTrip : public Operation {
 public:
  using Operation::Operation;
  void Run() override {
    const int bytes = static_cast<int>(out_.size()), rank = Rank();
    if (rank > 1) return;
    if (rank == 0) MPI_Send(out_.data(), bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
    MPI_Recv(in_.data(), bytes, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out_.data(), bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  }
  bool Verify() override {
    const int rank = Rank();
    if (rank > 1) return true;
    Fill(rank, 1 - rank, out_.data(), out_.size());
    std::fill(in_.begin(), in_.end(), uint8_t{0});
    Run();
    return Holds(1 - rank, rank, in_.data(), in_.size());
  }
  double parts() const override { return 2; }
};

// kWindow messages at once from rank 0 to rank 1.
class Stream : public Operation {
 public:
  explicit Stream(size_t bytes) : Operation(bytes * kWindow), bytes_(bytes), requests_(kWindow) {}
  void Run() override {
    const int bytes = static_cast<int>(bytes_);
    char answer = 0;
    if (Rank() == 0) {
      for (size_t i = 0; i < kWindow; ++i) {
        MPI_Isend(&out_[i * bytes_], bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &requests_[i]);
      }
      MPI_Waitall(kWindow, requests_.data(), MPI_STATUSES_IGNORE);
      MPI_Recv(&answer, 1, MPI_BYTE, 1, kAnswerTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (Rank() == 1) {
      for (size_t i = 0; i < kWindow; ++i) {
        MPI_Irecv(&in_[i * bytes_], bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &requests_[i]);
      }
      MPI_Waitall(kWindow, requests_.data(), MPI_STATUSES_IGNORE);
      MPI_Send(&answer, 1, MPI_BYTE, 0, kAnswerTag, MPI_COMM_WORLD);
    }
  }
  bool Verify() override {
    for (size_t i = 0; i < kWindow; ++i) Fill(0, static_cast<int>(i), &out_[i * bytes_], bytes_);
    std::fill(in_.begin(), in_.end(), uint8_t{0});
    Run();
    bool good = true;
    for (size_t i = 0; Rank() == 1 && i < kWindow; ++i) {
      good = good && Holds(0, static_cast<int>(i), &in_[i * bytes_], bytes_);
    }
    return good;
  }
  double parts() const override { return kWindow; }

 private:
  const size_t bytes_;
  std::vector<MPI_Request> requests_;
};

std::unique_ptr<Operation> Make(const std::string& op, size_t bytes) {
  if (op == "allreduce") return std::make_unique<Allreduce>(bytes);
  if (op == "alltoall") return std::make_unique<Alltoall>(bytes);
  if (op == "latency") return std::make_unique<RoundTrip>(bytes);
  return std::make_unique<Stream>(bytes);
}

// Samples between two looks at the clock: about a tenth of the time, told by the fastest of a few; the same on every
// rank.
size_t BatchOf(Operation* operation, const Options& options) {
  operation->Run();  // connects
  constexpr int kWarmUp = 3;
  double fastest = 1e9;
  for (int i = 0; i < kWarmUp; ++i) {
    const double start = MPI_Wtime();
    operation->Run();
    fastest = std::min(fastest, MPI_Wtime() - start);
  }
  int batch = static_cast<int>(std::clamp(options.seconds / 10 / std::max(fastest, 1e-7), 1.0, 1000.0));
  MPI_Bcast(&batch, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return static_cast<size_t>(batch);
}

// The samples of this rank; as many as on every other.
std::vector<double> Sample(Operation* operation, const Options& options) {
  const size_t batch = BatchOf(operation, options);
  std::vector<double> samples;
  const double start = MPI_Wtime();
  int more = 1;
  while (more != 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    double before = MPI_Wtime();
    for (size_t i = 0; i < batch; ++i) {
      operation->Run();
      const double now = MPI_Wtime();
      samples.push_back((now - before) * 1e6 / operation->parts());
      before = now;
    }
    more = samples.size() < kFewestSamples || before - start < options.seconds ? 1 : 0;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  return samples;
}

double Percentile(const std::vector<double>& sorted, double fraction) {
  const auto at = static_cast<size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(at, 1, sorted.size()) - 1];
}

void Measure(const std::string& op, int size, const Options& options) {
  const std::unique_ptr<Operation> operation = Make(op, static_cast<size_t>(size));
  std::vector<double> own = Sample(operation.get(), options), slowest(own.size());
  const int count = static_cast<int>(own.size());
  MPI_Reduce(own.data(), slowest.data(), count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (!operation->Verify()) Fail(op + " of " + std::to_string(size) + " bytes gave a wrong result");
  MPI_Barrier(MPI_COMM_WORLD);
  if (Rank() != 0) return;
  // The messages of a pair are timed where they start.
  std::vector<double>& samples = op == "latency" || op == "bandwidth" ? own : slowest;
  std::sort(samples.begin(), samples.end());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  std::printf("{\"op\": \"%s\", \"size\": %d, \"ranks\": %d, \"samples\": %d, \"p50_us\": %.3f, \"p99_us\": %.3f, ",
              op.c_str(), size, Ranks(), count, Percentile(samples, 0.5), Percentile(samples, 0.99));
  std::printf("\"min_us\": %.3f, \"max_us\": %.3f, \"mean_us\": %.3f}\n", samples.front(), samples.back(), mean);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Times operations of MPI; run it under mpirun. tools/compare_mpi does.");
  app.add_option("--ops", options.ops, "allreduce, alltoall, latency, bandwidth; comma separated")
      ->required()
      ->delimiter(',')
      ->check(CLI::IsMember({"allreduce", "alltoall", "latency", "bandwidth"}));
  app.add_option("--sizes", options.sizes, "bytes, comma separated, multiples of 8")
      ->required()
      ->delimiter(',')
      ->check(CLI::Range(8, 1 << 26));
  app.add_option("--seconds", options.seconds, "of measuring, for each operation and size")
      ->check(CLI::Range(0.001, 60.0));
  CLI11_PARSE(app, argc, argv);

  MPI_Init(&argc, &argv);
  if (Ranks() < 2 || Ranks() > 8) {
    if (Rank() == 0) std::cerr << "2 to 8 ranks, not " << Ranks() << '\n';
    MPI_Finalize();
    return 2;
  }
  for (const std::string& op : options.ops) {
    for (const int size : options.sizes) Measure(op, size, options);
  }
  MPI_Finalize();
  return 0;
}
