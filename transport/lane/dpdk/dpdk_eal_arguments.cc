#include "transport/lane/dpdk/dpdk_eal_arguments.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace paceline {
namespace {

// Enough for some lanes with frames of 9000 bytes; pages that nobody touches cost nothing.
constexpr char kMegabytesWithoutHugepages[] = "256";

// "--name" alone and as "--name=value"; "-x" alone and as "-xvalue".
bool Names(const std::string& argument, const char* option) {
  const bool is_long = option[1] == '-';
  if (argument == option) return true;
  return is_long ? absl::StartsWith(argument, absl::StrCat(option, "=")) : absl::StartsWith(argument, option);
}

}  // namespace

std::vector<std::string> EalArguments(const DpdkMachine& machine, std::string_view own) {
  const std::vector<std::string> given = absl::StrSplit(std::string(own), ' ', absl::SkipWhitespace());
  const auto none_of = [&given](std::initializer_list<const char*> options) {
    return std::none_of(given.begin(), given.end(), [&options](const std::string& argument) {
      return std::any_of(options.begin(), options.end(),
                         [&argument](const char* option) { return Names(argument, option); });
    });
  };
  std::vector<std::string> arguments = {"paceline"};
  const auto add = [&arguments](std::initializer_list<std::string> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  if (none_of({"-l", "-c", "--lcores"})) {
    // DPDK has 128 lcores, and without the "@" only cores of these numbers.
    add({"--lcores", absl::StrCat("0@", machine.core)});
  }
  if (none_of({"--no-huge", "--in-memory", "--huge-dir", "--legacy-mem", "--huge-unlink", "--file-prefix",
               "--proc-type"})) {
    add({machine.has_hugepages ? "--in-memory" : "--no-huge"});
    if (!machine.has_hugepages && none_of({"-m"})) add({"-m", kMegabytesWithoutHugepages});
  }
  if (none_of({"--no-shconf", "--in-memory", "--file-prefix", "--proc-type"})) add({"--no-shconf"});
  if (none_of({"--telemetry", "--no-telemetry"})) add({"--no-telemetry"});
  if (none_of({"--log-level"})) add({"--log-level=*:error"});
  if (none_of({"-a", "--allow", "-b", "--block", "--no-pci"})) {
    if (machine.pci_devices.empty()) add({"--no-pci"});
    for (const std::string& device : machine.pci_devices) add({"-a", device});
  }
  arguments.insert(arguments.end(), given.begin(), given.end());
  return arguments;
}

}  // namespace paceline
