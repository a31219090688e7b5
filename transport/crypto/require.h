// For calls of OpenSSL that fail only where the library is broken, lacks a cipher that everybody has, or is out of
// memory: nothing safe can be done instead of ending the process.
//
// Thread rule: a function without state.
#pragma once

#include <cstdlib>

namespace paceline::crypto {

inline void Require(bool done) {
  if (!done) std::abort();
}

}  // namespace paceline::crypto
