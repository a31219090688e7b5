// libibverbs as VerbsCalls. The library is loaded when the first lane asks for it: a machine without it runs the same
// binary, and is told why it has no verbs lane.
//
// Thread rule: LoadVerbsLibrary may be called from any thread.
#pragma once

#include "absl/status/statusor.h"
#include "transport/lane/verbs/verbs_calls.h"

namespace paceline {

// Stays loaded until the process ends; the same object each time. The error says what is missing.
absl::StatusOr<VerbsCalls*> LoadVerbsLibrary();

}  // namespace paceline
