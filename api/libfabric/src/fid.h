// What all objects of the provider are built from: libfabric's structures as base classes, calls that are not
// supported, and errors as libfabric numbers them.
//
// Thread rule: values and pure functions.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "paceline/status.h"
#include "paceline/types.h"

namespace paceline::libfabric {

using api::PostResult;

// In a table of calls: answers -FI_ENOSYS, whatever the call.
struct NotSupported {
  template <typename Result, typename... Arguments>
  using Call = Result (*)(Arguments...);
  template <typename Result, typename... Arguments>
  constexpr operator Call<Result, Arguments...>() const {  // NOLINT: implicit on purpose
    return [](Arguments...) -> Result { return static_cast<Result>(-FI_ENOSYS); };
  }
};

// The calls of an object that can be closed and nothing else.
constexpr fi_ops OnlyClose(int (*close)(fid*)) {
  return {.size = sizeof(fi_ops),
          .close = close,
          .bind = NotSupported(),
          .control = NotSupported(),
          .ops_open = NotSupported()};
}

// The object of class `Object` whose libfabric structure `Base` begins with `fid`.
template <typename Object, typename Base>
Object* FromFid(fid* object) {
  return static_cast<Object*>(reinterpret_cast<Base*>(object));
}

int ErrorOf(const api::Status& status);    // positive, FI_E*
ssize_t ResultOf(PostResult result);       // 0 or negative
int ErrorOf(api::OperationStatus status);  // positive; FI_SUCCESS for kOk
// Positive: why an attempt to connect has come to nothing.
int ErrorOf(api::CloseCode code);

}  // namespace paceline::libfabric
