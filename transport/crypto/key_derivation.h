// Keys from keys: HKDF with SHA-256 (RFC 5869) and HMAC-SHA-256 (RFC 2104), by OpenSSL.
//
// Thread rule: functions without state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace paceline::crypto {

// Overwrites the bytes in a way that the compiler may not leave out.
void Erase(std::span<uint8_t> bytes);

// Each copy is overwritten when it ends.
struct Secret : std::array<uint8_t, 32> {
  ~Secret() { Erase(*this); }
};

// RFC 5869 section 2.2.
Secret HkdfExtract(std::span<const uint8_t> salt, std::span<const uint8_t> input);

// RFC 5869 section 2.3; `info` is the label followed by the context. `out`: at most 8,160 bytes.
void HkdfExpand(const Secret& key, std::string_view label, std::span<const uint8_t> context, std::span<uint8_t> out);
Secret HkdfExpand(const Secret& key, std::string_view label, std::span<const uint8_t> context = {});

// RFC 2104.
Secret HmacSha256(std::span<const uint8_t> key, std::span<const uint8_t> input);

// In a time that does not depend on what differs.
bool EqualSecrets(std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace paceline::crypto
