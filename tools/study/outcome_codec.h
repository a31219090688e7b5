// The outcome of a run as bytes, for the way from one process of a study to another: CBOR (RFC 8949) of all fields but
// the workload, which the scenario and the seed give again, and behind it the CRC-32C of that, lowest byte first. No
// format for files: both ends are the same Paceline.
//
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/study/run.h"
#include "tools/study/scenario.h"

namespace paceline::tools {

std::string EncodeOutcome(const RunOutcome& outcome);

// Refuses bytes that are damaged, of another Paceline, or of another run than that of this algorithm and seed.
absl::StatusOr<RunOutcome> DecodeOutcome(std::string_view bytes, const Scenario& scenario,
                                         const AlgorithmChoice& algorithm, uint64_t seed);

}  // namespace paceline::tools
