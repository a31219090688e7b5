// Messages go where NCCL's own go: through the logger that it passed to init, under NET. Before that nothing is said.
//
// Thread rule: any thread.
#pragma once

#include <string>

#include "api/nccl/src/abi.h"

namespace paceline::nccl {

void SetLogger(abi::Logger logger);

void Log(abi::LogLevel level, const std::string& text, const char* file, int line);

// NCCL prints warnings with NCCL_DEBUG=WARN and up, information with INFO.
inline void Warn(const std::string& text, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  Log(abi::LogLevel::kWarn, text, file, line);
}
inline void Inform(const std::string& text, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  Log(abi::LogLevel::kInfo, text, file, line);
}

}  // namespace paceline::nccl
