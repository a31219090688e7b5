// Runs NCCL's collectives over a network plugin, between processes of this machine, checks every value, and times them.
// Ranks that share a GPU are hosts of their own to NCCL (NCCL_HOSTID), so that one GPU is enough.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tests/interop/nccl/collectives.h"
#include "tests/interop/nccl/gpu.h"
#include "tests/interop/nccl/nccl_library.h"
#include "tests/interop/nccl/proxy.h"
#include "tools/perf/bootstrap.h"
#include "transport/engine/clock.h"

namespace paceline::nccl_test {
namespace {

constexpr int kSkipped = 77;
constexpr int kWarmUps = 2;

struct Options {
  std::string nccl = "libnccl.so.2";
  std::string plugin;
  uint32_t ranks = 2;
  std::vector<size_t> bytes = {8, 1 << 10, 64 << 10, 1 << 20, 16 << 20};
  std::vector<std::string> collectives;
  int iterations = 20;
  int timeout = 60;
  std::string json;
};

// What NCCL has to be told before it is loaded, whatever the caller's environment says: that `options.plugin` carries
// all that ranks exchange.
void PrepareEnvironment(const Options& options, uint32_t rank, int devices) {
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  set("NCCL_NET_PLUGIN", options.plugin);
  set("NCCL_NET", options.plugin == "none" ? "Socket" : "Paceline");
  set("NCCL_P2P_DISABLE", "1");
  set("NCCL_SHM_DISABLE", "1");
  if (options.ranks > static_cast<uint32_t>(devices)) set("NCCL_HOSTID", absl::StrCat("paceline-", rank));
}

// A buffer holds as many values for each rank; at least one.
size_t CountOf(size_t bytes, uint32_t world) { return std::max<size_t>(bytes / sizeof(uint32_t) / world, 1) * world; }

class Rank {
 public:
  Rank(const Options& options, tools::Rendezvous* rendezvous, const NcclLibrary& nccl, int device)
      : options_(options), rendezvous_(*rendezvous), nccl_(nccl), gpu_(device), scope_(gpu_.driver(), gpu_.context()) {
    const size_t most = *std::max_element(options.bytes.begin(), options.bytes.end());
    host_.resize(CountOf(most, world()));
    from_ = gpu_.Alloc(host_.size() * sizeof(uint32_t));
    to_ = gpu_.Alloc(host_.size() * sizeof(uint32_t));
    Expect(gpu_.driver().cuStreamCreate(&stream_, gpudirect::kStreamNonBlocking) == 0, "cuStreamCreate");
    Expect(gpu_.driver().cuEventCreate(&done_, gpudirect::kEventDisableTiming) == 0, "cuEventCreate");
    NcclUniqueId id{};
    if (rank() == 0) nccl_.Check(nccl_.ncclGetUniqueId(&id), "ncclGetUniqueId");
    auto all = rendezvous_.AllGather(std::string(id.bytes, sizeof(id.bytes)));
    Expect(all.ok(), "another rank has ended");
    std::copy(all->front().begin(), all->front().end(), id.bytes);
    nccl_.Check(nccl_.ncclCommInitRank(&comm_, static_cast<int>(world()), id, static_cast<int>(rank())),
                "ncclCommInitRank");
  }
  ~Rank() {
    nccl_.Check(nccl_.ncclCommFinalize(comm_), "ncclCommFinalize");
    nccl_.Check(nccl_.ncclCommDestroy(comm_), "ncclCommDestroy");
    gpu_.driver().cuEventDestroy(done_);
    gpu_.driver().cuStreamDestroy(stream_);
    gpu_.Free(from_);
    gpu_.Free(to_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  uint32_t rank() const { return rendezvous_.rank(); }
  uint32_t world() const { return rendezvous_.world(); }

  // Seconds of one call, the mean of `iterations` that were queued together; results are checked before and after.
  double Measure(const Collective& collective, size_t bytes) {
    const CollectiveCall call{.nccl = nccl_,
                              .comm = comm_,
                              .stream = stream_,
                              .rank = rank(),
                              .world = world(),
                              .count = CountOf(bytes, world()),
                              .from = from_,
                              .to = to_};
    const std::string what = absl::StrCat(collective.name, " of ", bytes, " bytes");
    for (size_t i = 0; i < call.count; ++i) host_[i] = SentValue(i, rank());
    gpu_.Write(from_, host_.data(), call.count * sizeof(uint32_t));
    Clear(call.count);
    for (int i = 0; i < kWarmUps; ++i) collective.run(call);
    Wait(what);
    CheckResult(collective, call, what);
    Clear(call.count);
    Expect(rendezvous_.Barrier().ok(), "another rank has ended");
    const Time start = MonotonicNow();
    for (int i = 0; i < options_.iterations; ++i) collective.run(call);
    Wait(what);
    const double seconds = (MonotonicNow() - start).seconds() / options_.iterations;
    CheckResult(collective, call, what);
    return seconds;
  }

 private:
  void Clear(size_t count) {
    std::fill(host_.begin(), host_.begin() + static_cast<ptrdiff_t>(count), 0xeeeeeeeeU);
    gpu_.Write(to_, host_.data(), count * sizeof(uint32_t));
  }

  // Until all that is queued is done; an error that NCCL notices later, and a wait without end, end the process.
  void Wait(const std::string& what) {
    Expect(gpu_.driver().cuEventRecord(done_, stream_) == 0, "cuEventRecord");
    const Time end = MonotonicNow() + Duration::Seconds(options_.timeout);
    for (;;) {
      const gpudirect::CudaResult state = gpu_.driver().cuEventQuery(done_);
      if (state == gpudirect::kCudaSuccess) return;
      Expect(state == gpudirect::kCudaNotReady, absl::StrCat(what, ": the GPU answered ", state));
      NcclResult error = 0;
      nccl_.Check(nccl_.ncclCommGetAsyncError(comm_, &error), "ncclCommGetAsyncError");
      if (error != kNcclInProgress) nccl_.Check(error, what);
      Expect(MonotonicNow() < end, absl::StrCat(what, ": not done after ", options_.timeout, " s"));
      sched_yield();
    }
  }

  void CheckResult(const Collective& collective, const CollectiveCall& call, const std::string& what) {
    const size_t values = collective.values(rank(), world(), call.count);
    gpu_.Read(host_.data(), to_, values * sizeof(uint32_t));
    for (size_t i = 0; i < values; ++i) {
      const uint32_t expected = collective.expected(i, rank(), world(), call.count);
      Expect(host_[i] == expected,
             absl::StrCat(what, ": value ", i, " of rank ", rank(), " is ", host_[i], ", not ", expected));
    }
  }

  const Options& options_;
  tools::Rendezvous& rendezvous_;
  const NcclLibrary& nccl_;
  Gpu gpu_;
  const gpudirect::CudaScope scope_;
  std::vector<uint32_t> host_;
  gpudirect::DevicePointer from_ = 0, to_ = 0;
  gpudirect::CudaStream stream_ = nullptr;
  gpudirect::CudaEvent done_ = nullptr;
  NcclComm comm_ = nullptr;
};

// Rank 0's table and data.
nlohmann::json RunAll(const Options& options, Rank& rank) {
  nlohmann::json samples = nlohmann::json::array();
  if (rank.rank() == 0) {
    std::printf("%-16s %12s %12s %12s %12s\n", "collective", "bytes", "us", "alg Gb/s", "bus Gb/s");
  }
  for (const Collective& collective : Collectives()) {
    if (std::find(options.collectives.begin(), options.collectives.end(), collective.name) ==
        options.collectives.end()) {
      continue;
    }
    for (const size_t wanted : options.bytes) {
      const size_t bytes = CountOf(wanted, rank.world()) * sizeof(uint32_t);
      const double seconds = rank.Measure(collective, bytes);
      if (rank.rank() != 0) continue;
      const double gbps = static_cast<double>(bytes) * 8e-9 / seconds;
      const double bus_gbps = gbps * collective.bus_factor(rank.world());
      std::printf("%-16s %12zu %12.1f %12.3f %12.3f\n", collective.name, bytes, seconds * 1e6, gbps, bus_gbps);
      std::fflush(stdout);
      samples.push_back({{"collective", collective.name},
                         {"bytes", bytes},
                         {"us", seconds * 1e6},
                         {"algorithm_gbps", gbps},
                         {"bus_gbps", bus_gbps}});
    }
  }
  return samples;
}

int Skip(const std::string& why) {
  std::printf("skipped: %s\n", why.c_str());
  return kSkipped;
}

int Run(const Options& options) {
  auto team = tools::ForkTeam(options.ranks);
  if (!team.ok()) Fail(std::string(team.status().message()));
  team->rendezvous->set_idle([] { sched_yield(); });
  const uint32_t number = team->rendezvous->rank();
  std::string reason;
  const gpudirect::CudaDriver* driver = gpudirect::CudaDriver::Get(&reason);
  if (driver == nullptr) return number == 0 ? Skip(reason) : 0;
  PrepareEnvironment(options, number, driver->device_count());
  auto nccl = NcclLibrary::Load(options.nccl);
  if (!nccl.ok()) return number == 0 ? Skip(std::string(nccl.status().message())) : 0;
  {
    Rank rank(options, team->rendezvous.get(), **nccl, static_cast<int>(number) % driver->device_count());
    const nlohmann::json samples = RunAll(options, rank);
    if (number == 0 && !options.json.empty()) {
      std::ofstream file(options.json);
      file << nlohmann::json({{"nccl", (*nccl)->Version()}, {"ranks", options.ranks}, {"samples", samples}}).dump(1)
           << "\n";
      Expect(file.good(), "cannot write " + options.json);
    }
    Expect(team->rendezvous->Barrier().ok(), "another rank has ended");
  }
  if (number == 0) {
    Expect(team->children.Join().ok(), "a rank has failed");
    std::printf("NCCL %s, %u ranks, %s: all values are right\n", (*nccl)->Version().c_str(), options.ranks,
                options.plugin.c_str());
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Runs NCCL's collectives between N processes of this machine over a network plugin, checks every value and times "
      "them. Rank r uses GPU r modulo their number; ranks that share one are hosts of their own to NCCL. Exit status "
      "77: no GPU, or no NCCL.");
  Options options;
  std::vector<std::string> names;
  for (const Collective& collective : Collectives()) names.emplace_back(collective.name);
  options.collectives = names;
  app.add_option("--nccl", options.nccl, "NCCL's library, by path or name")->capture_default_str();
  app.add_option("--plugin", options.plugin, "network plugin, by path; none: NCCL's own TCP sockets")->required();
  app.add_option("--ranks", options.ranks, "processes, 2 to 64")->check(CLI::Range(2, 64))->capture_default_str();
  app.add_option("--bytes", options.bytes,
                 "of the larger buffer of a rank, in values of 4 bytes, as many for each rank; 4 to 1G, with K, M, G, "
                 "comma separated")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(size_t{4}, size_t{1} << 30));
  app.add_option("--collectives", options.collectives, "only these: " + absl::StrJoin(names, ", "))
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--iterations", options.iterations, "timed calls, queued together, 1 to 100000")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--timeout", options.timeout, "seconds, of the calls of one size, 1 to 3600")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--json", options.json, "file for the results");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.plugin != "none") {
    std::error_code error;
    options.plugin = std::filesystem::canonical(options.plugin, error).string();
    if (error) {
      std::fprintf(stderr, "--plugin: %s; it is a path of libnccl-net-paceline.so, or none\n", error.message().c_str());
      return 2;
    }
  }
  return Run(options);
}

}  // namespace
}  // namespace paceline::nccl_test

int main(int argc, char** argv) { return paceline::nccl_test::Main(argc, argv); }
