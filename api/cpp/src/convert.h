// Between the API's types and the core's, and from absl::Status to the API's Status.
//
// Thread rule: pure functions.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "cc/registry.h"
#include "paceline/status.h"
#include "paceline/types.h"
#include "transport/core/types.h"

namespace paceline::api {

Status FromAbsl(const absl::Status& status);

paceline::LocalBuffer ToCore(const Buffer& buffer);
paceline::RemoteMemory ToCore(const RemoteMemory& remote);
RemoteMemory FromCore(const paceline::RemoteMemory& remote);
Completion FromCore(const paceline::Completion& completion);
PostResult FromCore(paceline::PostResult result);
// Of a connection that is over.
CloseCode FromCore(CloseReason reason);

// Texts as numbers, switches or words, as the algorithm's parameters want them. The error names the parameter.
Result<paceline::ParameterMap> ToParameters(const std::string& algorithm,
                                            const std::map<std::string, std::string>& texts);

}  // namespace paceline::api
