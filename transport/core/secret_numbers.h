// Numbers that nobody can compute who does not know the seed, however many of them he has seen: keys of memory, nonces.
// HMAC-SHA-256 of a counter.
//
// Thread rule: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "transport/crypto/key_derivation.h"
#include "transport/crypto/keyed_mac.h"

namespace paceline {

class SecretNumbers {
 public:
  explicit SecretNumbers(const crypto::Secret& seed) : mac_(crypto::HkdfExpand(seed, "paceline numbers")) {}

  uint64_t Next() {
    std::array<uint8_t, sizeof(counter_)> input;
    std::memcpy(input.data(), &counter_, sizeof(counter_));
    ++counter_;
    const crypto::Secret digest = mac_.Compute(input);
    uint64_t number = 0;
    std::memcpy(&number, digest.data(), sizeof(number));
    return number;
  }

 private:
  crypto::KeyedMac mac_;
  uint64_t counter_ = 0;
};

}  // namespace paceline
