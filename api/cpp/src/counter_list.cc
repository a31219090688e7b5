#include "api/cpp/src/counter_list.h"

namespace paceline::api {

std::vector<Counter> ListCounters(Engine& engine, const std::vector<const ImpairLane*>& impaired, size_t first_port) {
  std::vector<Counter> list;
#define PACELINE_LIST(name, unit, meaning) list.push_back({prefix + #name, unit, meaning, 0});
  {
    const std::string prefix;
    PACELINE_ENDPOINT_COUNTERS(PACELINE_LIST)
  }
  for (size_t port = 0; port < engine.lanes().size(); ++port) {
    const std::string name = "port" + std::to_string(first_port + port);
    {
      const std::string prefix = name + "_";
      PACELINE_LANE_COUNTERS(PACELINE_LIST)
    }
    if (!impaired.empty()) {
      const std::string prefix = name + "_impair_";
      PACELINE_IMPAIR_COUNTERS(PACELINE_LIST)
    }
  }
#undef PACELINE_LIST
  size_t at = 0;
  ForEachCounterValue(engine, impaired, [&](uint64_t value) { list[at++].value = value; });
  return list;
}

}  // namespace paceline::api
