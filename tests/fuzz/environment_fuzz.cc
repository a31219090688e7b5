// Feeds settings to what reads PACELINE_* from the environment: lines of NAME=VALUE, NAME without its prefix. Each is
// taken or refused with a message that names the variable.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "paceline/options.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> settings;
  for (std::string line; std::getline(lines, line);) {
    if (line.find('=') == std::string::npos || line.find('\0') != std::string::npos) continue;
    settings.push_back("PACELINE_" + line);
  }
  // putenv, as setenv keeps a copy of each value that there ever was (environ(7), glibc): some hundred bytes a run.
  for (std::string& setting : settings) putenv(setting.data());
  const auto options = paceline::api::ContextOptions::FromEnvironment();
  if (options.ok()) {
    Require(options->link_gbps >= 0 && options->link_gbps <= 1e6);
  } else {
    Require(options.status().message().find("PACELINE_") != std::string::npos);
  }
  for (const std::string& setting : settings) unsetenv(setting.substr(0, setting.find('=')).c_str());
  return 0;
}
