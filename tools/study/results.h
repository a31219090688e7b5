// What a study writes: the JSON of its runs, flows.csv, the table for the terminal, and the series for the report. The
// keys are a contract with the scripts that read them (docs/study.md): extend, do not change.
//
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tools/study/report/report.h"
#include "tools/study/run.h"
#include "tools/study/study_file.h"

namespace paceline::tools {

nlohmann::json RunToJson(const RunOutcome& run);

// {"paceline": version, "scenario": ..., "runs": [...]}
nlohmann::json SectionToJson(const StudySection& section, const std::vector<RunOutcome>& runs);

// One scenario: as SectionToJson. Several: "sections" has one such object each with its title, and "runs" all runs with
// the title of their section in "section".
nlohmann::json StudyToJson(const Study& study, const std::vector<std::vector<RunOutcome>>& runs);

ReportSeries SeriesOf(const std::vector<RunOutcome>& runs);

void WriteFlowsCsv(const Study& study, const std::vector<std::vector<RunOutcome>>& runs, std::ostream& out);

// A line per algorithm; with several seeds the mean completion, the sum of drops and trims, the worst of the rest.
std::string TableOf(const StudySection& section, const std::vector<RunOutcome>& runs);

bool AllFinished(const std::vector<RunOutcome>& runs);

}  // namespace paceline::tools
