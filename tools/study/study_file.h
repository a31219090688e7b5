// A study as a file: the tables of one scenario, or several scenarios on one page.
//
//   title = "..."            lead = "..."          of the page; both may be left out
//   [fabric] [workload] ...                        as scenario.h has them
//   [[section]]                                    one per scenario: title, shows (a sentence), and any of the same
//                                                  tables, whose keys go before those outside
//   include = ["incast", "mine.toml"]              their sections come first; a study without sections is one. Tables
//                                                  of this file go before theirs
//
// Overrides ("fabric.hosts=64") go before everything, in every section. Without a section the file is one scenario.
//
// Thread rule: pure functions but for reading the file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/study/scenario.h"

namespace paceline::tools {

struct StudySection {
  std::string title;
  std::string shows;
  Scenario scenario;
};

struct Study {
  std::string title;
  std::string lead;
  std::vector<StudySection> sections;
  bool has_sections = false;  // false: one scenario, as the file has it
};

// `name` for messages ("incast.toml"; may be empty), `directory` where relative files start from.
absl::StatusOr<Study> ParseStudy(std::string_view text, const std::string& name, const std::string& directory,
                                 const std::vector<std::string>& overrides);
// `study`: the name of a built-in study, or a file.
absl::StatusOr<Study> LoadStudy(const std::string& study, const std::vector<std::string>& overrides);

}  // namespace paceline::tools
