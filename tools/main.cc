// The `paceline` command: its subcommands live in folders of their own. Exit status: 0 done, 1 failed, 2 wrong use.
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
    return app.exit(error) == 0 ? 0 : kWrongUse;
  }
  return exit_status;
}
