// The `paceline` command: its subcommands live in folders of their own. Exit status: 0 done, 1 failed, 2 wrong use.
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "paceline/context.h"
#include "tools/info/info.h"
#include "tools/perf/command.h"
#include "tools/study/command.h"

int main(int argc, char** argv) {
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
    const auto is_meant = [&](CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_meant).empty()) {
      std::cerr << "paceline: \"" << argv[1] << "\" is unknown; there are perf, study and info (see paceline --help)\n";
      return kWrongUse;
    }
    return app.exit(error) == 0 ? 0 : kWrongUse;
  }
  return exit_status;
}
