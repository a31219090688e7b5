#include "api/libfabric/src/parameters.h"

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "api/libfabric/src/fabric.h"

namespace paceline::libfabric {
namespace {

struct Parameter {
  std::string_view variable;
  const char* name;
  const char* help;
};

constexpr Parameter kParameters[] = {
    {"PACELINE_LANE", "lane", "How ports are driven: auto, udp, shm, verbs, xdp or dpdk (PACELINE_LANE)"},
    {"PACELINE_BIND", "bind", "Interfaces or addresses, comma separated, that make one domain (PACELINE_BIND)"},
    {"PACELINE_KEY_FILE", "key_file", "The file with the cluster key, or none (PACELINE_KEY_FILE)"},
    {"PACELINE_ENCRYPT", "encrypt", "1: payloads are encrypted, where there is a key (PACELINE_ENCRYPT)"},
    {"PACELINE_CC", "cc", "Algorithm of congestion control, the same at both ends (PACELINE_CC)"},
    {"PACELINE_CC_PARAMETERS", "cc_parameters", "key=value,key=value of that algorithm (PACELINE_CC_PARAMETERS)"},
};

}  // namespace

void DefineParameters() {
  for (const Parameter& parameter : kParameters) {
    if (const int error = fi_param_define(Provider(), parameter.name, FI_PARAM_STRING, "%s", parameter.help)) {
      FI_WARN(Provider(), FI_LOG_CORE, "parameter %s: %s\n", parameter.name, fi_strerror(-error));
    }
  }
}

const char* Setting(const char* variable) {
  if (const char* text = std::getenv(variable)) return text;
  const auto* parameter = std::ranges::find(kParameters, variable, &Parameter::variable);
  char* text = nullptr;
  if (parameter == std::end(kParameters) ||
      fi_param_get_str(const_cast<fi_provider*>(Provider()), parameter->name, &text) != 0) {
    return nullptr;
  }
  return text;
}

}  // namespace paceline::libfabric
