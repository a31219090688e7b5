// What a user sets from outside the program: PACELINE_* in the environment, and for some of these variables a parameter
// of libfabric's own kind too, which `fi_info -e` lists and FI_PACELINE_* in the environment sets.
//
// Thread rule: DefineParameters once, when libfabric loads the provider; Setting from any thread.
#pragma once

namespace paceline::libfabric {

// Tells libfabric of the parameters.
void DefineParameters();

// The text of a variable ("PACELINE_LANE"): the environment's, else the parameter's. nullptr: neither is set.
const char* Setting(const char* variable);

}  // namespace paceline::libfabric
