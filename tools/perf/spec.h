// What is measured: the part of the command line that all ranks must agree on, and its way to the other ranks.
//
// Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace paceline::tools {

inline constexpr uint32_t kMostWindow = 4096;                   // messages outstanding per rank
inline constexpr uint64_t kMostIterations = 1'000'000'000'000;  // and so of the warm-up

struct TestSpec {
  std::string kind = "pair";              // pair, alltoall, incast, allreduce, permutation
  std::string op = "send";                // pair: send, write, write_imm, read, atomic
  std::vector<uint64_t> sizes = {65536};  // bytes of a message; allreduce: of each rank's vector
  uint64_t iterations =
      0;               // messages (pair, incast, permutation: per sender) or operations; 0: as many as `seconds` hold
  double seconds = 2;  // length of the timed part when iterations is 0
  // Messages or operations before the timed part; 0: none, though all ranks together do at least one. Nothing: the
  // default of the kind.
  std::optional<uint64_t> warmup;
  uint32_t window = 0;  // messages outstanding per rank; 0: the default of kind and size
  bool bidirectional = false;
  double rate = 0;      // open loop: bits of payload per second and sender; 0: as fast as the window allows
  double interval = 0;  // seconds between lines of progress data; 0: none
  uint64_t seed = 1;    // of the permutation
  std::string congestion_control = "tita";  // must be the same on all ranks

  // Names the first value that is out of its range, by its flag.
  absl::Status Check() const;
  nlohmann::json ToJson() const;
  // Another build, or a stranger, may have written it: refused when it cannot be read or asks for what no command line
  // can. Never as an invalid argument: it is no wrong use of the command that reads it.
  static absl::StatusOr<TestSpec> FromJson(const std::string& text);
};

// "64", "64K", "1M", "2G" (binary), as bytes.
absl::StatusOr<uint64_t> ParseSize(const std::string& text);
// "FROM:TO": FROM, twice that, ... up to TO.
absl::StatusOr<std::vector<uint64_t>> ParseSizes(const std::string& text);
// "5" or "5G" (Gb/s), "200M" (Mb/s), as bits per second.
absl::StatusOr<double> ParseBitRate(const std::string& text);

}  // namespace paceline::tools
