// Drives a network plugin of NCCL as NCCL's threads do, between processes of this machine, and checks what it does.
#include <sched.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"
#include "tests/interop/nccl/job.h"
#include "tests/interop/nccl/net.h"
#include "tools/perf/bootstrap.h"

namespace paceline::nccl_test {
namespace {

struct NamedCheck {
  const char* name;
  void (*run)(Job& job);
};
constexpr NamedCheck kChecks[] = {
    {"sizes", CheckSizes},
    {"groups", CheckGroups},
    {"in_flight", CheckInFlight},
    {"many_comms", CheckManyComms},
    {"late_receiver", CheckLateReceiver},
    {"idle_rank", CheckIdleRank},
    {"unfinished", CheckUnfinished},
    {"threads", CheckThreads},
    {"ring", CheckRing},
    {"tree", CheckTree},
    {"all_to_all", CheckAllToAll},
    {"gpu", CheckGpu},
    {"gpu_ahead", CheckGpuAhead},
    {"rate", CheckRate},
};

struct Options {
  std::string plugin;
  int version = 0;
  uint32_t ranks = 2;
  int device = 0;
  int merge = 0;
  int traffic_class = abi::kUndefined;
  bool verbose = false;
  std::vector<std::string> checks;
  std::vector<size_t> rate_bytes = {8, 16 << 10, 128 << 10, 512 << 10, 2 << 20};
};

bool verbose = false;

void PrintLog(abi::LogLevel level, unsigned long, const char* file, int line, const char* format, ...) {
  if (!verbose && level != abi::LogLevel::kWarn) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "%s:%d %s\n", file, line, text);
}

std::atomic<int64_t> events_open{0}, events_seen{0};

abi::Result CountEvents(void** event, abi::ProfilerEvent type, void* parent, int64_t, void*) {
  if (type == abi::ProfilerEvent::kStart) {
    Expect(parent != nullptr, "a profiler event without NCCL's handle");
    *event = parent;
    ++events_open;
    ++events_seen;
  } else if (type == abi::ProfilerEvent::kStop || type == abi::ProfilerEvent::kUpdateAndStop) {
    Expect(*event != nullptr, "a profiler event that ends without its beginning");
    --events_open;
  }
  return abi::Result::kSuccess;
}

// Names of the threads of this process, but for those of a CUDA driver, which stay as long as it does.
std::vector<std::string> Threads() {
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (!name.starts_with("cuda")) names.push_back(name);
  }
  return names;
}

void CheckProperties(Net& net, int device, int devices, abi::PropertiesV12* properties) {
  properties->virtual_device.count = 1;
  Check(net.Properties(device, properties), "getProperties");
  const std::string of = " of device " + std::to_string(device);
  Expect(properties->name != nullptr && properties->name[0] != '\0', "the name" + of);
  Expect((properties->pointer_support & abi::kPointerHost) != 0, "host memory" + of);
  Expect(properties->speed > 0, "the speed" + of);
  Expect(properties->max_comms > 0, "maxComms" + of);
  Expect(properties->max_receives >= 1 && properties->max_receives <= 8, "maxRecvs" + of);
  if (net.version() >= 9) {
    Expect(properties->max_p2p_bytes > 0 && properties->max_p2p_bytes <= abi::kMostBytes, "maxP2pBytes" + of);
    Expect(properties->max_collective_bytes > 0 && properties->max_collective_bytes <= abi::kMostBytes,
           "maxCollBytes" + of);
    const int limit = net.version() >= 12 ? 8 : 4;
    Expect(properties->virtual_device.count >= 1 && properties->virtual_device.count <= limit, "vProps.ndevs" + of);
    for (int i = 0; i < properties->virtual_device.count; ++i) {
      Expect(properties->virtual_device.devices[i] >= 0 && properties->virtual_device.devices[i] < devices,
             "vProps.devs" + of);
    }
  }
}

int ChooseDevice(Net& net, const Options& options) {
  int devices = 0;
  Check(net.Devices(&devices), "devices");
  Expect(devices > 0, "the plugin has no device");
  for (int i = 0; i < devices; ++i) {
    abi::PropertiesV12 properties{};
    CheckProperties(net, i, devices, &properties);
  }
  if (options.merge == 0) return options.device;
  int device = -1;
  Check(net.MakeVirtualDevice(&device, 0, options.merge), "makeVDevice");
  abi::PropertiesV12 properties{};
  CheckProperties(net, device, devices, &properties);
  Expect(properties.virtual_device.count == options.merge, "a virtual device of as many parts as were merged");
  return device;
}

// One communicator's life: init, the checks, finalize.
void RunChecks(Net& net, const Options& options, tools::Rendezvous* rendezvous, uint64_t id) {
  void* communicator = nullptr;
  Check(net.Init(&communicator, id, options.traffic_class, PrintLog, CountEvents), "init");
  const int device = ChooseDevice(net, options);
  abi::PropertiesV12 properties{};
  Check(net.Properties(device, &properties), "getProperties");
  Job job(&net, rendezvous, communicator, device, static_cast<size_t>(properties.max_receives));
  job.set_rate_bytes(options.rate_bytes);
  const auto world = static_cast<int32_t>(job.world());
  const abi::PeerAttributes peers = {world, 1, 1, 1};
  Check(
      net.SetAttributes(communicator, {.send = peers, .receive = peers, .operation = 1, .algorithm = 1, .protocol = 4}),
      "setNetAttr");
  for (const NamedCheck& check : kChecks) {
    if (std::find(options.checks.begin(), options.checks.end(), check.name) == options.checks.end()) continue;
    if (verbose && job.rank() == 0) std::fprintf(stderr, "%s\n", check.name);
    check.run(job);
  }
  Check(net.Finalize(communicator), "finalize");
}

int Run(const Options& options) {
  auto team = tools::ForkTeam(options.ranks);
  if (!team.ok()) Fail(std::string(team.status().message()));
  team->rendezvous->set_idle([] { sched_yield(); });
  std::thread([] {}).join();  // with the first one the thread sanitizer starts one of its own, which stays
  const size_t threads = Threads().size();
  auto net = Net::Load(options.plugin, options.version);
  if (!net.ok()) Fail(std::string(net.status().message()));
  const int version = (*net)->version();
  const std::string name = (*net)->name();
  RunChecks(**net, options, team->rendezvous.get(), 7);
  const bool again = version >= 11;
  if (again)
    RunChecks(**net, options, team->rendezvous.get(), 8);  // the next communicator, after the last was finalised
  Expect(events_open == 0, "profiler events that never ended");
  net->reset();
  // A thread that was joined may be listed a moment longer.
  for (int look = 0; look < 5000 && Threads().size() > threads; ++look) usleep(1000);
  const std::vector<std::string> left = Threads();
  Expect(left.size() <= threads, "the plugin was unloaded and its threads still run: " + absl::StrJoin(left, ", "));
  Expect(team->rendezvous->Barrier().ok(), "another rank has ended");
  if (team->rendezvous->rank() == 0) {
    std::printf("%s, v%d, %u ranks: passed\n", name.c_str(), version, options.ranks);
    Expect(team->children.Join().ok(), "a rank has failed");
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Loads a network plugin of NCCL and drives it as NCCL does, between N processes of this machine: connect and "
      "accept "
      "polled, 32 requests in flight, grouped receives, all-reduce and all-to-all with checked results, comms closed "
      "in "
      "any order, the library unloaded at the end. Any plugin that has ncclNetPlugin_v6 to v12 can be named, as "
      "libnccl-net.so of aws-ofi-nccl; leave out `idle_rank`, which asks for more than NCCL does, where it fails.");
  Options options;
  std::vector<std::string> names;
  for (const NamedCheck& check : kChecks) names.emplace_back(check.name);
  options.checks = names;
  // Need a driver, real or not; measures.
  for (const char* name : {"gpu", "gpu_ahead", "rate"}) std::erase(options.checks, name);
  app.add_option("--plugin", options.plugin, "the library, by path")->required();
  app.add_option("--version", options.version, "of the interface, 6 to 12; 0: the newest that there is")
      ->check(CLI::Range(0, 12));
  app.add_option("--ranks", options.ranks, "processes, 2 to 64")->check(CLI::Range(2, 64));
  app.add_option("--device", options.device, "the plugin's number of it");
  app.add_option("--merge", options.merge, "make a virtual device of the first so many (v9 and up), and use it")
      ->check(CLI::Range(0, 8));
  app.add_option("--traffic-class", options.traffic_class, "of the communicator (v10 and up)")
      ->check(CLI::Range(0, 255));
  app.add_option("--checks", options.checks, "only these: " + absl::StrJoin(names, ", "))
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--rate-bytes", options.rate_bytes, "of the check `rate`: message sizes, 1 to 64M, with K, M")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(size_t{1}, size_t{64} << 20));
  app.add_flag("--verbose", options.verbose, "print what the plugin logs, and each check");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  verbose = options.verbose;
  return Run(options);
}

}  // namespace
}  // namespace paceline::nccl_test

int main(int argc, char** argv) { return paceline::nccl_test::Main(argc, argv); }
