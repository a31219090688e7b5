// A few bytes that an application gives along when it connects, for the application that accepts.
//
// Thread rule: a value.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

struct PrivateData {
  static constexpr size_t kMaxBytes = 128;
  std::array<uint8_t, kMaxBytes> bytes{};
  uint8_t size = 0;

  // What does not fit is cut off.
  static PrivateData Of(std::span<const uint8_t> content) {
    PrivateData data;
    data.size = static_cast<uint8_t>(std::min(content.size(), kMaxBytes));
    std::copy_n(content.begin(), data.size, data.bytes.begin());
    return data;
  }
  std::span<const uint8_t> view() const { return {bytes.data(), size}; }
};

}  // namespace paceline
