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
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos || line.find('\0') != std::string::npos) continue;
    names.push_back("PACELINE_" + line.substr(0, equals));
    setenv(names.back().c_str(), line.substr(equals + 1).c_str(), 1);
  }
  const auto options = paceline::api::ContextOptions::FromEnvironment();
  if (options.ok()) {
    Require(options->link_gbps >= 0 && options->link_gbps <= 1e6);
  } else {
    Require(options.status().message().find("PACELINE_") != std::string::npos);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
  return 0;
}
