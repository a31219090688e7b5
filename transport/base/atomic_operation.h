// Which operation an atomic carries out on each element of its target, and what the elements are. The numbers travel.
//
// Thread rule: values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace paceline {

// `t` the target's element, `o` the operand, `c` what is compared with or the mask.
enum class AtomicOp : uint8_t {
  kMin = 0,         // t = min(t, o)
  kMax = 1,         // t = max(t, o)
  kSum = 2,         // t = t + o; integers wrap
  kProduct = 3,     // t = t * o; integers wrap
  kLogicalOr = 4,   // t = t || o: 0 or 1
  kLogicalAnd = 5,  // t = t && o
  kBitOr = 6,       // t = t | o
  kBitAnd = 7,      // t = t & o
  kLogicalXor = 8,  // t = !t != !o
  kBitXor = 9,      // t = t ^ o
  kRead = 10,       // no operand
  kWrite = 11,      // t = o
  // With a second vector, c: t = o if ...
  kSwapIfEqual = 12,           // c == t
  kSwapIfNotEqual = 13,        // c != t
  kSwapIfLessOrEqual = 14,     // c <= t
  kSwapIfLess = 15,            // c < t
  kSwapIfGreaterOrEqual = 16,  // c >= t
  kSwapIfGreater = 17,         // c > t
  kMaskedSwap = 18,            // t = (o & c) | (t & ~c), always
};
inline constexpr uint8_t kLastAtomicOp = 18;

enum class AtomicType : uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt16 = 2,
  kUint16 = 3,
  kInt32 = 4,
  kUint32 = 5,
  kInt64 = 6,
  kUint64 = 7,
  kFloat = 8,
  kDouble = 9,
  kFloatComplex = 10,
  kDoubleComplex = 11,
  kLongDouble = 12,  // 80 bits in 16 bytes; only where the compiler's long double is that
  kLongDoubleComplex = 13,
};
inline constexpr uint8_t kLastAtomicType = 13;

// Bytes of one element.
constexpr size_t SizeOf(AtomicType type) {
  constexpr uint8_t kSizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 32};
  return kSizes[static_cast<uint8_t>(type)];
}

// Vectors that the operation needs from who asks for it: 0, 1 (operands) or 2 (operands, then compares).
constexpr uint32_t VectorsOf(AtomicOp op) {
  if (op == AtomicOp::kRead) return 0;
  return op >= AtomicOp::kSwapIfEqual ? 2 : 1;
}

// Does the operation make sense for elements of this type, and can this machine carry it out? Bits belong to integers,
// and complex numbers have no order.
constexpr bool IsAtomicValid(AtomicOp op, AtomicType type) {
  constexpr bool kHasX87 = std::numeric_limits<long double>::digits == 64 && sizeof(long double) == 16;
  if (type >= AtomicType::kLongDouble && !kHasX87) return false;
  const bool is_complex =
      type == AtomicType::kFloatComplex || type == AtomicType::kDoubleComplex || type == AtomicType::kLongDoubleComplex;
  const bool is_integer = type <= AtomicType::kUint64;
  switch (op) {
    case AtomicOp::kBitOr:
    case AtomicOp::kBitAnd:
    case AtomicOp::kBitXor:
    case AtomicOp::kMaskedSwap:
      return is_integer;
    case AtomicOp::kMin:
    case AtomicOp::kMax:
    case AtomicOp::kSwapIfLessOrEqual:
    case AtomicOp::kSwapIfLess:
    case AtomicOp::kSwapIfGreaterOrEqual:
    case AtomicOp::kSwapIfGreater:
      return !is_complex;
    default:
      return true;
  }
}

}  // namespace paceline
