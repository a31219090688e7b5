#include "tools/study/study_file.h"

#include <charconv>
#include <filesystem>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/study/builtin.h"
#include "tools/study/read_file.h"
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

// How deep studies may include each other.
constexpr int kMostIncludes = 4;

std::string TakeText(toml::table& table, const char* key) {
  const std::string value = table[key].value_or(std::string());
  table.erase(key);
  return value;
}

// A study before its scenarios are made.
struct Draft {
  struct Section {
    std::string title;
    std::string shows;
    std::string where;      // for messages
    std::string directory;  // where relative files start from
    toml::table tables;
  };
  std::string title;
  std::string lead;
  std::vector<Section> sections;
  bool has_sections = false;
};

struct StudyText {
  std::string text;
  std::string directory;
};

// `study`: the name of a built-in one, or a file, relative to `directory`.
absl::StatusOr<StudyText> FindStudy(const std::string& study, const std::string& directory) {
  std::string names;
  for (const BuiltinStudy& builtin : BuiltinStudies()) {
    if (study == builtin.name) return StudyText{std::string(builtin.toml), ""};
    names += (names.empty() ? "" : ", ") + std::string(builtin.name);
  }
  const std::filesystem::path path = std::filesystem::path(directory) / study;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && study.find('/') == std::string::npos &&
      study.find(".toml") == std::string::npos) {
    return absl::NotFoundError("there is no file and no built-in study \"" + study + "\"; built in are " + names);
  }
  absl::StatusOr<std::string> text = ReadFile(path.string());
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat("cannot read \"", path.string(), "\": ", text.status().message()));
  }
  return StudyText{*std::move(text), path.parent_path().string()};
}

absl::StatusOr<Draft> DraftOf(std::string_view text, const std::string& name, const std::string& directory, int depth);

// Appends the sections of the studies that `include` names.
absl::Status Include(const toml::node& include, const std::string& directory, int depth, Draft* draft) {
  const absl::Status wrong = absl::InvalidArgumentError("include must be a list of names of studies and files");
  if (!include.is_array()) return wrong;
  if (depth == kMostIncludes) {
    return absl::InvalidArgumentError(absl::StrCat("studies include each other more than ", kMostIncludes, " deep"));
  }
  for (const toml::node& element : *include.as_array()) {
    const std::optional<std::string> name = element.value<std::string>();
    if (!name.has_value()) return wrong;
    const absl::StatusOr<StudyText> found = FindStudy(*name, directory);
    if (!found.ok()) return found.status();
    absl::StatusOr<Draft> part = DraftOf(found->text, *name, found->directory, depth + 1);
    if (!part.ok()) return part.status();
    for (Draft::Section& section : part->sections) {
      if (!part->has_sections) {
        section.title = part->title;
        section.shows = part->lead;
      } else if (!part->title.empty()) {
        section.title = part->title + ": " + section.title;
      }
      draft->sections.push_back(std::move(section));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Draft> DraftOf(std::string_view text, const std::string& name, const std::string& directory, int depth) {
  absl::StatusOr<toml::table> parsed = ParseToml(text, name);
  if (!parsed.ok()) return parsed.status();
  Draft draft;
  draft.title = TakeText(*parsed, "title");
  draft.lead = TakeText(*parsed, "lead");
  if (const toml::node* include = parsed->get("include")) {
    if (absl::Status status = Include(*include, directory, depth, &draft); !status.ok()) return status;
    parsed->erase("include");
    draft.has_sections = true;
  }
  const size_t included = draft.sections.size();
  if (const toml::node* node = parsed->get("section")) {
    const absl::Status wrong = absl::InvalidArgumentError("section must be a list of tables: [[section]]");
    if (!node->is_array()) return wrong;
    for (const toml::node& element : *node->as_array()) {
      if (!element.is_table()) return wrong;
      toml::table own = *element.as_table();
      Draft::Section section{.where = name, .directory = directory};
      section.title = TakeText(own, "title");
      section.shows = TakeText(own, "shows");
      if (!section.title.empty()) absl::StrAppend(&section.where, ", section \"", section.title, "\"");
      section.tables = std::move(own);
      draft.sections.push_back(std::move(section));
    }
    parsed->erase("section");
    draft.has_sections = true;
  }
  if (draft.sections.empty()) draft.sections.push_back({.where = name, .directory = directory});
  // A file's tables count for its own sections where these say nothing, and go before what it includes.
  for (size_t i = 0; i < draft.sections.size(); ++i) {
    toml::table& tables = draft.sections[i].tables;
    if (i < included) {
      Merge(*parsed, tables);
    } else {
      toml::table merged = *parsed;
      Merge(tables, merged);
      tables = std::move(merged);
    }
  }
  return draft;
}

}  // namespace

absl::StatusOr<Study> ParseStudy(std::string_view text, const std::string& name, const std::string& directory,
                                 const std::vector<std::string>& overrides) {
  absl::StatusOr<Draft> draft = DraftOf(text, name, directory, 0);
  if (!draft.ok()) return draft.status();
  Study study{.title = draft->title, .lead = draft->lead, .has_sections = draft->has_sections};
  for (Draft::Section& part : draft->sections) {
    for (const std::string& override_text : overrides) {
      if (absl::Status status = ApplyOverride(override_text, part.tables); !status.ok()) return status;
    }
    absl::StatusOr<Scenario> scenario = LoadScenario(part.tables, part.directory);
    if (!scenario.ok()) {
      const std::string where = part.where.empty() ? "" : part.where + ": ";
      return absl::Status(scenario.status().code(), where + std::string(scenario.status().message()));
    }
    study.sections.push_back({part.title, part.shows, *std::move(scenario)});
  }
  return study;
}

absl::StatusOr<Study> LoadStudy(const std::string& study, const std::vector<std::string>& overrides) {
  const absl::StatusOr<StudyText> found = FindStudy(study, "");
  if (!found.ok()) return found.status();
  return ParseStudy(found->text, study, found->directory, overrides);
}

}  // namespace paceline::tools
