// The rules of the house that a compiler does not check. Each function returns complaints, "path:line: what is wrong",
// and none for a tree in order. Single thread, no state.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/tidy/source_tree.h"

namespace paceline::tidy {

using Complaints = std::vector<std::string>;

// Who may include whom: see the table in tree_rules.cc.
Complaints CheckLayers(const SourceFile& file);

// The protocol and the congestion controllers read no clock, environment or random device, start no thread, do no I/O:
// that is what lets the same code run in the simulator and on a network card.
Complaints CheckPurity(const SourceFile& file);

// No #if for features: CMake chooses files.
Complaints CheckConditionals(const SourceFile& file);

// At most 1000 lines; a header has #pragma once and opens with a comment that says what it is for; nothing is left to
// do.
Complaints CheckShape(const SourceFile& file);

// A .cc or .c that no build file names, a header that nobody includes.
Complaints CheckDeadFiles(const SourceTree& tree);

}  // namespace paceline::tidy
