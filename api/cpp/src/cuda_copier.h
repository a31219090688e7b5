// Copies of memory of GPUs for the engine, by the CUDA driver, which is loaded when the first such memory is
// registered.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "gpudirect/device_copy.h"
#include "paceline/status.h"
#include "transport/engine/engine.h"

namespace paceline::api {

class CudaCopier final : public DeviceCopier {
 public:
  // Makes copies of this GPU's memory possible, for good. kUnavailable: there is no driver, or no such GPU, or it has
  // nothing left for them.
  Status Prepare(int device);

  bool FromDevice(int device, void* to, const void* from, size_t bytes) override;
  bool ToDevice(int device, void* to, const void* from, size_t bytes) override;

 private:
  absl::flat_hash_map<int, std::unique_ptr<gpudirect::DeviceCopy>> copies_;  // by ordinal
};

}  // namespace paceline::api
