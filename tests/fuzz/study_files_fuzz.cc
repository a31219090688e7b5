// Feeds text to what reads a user's files for studies: a scenario or study in TOML, a connection matrix. Each is taken
// or refused with a message; the flows of a matrix that is taken lie within it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tools/study/connection_matrix.h"
#include "tools/study/study_file.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paceline::tools;  // NOLINT: one small program
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Files that a study names are not of interest here, and some are endless.
  for (const std::string_view word : {"file", "include", "matrix", "sizes"}) {
    if (text.find(word) != std::string_view::npos) return 0;
  }
  const auto matrix = ParseConnectionMatrix(text, "input");
  if (matrix.ok()) {
    for (const Flow& flow : matrix->workload.flows) {
      Require(flow.source < matrix->nodes && flow.destination < matrix->nodes && flow.bytes > 0);
    }
  } else {
    Require(matrix.status().message().find("input:") == 0);
  }
  const auto study = ParseStudy(text, "input", "/nonexistent", {});
  if (study.ok()) {
    Require(!study->sections.empty());
  } else {
    Require(!study.status().message().empty());
  }
  return 0;
}
