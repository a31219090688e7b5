#include "tools/perf/command.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "paceline/context.h"
#include "tools/perf/allreduce_test.h"
#include "tools/perf/bootstrap.h"
#include "tools/perf/command_line.h"
#include "tools/perf/exchange_test.h"
#include "tools/perf/pair_test.h"
#include "tools/perf/report.h"
#include "tools/perf/session.h"

namespace paceline::tools {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;
constexpr double kServerPatience = 10;  // seconds that a client waits for its server
constexpr uint32_t kMaxRanks = 1024;

// Progress goes to standard error, and only to a person.
void Progress(const std::string& text) {
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "%s\n", text.c_str());
}

int Fail(const absl::Status& status, int code = kFailed) {
  std::fprintf(stderr, "paceline perf: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kWrongUse : code;
}

// Where a server waits for its client. Without a device the data comes over loopback only, so nobody from elsewhere is
// let in.
std::string WaitingAddress(const PerfArguments& arguments, const api::ContextOptions& options) {
  return arguments.listen.empty() && options.bind.empty() ? "127.0.0.1" : arguments.listen;
}

// A context that is bound to nothing by name reaches this machine only: the likeliest reason why another one is not.
absl::Status WithAdvice(const absl::Status& status, const api::ContextOptions& options) {
  if (!options.bind.empty() || !absl::StrContains(status.message(), "unreachable")) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(),
                                                  "; without --device or PACELINE_BIND only this machine is reached"));
}

// As text for the other side. Names come as they were typed, which need not be UTF-8.
std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Room for the largest window to each peer and for what ends a stream, and how crowded this machine is.
void FitToTeam(api::ContextOptions& options, uint32_t world, uint32_t local_ranks) {
  if (options.local_ranks == 0) options.local_ranks = local_ranks;
  if (options.max_operations == 0) options.max_operations = 2 * kMostWindow;
  if (options.max_completions == 0) options.max_completions = std::max(65536u, 4 * kMostWindow * world);
}

absl::StatusOr<Team> MeetTeam(const PerfArguments& arguments, const api::ContextOptions& options) {
  const uint16_t port = arguments.port != 0 ? arguments.port : kDefaultPort;
  if (arguments.mode == "server") {
    Progress(absl::StrCat("waiting for a client on TCP port ", port));
    return ServeTeam(WaitingAddress(arguments, options), port);
  }
  if (arguments.mode == "client") return JoinTeam(arguments.host, port, kServerPatience);
  if (arguments.mode == "local") return ForkTeam(2);
  const auto launched = FindLauncherRank();
  if (launched) {
    if (arguments.ranks.value_or(launched->world) != launched->world) {
      return absl::InvalidArgumentError(absl::StrCat("--ranks ", *arguments.ranks, ", but ", launched->launcher,
                                                     " started ", launched->world, " ranks"));
    }
    return LauncherTeam(*launched);
  }
  const uint32_t ranks = arguments.ranks.value_or(2);
  if (ranks < 2 || ranks > kMaxRanks) {
    return absl::InvalidArgumentError(absl::StrCat("--ranks ", ranks, ": may be 2 to ", kMaxRanks));
  }
  return ForkTeam(ranks);
}

uint32_t WindowOf(const TestSpec& spec, uint64_t size) {
  if (spec.window != 0) return spec.window;
  return spec.kind == "pair" ? DefaultPairWindow(size) : DefaultExchangeWindow(spec.kind);
}

absl::StatusOr<RankResult> RunSize(Session& session, const TestSpec& spec, uint64_t size) {
  if (spec.kind == "pair") return RunPairTest(session, spec, size);
  if (spec.kind == "allreduce") return RunAllreduceTest(session, spec, size);
  return RunExchangeTest(session, spec, size);
}

// The ranks agree on what is measured: a server does what its client asks for.
absl::StatusOr<TestSpec> AgreeOnSpec(Rendezvous& rendezvous, const TestSpec& own) {
  const auto specs = rendezvous.AllGather(Dump(own.ToJson()));
  if (!specs.ok()) return specs.status();
  return TestSpec::FromJson((*specs)[own.kind == "pair" ? 1 : 0]);
}

absl::Status WriteJson(const std::string& path, const nlohmann::json& json) {
  if (path == "-") {
    std::printf("%s\n", json.dump(2).c_str());
    return absl::OkStatus();
  }
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::Status Measure(Session& session, const TestSpec& spec, const PerfArguments& arguments, const std::string& lane,
                     bool reports) {
  const bool quiet = arguments.json == "-";
  if (reports && !quiet) std::printf("%s", TableHeading(spec, session.world()).c_str());
  std::vector<SizeReport> done;
  bool verified = true;
  for (const uint64_t size : spec.sizes) {
    if (reports)
      Progress(absl::StrCat("measuring ", spec.kind == "pair" ? spec.op : spec.kind, " of ", size, " bytes"));
    auto own = RunSize(session, spec, size);
    if (!own.ok()) return own.status();
    const auto texts = session.rendezvous().AllGather(own->ToJson().dump());
    if (!texts.ok()) return texts.status();
    std::vector<RankResult> ranks;
    for (const std::string& text : *texts) {
      auto rank = RankResult::FromJson(text);
      if (!rank.ok()) return rank.status();
      ranks.push_back(*std::move(rank));
    }
    SizeReport report = JoinResults(spec, lane, size, WindowOf(spec, size), ranks);
    verified &= report.verified;
    if (reports && !quiet) {
      std::printf("%s", TableRow(spec, report).c_str());
      if (arguments.histogram) std::printf("latency (%s)\n%s", own->latency_kind.c_str(), report.histogram.c_str());
      std::fflush(stdout);
    }
    done.push_back(std::move(report));
  }
  if (reports && !arguments.json.empty()) {
    if (absl::Status status = WriteJson(arguments.json, ReportJson(done, api::Version())); !status.ok()) return status;
  }
  return verified ? absl::OkStatus() : absl::DataLossError("payload was wrong: see verified");
}

int Run(const PerfArguments& arguments) {
  auto own_spec = ToTestSpec(arguments);
  if (!own_spec.ok()) return Fail(own_spec.status());
  auto options = ToContextOptions(arguments);
  if (!options.ok()) return Fail(options.status());
  own_spec->congestion_control = options->congestion_control;

  const bool serves = arguments.mode == "server";
  std::optional<api::Context> opened;
  if (serves) {  // at once, for whoever starts it to see what is wrong with its ports, and not when a client comes
    FitToTeam(*options, 2, 1);
    api::Result<api::Context> context = api::Context::Create(*options);
    if (!context.ok()) return Fail(FromApi(context.status()));
    opened = *std::move(context);
  }

  auto team = MeetTeam(arguments, *options);
  if (!team.ok()) return Fail(team.status());
  Rendezvous& rendezvous = *team->rendezvous;
  const bool forked = arguments.mode != "server" && arguments.mode != "client";
  const bool reports = rendezvous.rank() == 0 || !forked;
  // In a team of processes on one machine, one of them speaks about what all of them found.
  const bool speaks = reports || FindLauncherRank().has_value();

  const auto spec = AgreeOnSpec(rendezvous, *own_spec);
  if (!spec.ok()) return speaks ? Fail(spec.status()) : kFailed;
  if (serves && arguments.cc.empty() && spec->congestion_control != options->congestion_control) {
    opened.reset();  // first, as the next one wants the same ports
    PerfArguments asked = arguments;
    asked.cc = spec->congestion_control;
    options = ToContextOptions(asked);
    if (!options.ok()) return Fail(options.status());
  }
  FitToTeam(*options, rendezvous.world(), team->local_ranks);
  auto session = Session::Create(*options, &rendezvous, std::move(opened));
  if (serves && absl::IsInvalidArgument(session.status())) {  // not of its own words, with which it has been open
    return Fail(absl::FailedPreconditionError(absl::StrCat("as the client asks: ", session.status().message())));
  }
  if (!session.ok()) return speaks ? Fail(WithAdvice(session.status(), *options)) : kFailed;
  const absl::Status status = Measure(**session, *spec, arguments, options->lane, reports);
  if (!status.ok()) return speaks ? Fail(status) : kFailed;
  (*session).reset();
  if (const absl::Status joined = team->children.Join(); !joined.ok()) return Fail(joined);
  return 0;
}

}  // namespace

CLI::App* AddPerfCommand(CLI::App& app, int* exit_status) {
  CLI::App* command = app.add_subcommand("perf", "measure latency, throughput and loss between processes");
  const auto arguments = std::make_shared<PerfArguments>();
  DeclarePerfOptions(*command, *arguments);
  command->callback([arguments, exit_status] { *exit_status = Run(*arguments); });
  return command;
}

}  // namespace paceline::tools
