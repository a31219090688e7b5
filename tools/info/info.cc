#include "tools/info/info.h"

#include <cstdio>
#include <memory>
#include <string>

#include "paceline/context.h"
#include "tools/info/gather.h"

namespace paceline::tools {
namespace {

void PrintList(const char* title, const nlohmann::json& list, const std::string& none) {
  std::printf("%s\n", title);
  if (list.empty()) std::printf("  none: %s\n", none.c_str());
  for (const nlohmann::json& one : list) {
    const bool usable = one.value("usable", false);
    std::string text = one.value("summary", "");
    if (one.contains("addresses")) {
      for (const auto& address : one["addresses"]) text += (text.empty() ? "" : ", ") + address.get<std::string>();
      text += (text.empty() ? "MTU " : "; MTU ") + std::to_string(one.value("mtu", 0));
      if (one.contains("gbps")) text += "; " + std::to_string(static_cast<int>(one["gbps"].get<double>())) + " Gb/s";
    }
    if (one.contains("path")) text += ": " + one["path"].get<std::string>();
    if (!usable && one.contains("reason")) text += (text.empty() ? "" : "; ") + one["reason"].get<std::string>();
    std::printf("  %-4s %-12s %s\n", usable ? "yes" : "no", one["name"].get<std::string>().c_str(), text.c_str());
  }
}

void PrintAlgorithms(const nlohmann::json& list) {
  std::printf("Congestion control\n");
  for (const nlohmann::json& algorithm : list) {
    std::printf("  %-17s %s\n", algorithm["name"].get<std::string>().c_str(),
                algorithm["summary"].get<std::string>().c_str());
    for (const nlohmann::json& parameter : algorithm["parameters"]) {
      const nlohmann::json& value = parameter["default"];
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      std::printf("      %-28s %10s %-6s %s\n", parameter["name"].get<std::string>().c_str(), text.c_str(),
                  parameter["unit"].get<std::string>().c_str(), parameter["meaning"].get<std::string>().c_str());
    }
  }
}

int Run(bool as_json) {
  const nlohmann::json all = {{"paceline", api::Version()},
                              {"lanes", GatherLanes()},
                              {"interfaces", GatherInterfaces()},
                              {"hcas", GatherHcas()},
                              {"gpus", GatherGpus()},
                              {"plugins", GatherPlugins()},
                              {"congestion_control", GatherAlgorithms()},
                              {"path_policies", GatherPathPolicies()},
                              {"contexts", GatherContexts()}};
  if (as_json) {
    // Names of folders and interfaces need not be UTF-8.
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return 0;
  }
  std::printf("Paceline %s\n\n", api::Version());
  PrintList("Lanes", all["lanes"], "");
  std::printf("\n");
  PrintList("Network interfaces (udp lane)", all["interfaces"], "no interface is to be seen");
  std::printf("\n");
  PrintList("RDMA cards", all["hcas"]["devices"], all["hcas"].value("reason", ""));
  std::printf("\n");
  PrintList("GPUs", all["gpus"]["devices"], all["gpus"].value("reason", ""));
  std::printf("\n");
  PrintList("Plugins", all["plugins"], "");
  std::printf("\n");
  PrintAlgorithms(all["congestion_control"]);
  std::printf("\n");
  PrintList("Path policies", all["path_policies"], "");
  if (!all["contexts"].empty()) {
    std::printf("\nRunning contexts (counters in shared memory)\n");
    for (const auto& one : all["contexts"]) std::printf("  %s\n", one["name"].get<std::string>().c_str());
  }
  return 0;
}

}  // namespace

CLI::App* AddInfoCommand(CLI::App& app, int* exit_status) {
  CLI::App* command =
      app.add_subcommand("info", "say what lanes, cards, GPUs and plugins are usable here, and why others are not");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "print JSON");
  command->callback([as_json, exit_status] { *exit_status = Run(*as_json); });
  return command;
}

}  // namespace paceline::tools
