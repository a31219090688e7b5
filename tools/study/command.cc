#include "tools/study/command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/launcher/launcher_rank.h"
#include "tools/study/builtin.h"
#include "tools/study/execute.h"
#include "tools/study/ranks/agree.h"
#include "tools/study/ranks/open_exchange.h"
#include "tools/study/results.h"
#include "tools/study/study_file.h"
#include "tools/study/traffic.h"
#include "transport/engine/progress.h"

namespace paceline::tools {
namespace {

constexpr int kDone = 0, kFailed = 1, kWrongUse = 2;

struct Options {
  std::string study;
  std::vector<std::string> overrides;
  std::string matrix;
  std::string out;
  std::string json;
  unsigned jobs = 0;
  bool list = false;
  std::string traffic;
};

int Complain(int status, const std::string& message) {
  std::cerr << "paceline study: " << message << "\n";
  return status;
}

int ListStudies() {
  for (const BuiltinStudy& builtin : BuiltinStudies()) {
    const auto study = ParseStudy(builtin.toml, std::string(builtin.name), "", {});
    std::cout << builtin.name;
    if (study.ok() && !study->title.empty()) {
      std::cout << std::string(builtin.name.size() < 16 ? 16 - builtin.name.size() : 1, ' ') << study->title;
    }
    std::cout << "\n";
  }
  return kDone;
}

absl::StatusOr<Study> Load(const Options& options) {
  if (options.study.empty() && options.matrix.empty()) {
    return absl::InvalidArgumentError(
        "name a scenario file or a built-in study (paceline study --list), or give --cm FILE");
  }
  std::vector<std::string> overrides = options.overrides;
  if (!options.matrix.empty()) {
    // Before the user's own, which may still change anything else.
    // Without quotes: whatever an absolute path is, it is no value of TOML, and so a text as it stands.
    const std::string path = std::filesystem::absolute(options.matrix).string();
    overrides.insert(overrides.begin(), {"workload.kind=\"connection_matrix\"", "workload.file=" + path});
    if (options.study.empty()) return ParseStudy("", "", "", overrides);
  }
  return LoadStudy(options.study, overrides);
}

std::string Quoted(const std::string& text) {
  const bool plain = text.find_first_of(" '\"$\\`*?[]{}();<>|&#~!") == std::string::npos;
  return plain ? text : "'" + absl::StrReplaceAll(text, {{"'", "'\\''"}}) + "'";
}

std::string RepeatCommand(const Options& options) {
  std::string command = "paceline study";
  if (!options.study.empty()) command += " " + Quoted(options.study);
  if (!options.matrix.empty()) command += " --cm " + Quoted(options.matrix);
  for (const std::string& set : options.overrides) command += " --set " + Quoted(set);
  return command;
}

std::string Report(const Options& options, const Study& study, const std::vector<std::vector<RunOutcome>>& runs) {
  ReportPage page;
  page.title = study.title;
  page.lead = study.lead;
  for (size_t i = 0; i < study.sections.size(); ++i) {
    ReportSection section;
    section.title = study.sections[i].title;
    section.shows = study.sections[i].shows;
    section.command = RepeatCommand(options);
    section.results = SectionToJson(study.sections[i], runs[i]);
    section.series = SeriesOf(runs[i]);
    page.sections.push_back(std::move(section));
  }
  return RenderReport(page);
}

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::InternalError(absl::StrCat("cannot write \"", path, "\": ", std::strerror(error)));
}

absl::Status WriteFile(const std::filesystem::path& path, const std::function<void(std::ostream&)>& fill) {
  std::ofstream file(path, std::ios::binary);
  if (file.is_open()) fill(file);
  file.close();
  return file.good() ? absl::OkStatus() : CannotWrite(path.string(), errno);
}

absl::Status WriteText(const std::filesystem::path& path, const std::string& text) {
  return WriteFile(path, [&text](std::ostream& file) { file << text; });
}

// Before there is anything to write; changes nothing. Empty and "-" are no file.
absl::Status CheckWritable(const std::string& path) {
  if (path.empty() || path == "-") return absl::OkStatus();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return CannotWrite(path, EISDIR);
  if (access(path.c_str(), W_OK) == 0) return absl::OkStatus();
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path() / ".";
  if (errno == ENOENT && access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return CannotWrite(path, errno);
}

// All that can be written is.
int Write(const Options& options, const Study& study, const std::vector<std::vector<RunOutcome>>& runs) {
  const std::string json = StudyToJson(study, runs).dump(2) + "\n";
  int exit_status = kDone;
  const auto written = [&exit_status](const absl::Status& status) {
    if (!status.ok()) exit_status = Complain(kFailed, std::string(status.message()));
    return status.ok();
  };
  if (!options.json.empty() && options.json != "-") written(WriteText(options.json, json));
  if (options.json == "-") {
    std::cout << json;
  } else {
    for (size_t i = 0; i < study.sections.size(); ++i) {
      if (i > 0) std::cout << "\n";
      if (!study.sections[i].title.empty()) std::cout << study.sections[i].title << "\n";
      std::cout << TableOf(study.sections[i], runs[i]);
    }
  }
  if (options.out.empty()) return exit_status;
  const std::filesystem::path out(options.out);
  written(WriteFile(out / "flows.csv", [&](std::ostream& csv) { WriteFlowsCsv(study, runs, csv); }));
  written(WriteText(out / "results.json", json));
  if (written(WriteText(out / "report.html", Report(options, study, runs))) && options.json != "-") {
    std::cout << "\nreport: " << (out / "report.html").string() << "\n";
  }
  return exit_status;
}

int ShowTraffic(const Options& options) {
  const absl::StatusOr<TrafficModel> model = LoadTrafficModel(options.traffic);
  if (!model.ok()) return Complain(kWrongUse, std::string(model.status().message()));
  const std::string json = TrafficJson(*model).dump(2) + "\n";
  if (options.json == "-") {
    std::cout << json;
    return kDone;
  }
  std::cout << TrafficTable(*model);
  const absl::Status status = options.json.empty() ? absl::OkStatus() : WriteText(options.json, json);
  return status.ok() ? kDone : Complain(kFailed, std::string(status.message()));
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  if (!path.empty()) std::filesystem::create_directories(path, error);
  return error ? absl::InternalError("cannot create \"" + path + "\": " + error.message()) : absl::OkStatus();
}

// The cores are shared by the ranks of this machine, where their launcher has not bound each to some.
unsigned DefaultJobs(unsigned local_ranks) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return local_ranks <= 1 ? cores : std::clamp(cores / local_ranks, 1u, AllowedCores());
}

// This process's part of a study, or all of it where there is no exchange. Rank 0 alone speaks and writes.
int RunStudy(const Options& options, RunExchange* exchange, unsigned local_ranks) {
  const bool first = exchange == nullptr || exchange->rank() == 0;
  const auto fail = [first](int exit_status, const absl::Status& why) {
    return first ? Complain(exit_status, std::string(why.message())) : exit_status;
  };
  const absl::StatusOr<Study> study = Load(options);
  absl::Status status = Agree(exchange, study.status());
  if (!status.ok()) return fail(kWrongUse, status);
  if (first) status = MakeFolder(options.out);
  if (first) status.Update(CheckWritable(options.json));
  status = Agree(exchange, status);
  if (!status.ok()) return fail(kFailed, status);
  ExecuteOptions execute;
  execute.jobs = options.jobs != 0 ? options.jobs : DefaultJobs(local_ranks);
  execute.show_progress = first && ErrorsGoToTerminal();
  execute.exchange = exchange;
  const auto runs = ExecuteStudy(*study, execute);
  if (!runs.ok()) return fail(kFailed, runs.status());
  if (!first) return kDone;
  if (const int written = Write(options, *study, *runs); written != kDone) return written;
  return std::all_of(runs->begin(), runs->end(), AllFinished) ? kDone : kFailed;
}

// As one of the processes that mpirun or srun started.
int RunAsRank(const Options& options, const LauncherRank& launched) {
  const auto exchange = OpenExchange(launched);
  if (!exchange.ok()) {
    if (launched.rank == 0) return Complain(kFailed, std::string(exchange.status().message()));
    // The launcher ends all when one fails: time for rank 0 to say why.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return kFailed;
  }
  const int status = RunStudy(options, exchange->get(), launched.local_ranks);
  std::cout.flush();  // for the same reason
  return AgreeOnExit(exchange->get(), status);
}

int RunStudyCommand(const Options& options) {
  const std::optional<LauncherRank> launched = FindMpiRank();
  if (options.list || !options.traffic.empty()) {
    if (launched && launched->rank != 0) return kDone;
    return options.list ? ListStudies() : ShowTraffic(options);
  }
  return launched ? RunAsRank(options, *launched) : RunStudy(options, nullptr, 1);
}

}  // namespace

CLI::App* AddStudyCommand(CLI::App& app, int* exit_status) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("study", "simulate a fabric under congestion and compare controllers");
  command->add_option("study", options->study, "scenario file (TOML), or the name of a built-in study");
  command->add_option("--set", options->overrides, "table.key=value: goes before what the file says; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--cm", options->matrix, "htsim connection matrix as the workload");
  command->add_option("--out", options->out, "folder for report.html, flows.csv and results.json");
  command->add_option("--json", options->json, "file for the results; - for standard output");
  command
      ->add_option("--jobs", options->jobs,
                   "runs at a time, of each process (default: as many as there are cores for it)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--traffic", options->traffic,
                      "bytes that an epoch of training moves: llama3-70b, or a TOML file with [model]");
  command->add_flag("--list", options->list, "name the built-in studies");
  command->callback([options, exit_status] { *exit_status = RunStudyCommand(*options); });
  return command;
}

}  // namespace paceline::tools
