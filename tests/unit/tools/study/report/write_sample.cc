// Writes sample pages of the report for a person to look at: paceline_study_report_sample FOLDER
#include <fstream>
#include <iostream>

#include "tests/unit/tools/study/report/sample_data.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: paceline_study_report_sample FOLDER\n";
    return 2;
  }
  const std::string folder = argv[1];
  const auto one = paceline::tools::SampleSection({});
  paceline::tools::SampleOptions single;
  single.algorithms = {"tita"};
  single.seeds = 1;
  const auto alone = paceline::tools::SampleSection(single);
  std::ofstream(folder + "/one.html") << paceline::tools::RenderReport(one.results, one.series);
  std::ofstream(folder + "/single_run.html") << paceline::tools::RenderReport(alone.results, alone.series);
  std::ofstream many(folder + "/many.html");
  many << paceline::tools::RenderReport(paceline::tools::SamplePage());
  return many.good() ? 0 : 1;
}
