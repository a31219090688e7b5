#include "tools/perf/command_line.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tools/perf/bootstrap.h"
#include "tools/perf/session.h"
#include "tools/perf/stream.h"
#include "transport/engine/lane_factory.h"
#include "transport/lane/device_list.h"
#include "transport/lane/impair/impairment.h"

namespace paceline::tools {
namespace {

constexpr double kDefaultSeconds = 2;
constexpr double kDefaultSweepSeconds = 0.5;  // each size of a sweep

// For every option of a whole number: CLI11 2.1 reads them by strtoull, to which -1 is the largest, as is what is
// larger.
const CLI::Validator& WholeNumber() {
  static const CLI::Validator validator(
      [](const std::string& text) -> std::string {
        errno = 0;
        std::strtoull(text.c_str(), nullptr, 0);
        if (text.find('-') == std::string::npos && errno != ERANGE) return "";
        return absl::StrCat(text, ": may be a whole number from 0, of at most 64 bits");
      },
      "");
  return validator;
}

void DeclareCommon(CLI::App& app, PerfArguments& arguments, bool pair) {
  if (pair) {
    app.add_option("--op", arguments.op, "send, write, write_imm, read or atomic (default send)");
    app.add_flag("--bidirectional", arguments.bidirectional, "both sides start operations");
    app.add_option("--rate", arguments.rate, "open loop: payload sent per second and side, in Gb/s (5, 5G, 200M)");
    app.add_option("--interval", arguments.interval,
                   "print a line of progress on standard error every so many seconds");
  } else {
    app.add_option("--ranks", arguments.ranks,
                   "processes on this machine (default 2; under mpirun, srun or torchrun: what they say)")
        ->check(WholeNumber());
    app.add_option("--seed", arguments.seed, "of the permutation (default 1)")->check(WholeNumber());
  }
  app.add_option("--size", arguments.size,
                 "bytes of a message: 64, 64K, 1M (default 64K); allreduce: of each rank's vector");
  app.add_option("--sizes", arguments.sizes, "a sweep FROM:TO, doubling");
  app.add_option("--iterations", arguments.iterations, "messages or operations in the timed part")
      ->check(WholeNumber());
  app.add_option("--seconds", arguments.seconds, "length of the timed part instead (default 2; 0.5 each in a sweep)");
  app.add_option("--warmup", arguments.warmup, "messages or operations before it, 0: none")->check(WholeNumber());
  app.add_option("--window", arguments.window, "messages outstanding per rank (default by kind and size)")
      ->check(WholeNumber());
  app.add_flag("--histogram", arguments.histogram, "print the latency histogram");
  app.add_option("--memory", arguments.memory, "host (gpu:N is planned)");
  app.add_option("--json", arguments.json, "write the results to this file; - for standard output, alone");
  app.add_option("--cc", arguments.cc, "congestion-control algorithm (paceline info lists them)");
}

void DeclareNetwork(CLI::App& app, PerfArguments& arguments) {
  app.add_option("--lane", arguments.lane, "how the network is driven (default udp; paceline info lists the lanes)");
  app.add_option("--device", arguments.device, "interfaces, addresses or ports, comma separated (default 127.0.0.1)");
  app.add_option("--cc-set", arguments.cc_set, "a parameter of the algorithm, key=value; may be repeated");
  app.add_option("--impair", arguments.impair,
                 "a bad network on purpose: loss=1%,dup=1%,reorder=5%,corrupt=1%,delay=100us,seed=7");
  app.add_option("--link-gbps", arguments.link_gbps, "rate of each port, where the driver does not state it");
  app.add_option("--base-rtt", arguments.base_rtt_us,
                 "us, round trip without queues that congestion control reckons with (default: measured)");
  app.add_option("--mtu", arguments.mtu, "bytes of the largest IP packet (default: the interface's)")
      ->check(WholeNumber());
  app.add_option("--progress", arguments.progress, "manual (default) or thread");
  app.add_option("--engines", arguments.engines,
                 "over which connections are spread, with --progress thread (default 1)")
      ->check(WholeNumber());
}

}  // namespace

void DeclarePerfOptions(CLI::App& app, PerfArguments& arguments) {
  app.require_subcommand(1);
  const auto mode = [&](const char* name, const char* text) {
    CLI::App* command = app.add_subcommand(name, text);
    command->callback([&arguments, name] { arguments.mode = name; });
    return command;
  };
  CLI::App* server = mode("server", "wait for a client and do what it asks for");
  server->add_option("--listen", arguments.listen,
                     "address to wait at (default 127.0.0.1; with --device or PACELINE_BIND: all)");
  server->add_option("--port", arguments.port, "TCP port of the rendezvous (default 18515)")->check(WholeNumber());
  server->add_option("--cc", arguments.cc, "congestion-control algorithm (default: the client's)");
  server->add_option("--json", arguments.json, "write the results to this file; - for standard output, alone");
  DeclareNetwork(*server, arguments);

  CLI::App* client = mode("client", "measure against a server");
  client->add_option("host", arguments.host, "name or address of the server")->required();
  client->add_option("--port", arguments.port, "TCP port of the rendezvous (default 18515)")->check(WholeNumber());
  DeclareCommon(*client, arguments, true);
  DeclareNetwork(*client, arguments);

  CLI::App* local = mode("local", "measure between two processes on this machine");
  DeclareCommon(*local, arguments, true);
  DeclareNetwork(*local, arguments);

  for (const auto& [name, text] :
       {std::pair{"alltoall", "every rank sends to every other"}, std::pair{"incast", "every rank sends to rank 0"},
        std::pair{"allreduce", "sum over all ranks, as a ring"},
        std::pair{"permutation", "every rank sends to one other"}}) {
    CLI::App* command = mode(name, text);
    DeclareCommon(*command, arguments, false);
    DeclareNetwork(*command, arguments);
  }
}

absl::StatusOr<TestSpec> ToTestSpec(const PerfArguments& arguments) {
  TestSpec spec;
  const bool pair = arguments.mode == "client" || arguments.mode == "local" || arguments.mode == "server";
  spec.kind = pair ? "pair" : arguments.mode;
  spec.op = arguments.op;
  if (!arguments.size.empty() && !arguments.sizes.empty()) {
    return absl::InvalidArgumentError("--size and --sizes exclude each other");
  }
  if (!arguments.sizes.empty()) {
    const auto sizes = ParseSizes(arguments.sizes);
    if (!sizes.ok()) return sizes.status();
    spec.sizes = *sizes;
  } else if (!arguments.size.empty()) {
    const auto size = ParseSize(arguments.size);
    if (!size.ok()) return size.status();
    spec.sizes = {*size};
  }
  if (spec.op == "atomic" && pair) spec.sizes = {8};
  if (arguments.iterations != 0 && arguments.seconds != 0) {
    return absl::InvalidArgumentError("--iterations and --seconds exclude each other");
  }
  spec.iterations = arguments.iterations;
  spec.seconds = arguments.seconds != 0    ? arguments.seconds
                 : arguments.sizes.empty() ? kDefaultSeconds
                                           : kDefaultSweepSeconds;
  spec.warmup = arguments.warmup;
  spec.window = arguments.window;
  spec.bidirectional = arguments.bidirectional;
  if (!arguments.rate.empty()) {
    const auto rate = ParseBitRate(arguments.rate);
    if (!rate.ok()) return absl::InvalidArgumentError(absl::StrCat("--rate ", std::string(rate.status().message())));
    spec.rate = *rate;
  }
  spec.interval = arguments.interval;
  spec.seed = arguments.seed;
  if (arguments.memory != "host") {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory ", arguments.memory, ": only host works in this build; gpu:N is planned"));
  }
  if (absl::Status status = spec.Check(); !status.ok()) return status;
  return spec;
}

absl::StatusOr<api::ContextOptions> ToContextOptions(const PerfArguments& arguments) {
  api::Result<api::ContextOptions> environment = api::ContextOptions::FromEnvironment();
  if (!environment.ok()) return FromApi(environment.status());
  api::ContextOptions options = *environment;
  if (!arguments.lane.empty()) {
    options.lane = arguments.lane;
  } else if (std::getenv("PACELINE_LANE") == nullptr) {
    options.lane = "udp";  // what is measured does not depend on who else is on this host
  }
  if (!arguments.device.empty()) {
    options.bind = SplitDevices(arguments.device);
  }
  if (!arguments.cc.empty()) {
    if (arguments.cc != options.congestion_control) options.congestion_control_parameters.clear();
    options.congestion_control = arguments.cc;
  }
  for (const std::string& setting : arguments.cc_set) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(absl::StrCat("--cc-set ", setting, ": write key=value"));
    }
    options.congestion_control_parameters[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  if (!arguments.impair.empty()) {
    if (const auto parsed = ParseImpairment(arguments.impair); !parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--impair ", std::string(parsed.status().message())));
    }
    options.impair = arguments.impair;
  }
  if (!(arguments.link_gbps >= 0)) return absl::InvalidArgumentError("--link-gbps may be more than 0");
  if (arguments.link_gbps > 0) options.link_gbps = arguments.link_gbps;
  if (arguments.base_rtt_us != 0 && !(arguments.base_rtt_us >= 1 && arguments.base_rtt_us <= 1e6)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--base-rtt ", arguments.base_rtt_us, " is in microseconds and may be 1 to 1000000"));
  }
  if (arguments.base_rtt_us != 0) options.base_rtt_us = arguments.base_rtt_us;
  if (arguments.mtu != 0) options.mtu = arguments.mtu;
  if (!arguments.progress.empty()) {
    if (arguments.progress != "manual" && arguments.progress != "thread") {
      return absl::InvalidArgumentError(absl::StrCat("--progress ", arguments.progress, ": write manual or thread"));
    }
    options.progress = arguments.progress == "thread" ? api::ProgressMode::kThread : api::ProgressMode::kManual;
  }
  if (arguments.engines != 0) options.engines = arguments.engines;
  return options;
}

}  // namespace paceline::tools
