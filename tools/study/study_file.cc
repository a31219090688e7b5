#include "tools/study/study_file.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/study/table_reader.h"

namespace paceline::tools {
namespace {

absl::StatusOr<toml::table> ParseToml(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ":", error.source().begin.line, ": ", std::string(error.description())));
  }
}

// Keys of `over` go before those of `base`; tables are merged, everything else is replaced.
void Merge(const toml::table& over, toml::table& base) {
  for (const auto& [key, node] : over) {
    toml::table* below = base[key.str()].as_table();
    if (below != nullptr && node.is_table()) {
      Merge(*node.as_table(), *below);
    } else {
      base.insert_or_assign(key, node);
    }
  }
}

// The value of an override as TOML has it, or as a text where that makes no sense.
toml::table ParseValue(const std::string& text) {
  try {
    return toml::parse("value = " + text);
  } catch (const toml::parse_error&) {
    toml::table table;
    table.insert("value", text);
    return table;
  }
}

absl::Status ApplyOverride(const std::string& override_text, toml::table& table) {
  const size_t equals = override_text.find('=');
  const std::vector<std::string> path = absl::StrSplit(override_text.substr(0, equals), '.');
  if (equals == std::string::npos || path.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("--set ", override_text, ": must be table.key=value"));
  }
  toml::node* at = &table;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool last = i + 1 == path.size();
    if (toml::array* list = at->as_array()) {
      size_t index = 0;
      const auto [end, error] = std::from_chars(path[i].data(), path[i].data() + path[i].size(), index);
      if (error != std::errc() || end != path[i].data() + path[i].size() || index >= list->size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--set ", override_text, ": \"", path[i], "\" must be a number below ", list->size()));
      }
      at = list->get(index);
      continue;
    }
    toml::table* inner = at->as_table();
    if (inner == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("--set ", override_text, ": \"", path[i - 1], "\" is no table"));
    }
    if (last) {
      const toml::table value = ParseValue(override_text.substr(equals + 1));
      inner->insert_or_assign(path[i], *value.get("value"));
      return absl::OkStatus();
    }
    if (!inner->contains(path[i])) inner->insert(path[i], toml::table());
    at = inner->get(path[i]);
  }
  return absl::InvalidArgumentError(absl::StrCat("--set ", override_text, ": must name a key"));
}

}  // namespace

absl::StatusOr<Study> ParseStudy(std::string_view text, const std::string& name, const std::string& directory,
                                 const std::vector<std::string>& overrides) {
  absl::StatusOr<toml::table> parsed = ParseToml(text, name);
  if (!parsed.ok()) return parsed.status();
  Study study;
  const auto take_text = [](toml::table& table, const char* key) {
    const std::string value = table[key].value_or(std::string());
    table.erase(key);
    return value;
  };
  study.title = take_text(*parsed, "title");
  study.lead = take_text(*parsed, "lead");
  std::vector<toml::table> sections;
  if (const toml::node* node = parsed->get("section")) {
    if (!node->is_array()) return absl::InvalidArgumentError("section must be a list of tables: [[section]]");
    for (const toml::node& element : *node->as_array()) {
      if (!element.is_table()) return absl::InvalidArgumentError("section must be a list of tables: [[section]]");
      sections.push_back(*element.as_table());
    }
    parsed->erase("section");
    study.has_sections = true;
  }
  if (sections.empty()) sections.emplace_back();
  for (toml::table& own : sections) {
    StudySection section;
    section.title = take_text(own, "title");
    section.shows = take_text(own, "shows");
    toml::table merged = *parsed;
    Merge(own, merged);
    for (const std::string& override_text : overrides) {
      if (absl::Status status = ApplyOverride(override_text, merged); !status.ok()) return status;
    }
    absl::StatusOr<Scenario> scenario = LoadScenario(merged, directory);
    if (!scenario.ok()) {
      std::string where = name;
      if (!section.title.empty()) absl::StrAppend(&where, ", section \"", section.title, "\"");
      if (!where.empty()) where += ": ";
      return absl::Status(scenario.status().code(), where + std::string(scenario.status().message()));
    }
    section.scenario = *std::move(scenario);
    study.sections.push_back(std::move(section));
  }
  return study;
}

absl::StatusOr<Study> LoadStudy(const std::string& path, const std::vector<std::string>& overrides) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad()) return absl::NotFoundError(absl::StrCat("cannot read \"", path, "\""));
  return ParseStudy(text.str(), path, std::filesystem::path(path).parent_path().string(), overrides);
}

}  // namespace paceline::tools
