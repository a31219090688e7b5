#include "transport/core/rx/apply_atomic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <complex>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace paceline {
namespace {

template <typename T>
constexpr AtomicType TypeOf();
template <>
constexpr AtomicType TypeOf<int8_t>() {
  return AtomicType::kInt8;
}
template <>
constexpr AtomicType TypeOf<uint16_t>() {
  return AtomicType::kUint16;
}
template <>
constexpr AtomicType TypeOf<int32_t>() {
  return AtomicType::kInt32;
}
template <>
constexpr AtomicType TypeOf<uint64_t>() {
  return AtomicType::kUint64;
}
template <>
constexpr AtomicType TypeOf<float>() {
  return AtomicType::kFloat;
}
template <>
constexpr AtomicType TypeOf<double>() {
  return AtomicType::kDouble;
}
template <>
constexpr AtomicType TypeOf<std::complex<double>>() {
  return AtomicType::kDoubleComplex;
}

// What the element is afterwards; the value before is checked.
template <typename T>
T After(AtomicOp op, T target, T operand, T compare = T()) {
  alignas(32) T element = target;
  T before = T(99);
  ApplyAtomic(op, TypeOf<T>(), 1, reinterpret_cast<uint8_t*>(&element), reinterpret_cast<const uint8_t*>(&operand),
              reinterpret_cast<const uint8_t*>(&compare), reinterpret_cast<uint8_t*>(&before));
  EXPECT_EQ(before, target);
  return element;
}

TEST(ApplyAtomicTest, Arithmetic) {
  EXPECT_EQ(After<int32_t>(AtomicOp::kMin, 3, -5), -5);
  EXPECT_EQ(After<int32_t>(AtomicOp::kMax, 3, -5), 3);
  EXPECT_EQ(After<int32_t>(AtomicOp::kSum, 3, -5), -2);
  EXPECT_EQ(After<int32_t>(AtomicOp::kProduct, 3, -5), -15);
  EXPECT_EQ(After<int32_t>(AtomicOp::kSum, std::numeric_limits<int32_t>::max(), 1),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(After<int8_t>(AtomicOp::kSum, 127, 1), -128);
  EXPECT_EQ(After<uint16_t>(AtomicOp::kProduct, 65535, 65535), 1);
  EXPECT_EQ(After<uint64_t>(AtomicOp::kProduct, 1ull << 63, 3), 1ull << 63);
  EXPECT_EQ(After<double>(AtomicOp::kSum, 1.5, -4.25), -2.75);
  EXPECT_EQ(After<float>(AtomicOp::kMax, 1.5f, 2.5f), 2.5f);
  using Complex = std::complex<double>;
  EXPECT_EQ(After<Complex>(AtomicOp::kProduct, {1, 2}, {3, -1}), Complex(5, 5));
}

TEST(ApplyAtomicTest, LogicAndBits) {
  EXPECT_EQ(After<int32_t>(AtomicOp::kLogicalOr, 0, 8), 1);
  EXPECT_EQ(After<int32_t>(AtomicOp::kLogicalOr, 0, 0), 0);
  EXPECT_EQ(After<int32_t>(AtomicOp::kLogicalAnd, 4, 8), 1);
  EXPECT_EQ(After<int32_t>(AtomicOp::kLogicalXor, 4, 8), 0);
  EXPECT_EQ(After<float>(AtomicOp::kLogicalXor, 0.0f, 8.0f), 1.0f);
  EXPECT_EQ(After<uint64_t>(AtomicOp::kBitOr, 0xf0, 0x1f), 0xffu);
  EXPECT_EQ(After<uint64_t>(AtomicOp::kBitAnd, 0xf0, 0x1f), 0x10u);
  EXPECT_EQ(After<uint64_t>(AtomicOp::kBitXor, 0xf0, 0x1f), 0xefu);
  EXPECT_EQ(After<uint64_t>(AtomicOp::kMaskedSwap, 0x1234, 0xabcd, 0x0ff0), 0x1bc4u);
}

TEST(ApplyAtomicTest, ReadWriteAndSwaps) {
  EXPECT_EQ(After<uint64_t>(AtomicOp::kRead, 7, 9), 7u);
  EXPECT_EQ(After<uint64_t>(AtomicOp::kWrite, 7, 9), 9u);
  struct Case {
    AtomicOp op;
    bool less, equal, greater;  // does it swap when the compare is so, against the target?
  };
  const Case cases[] = {
      {AtomicOp::kSwapIfEqual, false, true, false},         {AtomicOp::kSwapIfNotEqual, true, false, true},
      {AtomicOp::kSwapIfLessOrEqual, true, true, false},    {AtomicOp::kSwapIfLess, true, false, false},
      {AtomicOp::kSwapIfGreaterOrEqual, false, true, true}, {AtomicOp::kSwapIfGreater, false, false, true}};
  for (const Case& one : cases) {
    SCOPED_TRACE(static_cast<int>(one.op));
    EXPECT_EQ(After<double>(one.op, 5, 9, 4), one.less ? 9 : 5);
    EXPECT_EQ(After<double>(one.op, 5, 9, 5), one.equal ? 9 : 5);
    EXPECT_EQ(After<double>(one.op, 5, 9, 6), one.greater ? 9 : 5);
    EXPECT_EQ(After<int32_t>(one.op, -5, 9, -6), one.less ? 9 : -5);
  }
}

// Every operation that is said to be valid changes a whole vector, and nothing behind it.
TEST(ApplyAtomicTest, EveryValidPairStaysWithinItsElements) {
  for (uint8_t op = 0; op <= kLastAtomicOp; ++op) {
    for (uint8_t type = 0; type <= kLastAtomicType; ++type) {
      const auto operation = static_cast<AtomicOp>(op);
      const auto element = static_cast<AtomicType>(type);
      if (!IsAtomicValid(operation, element)) continue;
      const size_t bytes = 3 * SizeOf(element);
      alignas(32) uint8_t target[3 * 32 + 1] = {}, results[3 * 32 + 1];
      std::vector<uint8_t> zeros(bytes), ones(bytes, 1);
      target[bytes] = 0x5a;
      std::memset(results, 0x5b, sizeof(results));
      ApplyAtomic(operation, element, 3, target, ones.data(), zeros.data(), results);
      EXPECT_EQ(target[bytes], 0x5a) << int{op} << " " << int{type};
      EXPECT_EQ(results[bytes], 0x5b);
      EXPECT_EQ(std::memcmp(results, zeros.data(), bytes), 0) << int{op} << " " << int{type};
    }
  }
}

// Against a thread that counts in the same word by itself.
// Until both have run at the same time often enough; on a machine that gives them one processor in turn, for long.
TEST(ApplyAtomicTest, WordsChangeAtomicallyTowardsOtherThreads) {
  uint32_t word = 0;
  std::atomic<uint32_t> others = 0;
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      std::atomic_ref<uint32_t>(word).fetch_add(1);
      others.fetch_add(1, std::memory_order_relaxed);
    }
  });
  const uint32_t one = 1;
  uint32_t own = 0, seen = 0, overlaps = 0;
  while (overlaps < 50'000 && own < 50'000'000) {
    ApplyAtomic(AtomicOp::kSum, AtomicType::kUint32, 1, reinterpret_cast<uint8_t*>(&word),
                reinterpret_cast<const uint8_t*>(&one), nullptr, nullptr);
    ++own;
    const uint32_t now = others.load(std::memory_order_relaxed);
    overlaps += now != seen;
    seen = now;
  }
  stop = true;
  other.join();
  EXPECT_EQ(word, own + others);
}

TEST(ApplyAtomicTest, Alignment) {
  alignas(32) uint8_t bytes[64] = {};
  EXPECT_TRUE(IsAligned(AtomicType::kUint64, bytes + 8));
  EXPECT_FALSE(IsAligned(AtomicType::kUint64, bytes + 4));
  EXPECT_TRUE(IsAligned(AtomicType::kFloatComplex, bytes + 4));
  EXPECT_FALSE(IsAligned(AtomicType::kDoubleComplex, bytes + 4));
  EXPECT_TRUE(IsAligned(AtomicType::kInt8, bytes + 1));
}

}  // namespace
}  // namespace paceline
