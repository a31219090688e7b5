// How the processes of a study stay together: what fails in one fails in all, with the same words.
//
// Thread rule: main thread; collective where there is an exchange (run_exchange.h). Without one (null) this process is
// alone, and nothing is exchanged.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/study/ranks/run_exchange.h"

namespace paceline::tools {

// OK when all ranks give OK, else the error of the lowest rank that has one; that of another than rank 0 begins with
// the rank and its machine. The same at every rank.
absl::Status Agree(RunExchange* exchange, const absl::Status& own);

// An error at every rank when one of them gives another text than rank 0; `what` is different, then.
absl::Status AgreeOnSame(RunExchange* exchange, const std::string& text, const std::string& what);

// Rank 0's exit status.
int AgreeOnExit(RunExchange* exchange, int own);

}  // namespace paceline::tools
