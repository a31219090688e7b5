// Carries out an atomic on memory of this process.
//
// Elements of up to 8 bytes that are no complex numbers change atomically for everybody who touches them with atomic
// instructions. Longer ones, and complex numbers, change atomically for operations that come through this endpoint:
// its thread carries out one at a time.
//
// Thread rule: a function without state.
#pragma once

#include <cstdint>

#include "transport/base/atomic_operation.h"

namespace paceline {

// Works on `count` elements from `target` on, which is aligned to IsAligned's liking. `operands` and `compares` have as
// many, or are not looked at where `op` needs none; they need no alignment. `results`, if not nullptr, gets the values
// before, and may be `operands`.
void ApplyAtomic(AtomicOp op, AtomicType type, uint32_t count, uint8_t* target, const uint8_t* operands,
                 const uint8_t* compares, uint8_t* results);

// May an atomic work there? Numbers are aligned to their size, complex ones to that of their parts.
bool IsAligned(AtomicType type, const uint8_t* target);

}  // namespace paceline
