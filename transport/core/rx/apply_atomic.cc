#include "transport/core/rx/apply_atomic.h"

#include <atomic>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

namespace paceline {
namespace {

template <typename T>
inline constexpr bool kIsComplex = !std::is_arithmetic_v<T>;

// Arithmetic that wraps: signed integers would overflow, and short ones are widened to such.
template <typename T>
struct Wrapping {
  using Type = T;
};
template <typename T>
requires(std::is_integral_v<T>) struct Wrapping<T> {
  using Type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};

template <typename T>
T Sum(T a, T b) {
  using W = typename Wrapping<T>::Type;
  return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
}

template <typename T>
T Product(T a, T b) {
  using W = typename Wrapping<T>::Type;
  return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
}

// The element's new value. What IsAtomicValid refuses leaves it as it is.
template <typename T>
T Next(AtomicOp op, T target, T operand, T compare) {
  const bool a = target != T(0), b = operand != T(0);
  switch (op) {
    case AtomicOp::kSum:
      return Sum(target, operand);
    case AtomicOp::kProduct:
      return Product(target, operand);
    case AtomicOp::kLogicalOr:
      return T(a || b ? 1 : 0);
    case AtomicOp::kLogicalAnd:
      return T(a && b ? 1 : 0);
    case AtomicOp::kLogicalXor:
      return T(a != b ? 1 : 0);
    case AtomicOp::kWrite:
      return operand;
    case AtomicOp::kSwapIfEqual:
      return compare == target ? operand : target;
    case AtomicOp::kSwapIfNotEqual:
      return compare != target ? operand : target;
    default:
      break;
  }
  if constexpr (!kIsComplex<T>) {
    switch (op) {
      case AtomicOp::kMin:
        return operand < target ? operand : target;
      case AtomicOp::kMax:
        return operand > target ? operand : target;
      case AtomicOp::kSwapIfLessOrEqual:
        return compare <= target ? operand : target;
      case AtomicOp::kSwapIfLess:
        return compare < target ? operand : target;
      case AtomicOp::kSwapIfGreaterOrEqual:
        return compare >= target ? operand : target;
      case AtomicOp::kSwapIfGreater:
        return compare > target ? operand : target;
      default:
        break;
    }
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case AtomicOp::kBitOr:
        return static_cast<T>(target | operand);
      case AtomicOp::kBitAnd:
        return static_cast<T>(target & operand);
      case AtomicOp::kBitXor:
        return static_cast<T>(target ^ operand);
      case AtomicOp::kMaskedSwap:
        return static_cast<T>((operand & compare) | (target & ~compare));
      default:
        break;
    }
  }
  return target;
}

// Without the bytes of a type that are no part of its value: they would be whatever lay on the stack.
template <typename T>
void Store(uint8_t* to, const T& value) {
  constexpr bool kIsExtended = std::numeric_limits<long double>::digits == 64;  // 10 bytes of 16
  if constexpr (std::is_same_v<T, long double> && kIsExtended) {
    std::memcpy(to, &value, 10);
  } else if constexpr (std::is_same_v<T, std::complex<long double>>) {
    Store(to, value.real());
    Store(to + sizeof(long double), value.imag());
  } else {
    std::memcpy(to, &value, sizeof(T));
  }
}

// Carries it out on one element; the value before goes to `result`, if that is wanted.
template <typename T>
void ApplyOne(AtomicOp op, uint8_t* target, const T& operand, const T& compare, uint8_t* result) {
  T before;
  if constexpr (!kIsComplex<T> && sizeof(T) <= 8) {
    std::atomic_ref<T> element(*reinterpret_cast<T*>(target));
    before = element.load();
    while (op != AtomicOp::kRead && !element.compare_exchange_weak(before, Next(op, before, operand, compare))) {
    }
    if (result != nullptr) std::memcpy(result, &before, sizeof(T));
  } else {
    std::memcpy(&before, target, sizeof(T));
    if (result != nullptr) std::memcpy(result, target, sizeof(T));
    if (op != AtomicOp::kRead) Store(target, Next(op, before, operand, compare));
  }
}

template <typename T>
void ApplyAll(AtomicOp op, uint32_t count, uint8_t* target, const uint8_t* operands, const uint8_t* compares,
              uint8_t* results) {
  const uint32_t vectors = VectorsOf(op);
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = i * sizeof(T);
    T operand{}, compare{};
    if (vectors > 0) std::memcpy(&operand, operands + at, sizeof(T));
    if (vectors > 1) std::memcpy(&compare, compares + at, sizeof(T));
    ApplyOne(op, target + at, operand, compare, results == nullptr ? nullptr : results + at);
  }
}

}  // namespace

bool IsAligned(AtomicType type, const uint8_t* target) {
  const bool is_complex =
      type == AtomicType::kFloatComplex || type == AtomicType::kDoubleComplex || type == AtomicType::kLongDoubleComplex;
  return reinterpret_cast<uintptr_t>(target) % (is_complex ? SizeOf(type) / 2 : SizeOf(type)) == 0;
}

void ApplyAtomic(AtomicOp op, AtomicType type, uint32_t count, uint8_t* target, const uint8_t* operands,
                 const uint8_t* compares, uint8_t* results) {
  const auto apply = [&](auto example) { ApplyAll<decltype(example)>(op, count, target, operands, compares, results); };
  switch (type) {
    case AtomicType::kInt8:
      return apply(int8_t{});
    case AtomicType::kUint8:
      return apply(uint8_t{});
    case AtomicType::kInt16:
      return apply(int16_t{});
    case AtomicType::kUint16:
      return apply(uint16_t{});
    case AtomicType::kInt32:
      return apply(int32_t{});
    case AtomicType::kUint32:
      return apply(uint32_t{});
    case AtomicType::kInt64:
      return apply(int64_t{});
    case AtomicType::kUint64:
      return apply(uint64_t{});
    case AtomicType::kFloat:
      return apply(float{});
    case AtomicType::kDouble:
      return apply(double{});
    case AtomicType::kFloatComplex:
      return apply(std::complex<float>{});
    case AtomicType::kDoubleComplex:
      return apply(std::complex<double>{});
    case AtomicType::kLongDouble:
      return apply(static_cast<long double>(0));
    case AtomicType::kLongDoubleComplex:
      return apply(std::complex<long double>{});
  }
}

}  // namespace paceline
