// How each kind of workload is loaded; the registry's list, and nobody else's.
// Thread rule: control path.
#pragma once

#include <memory>

#include "tools/study/workloads/pattern.h"

namespace paceline::tools {

using LoadedPattern = std::unique_ptr<const Pattern>;

LoadedPattern LoadIncast(PatternReader& reader);
LoadedPattern LoadVictim(PatternReader& reader);
LoadedPattern LoadAllToAll(PatternReader& reader);
LoadedPattern LoadPermutation(PatternReader& reader);
LoadedPattern LoadMatrix(PatternReader& reader);
LoadedPattern LoadAllReduce(PatternReader& reader);
LoadedPattern LoadAllReduceRing(PatternReader& reader);
LoadedPattern LoadAllReduceTree(PatternReader& reader);
LoadedPattern LoadAllReduceTwoLevel(PatternReader& reader);
LoadedPattern LoadReduceScatter(PatternReader& reader);
LoadedPattern LoadAllGather(PatternReader& reader);
LoadedPattern LoadBroadcast(PatternReader& reader);
LoadedPattern LoadPipeline(PatternReader& reader);
LoadedPattern LoadMoe(PatternReader& reader);
LoadedPattern LoadStorage(PatternReader& reader);
LoadedPattern LoadPoisson(PatternReader& reader);
LoadedPattern LoadTrainingStep(PatternReader& reader);

}  // namespace paceline::tools
