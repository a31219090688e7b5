// Reading and writing little-endian fields with bounds that cannot be passed: a reader that has run out gives zeros and
// remembers that it failed, so that a parser checks once at its end.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace paceline::wire {

static_assert(std::endian::native == std::endian::little, "the codec copies fields as they are in memory");

// Fields of a part of fixed size: bounds were checked for all of it at once, by whoever cut it out (Reader::Fixed,
// Writer::Fixed).
template <size_t kBytes>
class FixedReader {
 public:
  explicit FixedReader(const uint8_t* bytes) : bytes_(bytes) {}

  uint8_t U8() { return Take<uint8_t>(1); }
  uint16_t U16() { return Take<uint16_t>(2); }
  uint32_t U32() { return Take<uint32_t>(4); }
  uint64_t U48() {
    const uint64_t low = U32();
    return low | uint64_t{U16()} << 32;
  }
  uint64_t U64() { return Take<uint64_t>(8); }

 private:
  template <typename T>
  T Take(size_t n) {
    assert(at_ + n <= kBytes);
    T value = 0;
    std::memcpy(&value, bytes_ + at_, n);
    at_ += n;
    return value;
  }
  const uint8_t* bytes_;
  size_t at_ = 0;
};

template <size_t kBytes>
class FixedWriter {
 public:
  explicit FixedWriter(uint8_t* bytes) : bytes_(bytes) {}

  void U8(uint8_t v) { Put(v, 1); }
  void U16(uint16_t v) { Put(v, 2); }
  void U32(uint32_t v) { Put(v, 4); }
  void U48(uint64_t v) { Put(v, 6); }
  void U64(uint64_t v) { Put(v, 8); }

 private:
  template <typename T>
  void Put(T v, size_t n) {
    assert(at_ + n <= kBytes);
    std::memcpy(bytes_ + at_, &v, n);
    at_ += n;
  }
  uint8_t* bytes_;
  size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint8_t U8() { return Take<uint8_t>(1); }
  uint16_t U16() { return Take<uint16_t>(2); }
  uint32_t U32() { return Take<uint32_t>(4); }
  uint64_t U48() { return Take<uint64_t>(6); }
  uint64_t U64() { return Take<uint64_t>(8); }
  // The next `n` bytes; empty, and failed, when there are fewer.
  std::span<const uint8_t> Bytes(size_t n) {
    if (n > bytes_.size()) {
      Fail();
      return {};
    }
    const auto taken = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return taken;
  }
  // The next kBytes, to be read without further checks; nothing, and failed, when there are fewer.
  template <size_t kBytes>
  std::optional<FixedReader<kBytes>> Fixed() {
    const auto part = Bytes(kBytes);
    if (part.size() != kBytes) return std::nullopt;
    return FixedReader<kBytes>(part.data());
  }
  size_t remaining() const { return bytes_.size(); }
  bool failed() const { return failed_; }
  void Fail() {
    failed_ = true;
    bytes_ = {};
  }

 private:
  template <typename T>
  T Take(size_t n) {
    if (n > bytes_.size()) {
      Fail();
      return 0;
    }
    T value = 0;
    std::memcpy(&value, bytes_.data(), n);
    bytes_ = bytes_.subspan(n);
    return value;
  }
  std::span<const uint8_t> bytes_;
  bool failed_ = false;
};

// Writes into a buffer of the caller. Writing past its end writes nothing and is remembered.
class Writer {
 public:
  explicit Writer(std::span<uint8_t> buffer) : buffer_(buffer) {}

  void U8(uint8_t v) { Put(v, 1); }
  void U16(uint16_t v) { Put(v, 2); }
  void U32(uint32_t v) { Put(v, 4); }
  void U48(uint64_t v) { Put(v, 6); }
  void U64(uint64_t v) { Put(v, 8); }
  void Bytes(std::span<const uint8_t> bytes) {
    if (bytes.size() > room()) {
      failed_ = true;
      return;
    }
    if (!bytes.empty()) std::memcpy(buffer_.data() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  // Room for the next kBytes, to be written without further checks; nothing, and failed, when there is less.
  template <size_t kBytes>
  std::optional<FixedWriter<kBytes>> Fixed() {
    if (kBytes > room()) {
      failed_ = true;
      return std::nullopt;
    }
    size_ += kBytes;
    return FixedWriter<kBytes>(buffer_.data() + size_ - kBytes);
  }
  size_t size() const { return size_; }
  size_t room() const { return buffer_.size() - size_; }
  bool failed() const { return failed_; }

 private:
  template <typename T>
  void Put(T v, size_t n) {
    if (n > room()) {
      failed_ = true;
      return;
    }
    std::memcpy(buffer_.data() + size_, &v, n);
    size_ += n;
  }
  std::span<uint8_t> buffer_;
  size_t size_ = 0;
  bool failed_ = false;
};

}  // namespace paceline::wire
