#include "api/nccl/src/log.h"

#include <atomic>
#include <cstring>

namespace paceline::nccl {
namespace {

std::atomic<abi::Logger> logger{nullptr};

}  // namespace

void SetLogger(abi::Logger value) { logger.store(value); }

void Log(abi::LogLevel level, const std::string& text, const char* file, int line) {
  const abi::Logger log = logger.load();
  if (log == nullptr) return;
  const char* name = std::strrchr(file, '/');
  log(level, abi::kLogInit | abi::kLogNet, name == nullptr ? file : name + 1, line, "NET/Paceline : %s", text.c_str());
}

}  // namespace paceline::nccl
