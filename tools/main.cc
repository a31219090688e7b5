// The `paceline` command: its subcommands live in folders of their own. Exit status: 0 done, 1 failed, 2 wrong use.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "paceline/context.h"
#include "tools/info/info.h"
#include "tools/perf/command.h"
#include "tools/study/command.h"

namespace {

// What to say of the first word that names no command where one is wanted; empty: every word does.
std::string UnknownCommand(const CLI::App& app, std::span<char* const> words) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  for (const std::string word : words) {
    const std::vector<const CLI::App*> choices = command->get_subcommands([](const CLI::App*) { return true; });
    if (choices.empty() || word.starts_with('-')) return "";
    const auto named = [&](const CLI::App* choice) { return choice->get_name() == word; };
    const auto chosen = std::find_if(choices.begin(), choices.end(), named);
    if (chosen == choices.end()) {
      std::string names;
      for (const CLI::App* choice : choices) names += (names.empty() ? "" : ", ") + choice->get_name();
      return path + ": \"" + word + "\" is unknown; there are " + names + " (see " + path + " --help)\n";
    }
    command = *chosen;
    path += " " + word;
  }
  return "";
}

// A standard stream that was closed is held by a file that refuses what the stream is for. Else the next socket would
// have its number, and get what is printed.
void HoldStandardStreams() {
  for (const int stream : {0, 1, 2}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
  }
}

// The status to end with: what was printed (std::cout has no buffer of its own) has to arrive, too.
int Ended(int exit_status) {
  const bool flushed = std::fflush(stdout) == 0;
  const std::string why = flushed ? "" : std::string(": ") + std::strerror(errno);
  if (flushed && std::ferror(stdout) == 0) return exit_status;
  std::cerr << "paceline: cannot write standard output" << why << "\n";
  constexpr int kFailed = 1;
  return exit_status != 0 ? exit_status : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  HoldStandardStreams();
  CLI::App app("Paceline: an RDMA transport with congestion control, its measurements and its studies", "paceline");
  app.set_version_flag("--version", std::string("paceline ") + paceline::api::Version());
  app.require_subcommand(1);
  int exit_status = 0;
  paceline::tools::AddPerfCommand(app, &exit_status);
  paceline::tools::AddStudyCommand(app, &exit_status);
  paceline::tools::AddInfoCommand(app, &exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    constexpr int kWrongUse = 2;
    if (const std::string unknown = UnknownCommand(app, std::span(argv + 1, argv + argc)); !unknown.empty()) {
      std::cerr << unknown;
      return kWrongUse;
    }
    return Ended(app.exit(error) == 0 ? 0 : kWrongUse);
  }
  return Ended(exit_status);
}
