#include "tools/study/topology_file.h"

#include <toml++/toml.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/study/read_file.h"

namespace paceline::tools {
namespace {

using nlohmann::json;

constexpr uint64_t kMostLinks = 1 << 20;

class Parser {
 public:
  Parser(const std::string& path, const json& file) : path_(path), file_(file) {}

  absl::StatusOr<sim::Graph> Parse(double link_gbps, int64_t link_delay_ns) {
    if (!file_.is_object()) return Wrong("must be a table with hosts, switches and link");
    for (const auto& [key, value] : file_.items()) {
      if (key != "hosts" && key != "switches" && key != "link") {
        return Wrong(absl::StrCat(key, " is not known; there are hosts, switches, link"));
      }
    }
    if (absl::Status status = Names("hosts", "h", &graph_.hosts); !status.ok()) return status;
    if (absl::Status status = Names("switches", "s", &graph_.switches); !status.ok()) return status;
    const auto links = file_.find("link");
    if (links == file_.end() || !links->is_array()) return Wrong("link must be a list of tables");
    for (size_t i = 0; i < links->size(); ++i) {
      if (absl::Status status = Link((*links)[i], absl::StrCat("link ", i + 1), link_gbps, link_delay_ns);
          !status.ok()) {
        return status;
      }
    }
    return std::move(graph_);
  }

 private:
  absl::Status Wrong(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("fabric.topology_file ", path_, ": ", what));
  }

  // A list of names, or how many.
  absl::Status Names(const std::string& key, const std::string& prefix, std::vector<std::string>* names) {
    const auto found = file_.find(key);
    if (found == file_.end()) return Wrong(key + " is missing: a list of names, or how many");
    if (found->is_number_integer() && *found >= 1 && *found <= 65536) {
      for (int i = 0; i < found->get<int>(); ++i) names->push_back(absl::StrCat(prefix, i));
    } else if (found->is_array()) {
      for (const json& name : *found) {
        if (!name.is_string()) return Wrong(key + " must be a list of names, or how many");
        names->push_back(name.get<std::string>());
      }
    } else {
      return Wrong(key + " must be a list of names, or how many");
    }
    for (const std::string& name : *names) {
      if (!numbers_.emplace(name, numbers_.size()).second) return Wrong(absl::StrCat("there are two \"", name, "\""));
    }
    return absl::OkStatus();
  }

  absl::Status Link(const json& table, const std::string& where, double link_gbps, int64_t link_delay_ns) {
    if (!table.is_object()) return Wrong(where + " must be a table");
    sim::GraphLink link{.gbps = link_gbps, .delay_ns = link_delay_ns};
    uint64_t count = 1;
    bool placed = false;
    for (const auto& [key, value] : table.items()) {
      if (key == "between" && value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
        for (size_t end = 0; end < 2; ++end) {
          const auto node = numbers_.find(value[end].get<std::string>());
          if (node == numbers_.end()) {
            return Wrong(absl::StrCat(where, ": there is no host or switch \"", value[end].get<std::string>(), "\""));
          }
          (end == 0 ? link.a : link.b) = static_cast<uint32_t>(node->second);
        }
        placed = true;
      } else if (key == "gbps" && value.is_number() && value >= 0.001 && value <= 10000) {
        link.gbps = value.get<double>();
      } else if (key == "delay_ns" && value.is_number_integer() && value >= 0 && value <= 1'000'000'000) {
        link.delay_ns = value.get<int64_t>();
      } else if (key == "count" && value.is_number_integer() && value >= 1 && value <= 1024) {
        count = value.get<uint64_t>();
      } else {
        return Wrong(
            absl::StrCat(where, ": ", key,
                         " is not known or out of range; there are between (two names), gbps (0.001 to 10000), "
                         "delay_ns (0 to 10^9), count (1 to 1024)"));
      }
    }
    if (!placed) return Wrong(where + ": between is missing: the names of its two ends");
    if (graph_.links.size() + count > kMostLinks) return Wrong(absl::StrCat("more than ", kMostLinks, " links"));
    graph_.links.insert(graph_.links.end(), count, link);
    return absl::OkStatus();
  }

  const std::string& path_;
  const json& file_;
  sim::Graph graph_;
  std::map<std::string, size_t> numbers_;  // hosts first, then switches
};

}  // namespace

absl::StatusOr<sim::Graph> LoadTopologyFile(const std::string& path, double link_gbps, int64_t link_delay_ns) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    return absl::NotFoundError(
        absl::StrCat("fabric.topology_file ", path, " cannot be read: ", text.status().message()));
  }
  json file;
  if (path.size() > 5 && path.substr(path.size() - 5) == ".json") {
    file = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (file.is_discarded()) {
      return absl::InvalidArgumentError(absl::StrCat("fabric.topology_file ", path, " is no JSON"));
    }
  } else {
    try {
      std::stringstream as_json;
      as_json << toml::json_formatter(toml::parse(*text, path));
      file = json::parse(as_json.str(), nullptr, /*allow_exceptions=*/false);
    } catch (const toml::parse_error& error) {
      return absl::InvalidArgumentError(absl::StrCat("fabric.topology_file ", path, ":", error.source().begin.line,
                                                     ": ", std::string(error.description())));
    }
  }
  return Parser(path, file).Parse(link_gbps, link_delay_ns);
}

}  // namespace paceline::tools
