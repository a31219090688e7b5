#include "tools/perf/spec.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/perf/stream.h"

namespace paceline::tools {
namespace {

constexpr uint64_t kMaxSize = 16ull << 30;
constexpr double kMaxSeconds = 86400;  // of a test, from message to message, between lines of progress
constexpr const char* kKinds[] = {"pair", "alltoall", "incast", "allreduce", "permutation"};

}  // namespace

nlohmann::json TestSpec::ToJson() const {
  nlohmann::json json = {{"format", 2},
                         {"kind", kind},
                         {"op", op},
                         {"sizes", sizes},
                         {"iterations", iterations},
                         {"seconds", seconds},
                         {"window", window},
                         {"bidirectional", bidirectional},
                         {"rate", rate},
                         {"interval", interval},
                         {"seed", seed},
                         {"congestion_control", congestion_control}};
  if (warmup) json["warmup"] = *warmup;
  return json;
}

absl::StatusOr<TestSpec> TestSpec::FromJson(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  TestSpec spec;
  try {
    if (!json.is_object() || json.value("format", 0) != 2) {
      return absl::FailedPreconditionError("the other side is not a paceline perf of this version");
    }
    spec.kind = json.value("kind", spec.kind);
    spec.op = json.value("op", spec.op);
    spec.sizes = json.value("sizes", spec.sizes);
    spec.iterations = json.value("iterations", spec.iterations);
    spec.seconds = json.value("seconds", spec.seconds);
    if (json.contains("warmup")) spec.warmup = json["warmup"].get<uint64_t>();
    spec.window = json.value("window", spec.window);
    spec.bidirectional = json.value("bidirectional", spec.bidirectional);
    spec.rate = json.value("rate", spec.rate);
    spec.interval = json.value("interval", spec.interval);
    spec.seed = json.value("seed", spec.seed);
    spec.congestion_control = json.value("congestion_control", spec.congestion_control);
  } catch (const nlohmann::json::exception& error) {
    return absl::FailedPreconditionError(absl::StrCat("what the other side wants measured: ", error.what()));
  }
  if (absl::Status status = spec.Check(); !status.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("the other side asks for ", status.message()));
  }
  return spec;
}

absl::Status TestSpec::Check() const {
  const auto refuse = [](auto... text) { return absl::InvalidArgumentError(absl::StrCat(text...)); };
  if (const auto parsed = ParsePairOp(op); !parsed.ok()) return parsed.status();
  if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) {
    return refuse("test \"", kind, "\" is unknown; it may be ", absl::StrJoin(kKinds, ", "));
  }
  if (sizes.empty()) return refuse("--size is missing");
  for (const uint64_t size : sizes) {
    if (size == 0 || size > kMaxSize) return refuse("--size ", size, ": may be 1 to ", kMaxSize);
  }
  for (const auto& [flag, count] : {std::pair{"--iterations", iterations}, std::pair{"--warmup", warmup.value_or(0)}}) {
    if (count > kMostIterations) return refuse(flag, " ", count, ": may be at most ", kMostIterations);
  }
  if (!(seconds > 0 && seconds <= kMaxSeconds)) {
    return refuse("--seconds ", seconds, ": may be more than 0, at most ", kMaxSeconds);
  }
  if (window > kMostWindow) return refuse("--window ", window, ": may be 1 to ", kMostWindow);
  if (!(rate >= 0 && rate <= 1e15)) return refuse("--rate ", rate, ": may be more than 0, at most 1e15 bit/s");
  for (const uint64_t size : sizes) {
    if (rate > 0 && static_cast<double>(size) * 8 > rate * kMaxSeconds) {
      return refuse("--rate ", rate / 1e9, " (Gb/s): a message of ", size, " bytes would be due less than once in ",
                    kMaxSeconds, " seconds");
    }
  }
  if (!(interval >= 0 && interval <= kMaxSeconds)) {
    return refuse("--interval ", interval, ": may be more than 0 seconds, at most ", kMaxSeconds);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  std::string digits = text;
  uint64_t unit = 1;
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'k':
      case 'K':
        unit = 1ull << 10;
        break;
      case 'm':
      case 'M':
        unit = 1ull << 20;
        break;
      case 'g':
      case 'G':
        unit = 1ull << 30;
        break;
      default:
        break;
    }
  }
  if (unit != 1) digits.pop_back();
  uint64_t value = 0;
  if (!absl::SimpleAtoi(digits, &value) || value == 0 || value > kMaxSize / unit) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a size; write bytes, or 64K, 1M, 2G, from 1 to 16G"));
  }
  return value * unit;
}

absl::StatusOr<std::vector<uint64_t>> ParseSizes(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a range of sizes; write FROM:TO, as 64:1M"));
  }
  const auto from = ParseSize(text.substr(0, colon));
  if (!from.ok()) return from.status();
  const auto to = ParseSize(text.substr(colon + 1));
  if (!to.ok()) return to.status();
  if (*from > *to) return absl::InvalidArgumentError(absl::StrCat("\"", text, "\": the range is empty"));
  std::vector<uint64_t> sizes;
  for (uint64_t size = *from; size <= *to; size *= 2) sizes.push_back(size);
  return sizes;
}

absl::StatusOr<double> ParseBitRate(const std::string& text) {
  std::string digits = text;
  double unit = 1e9;
  if (!digits.empty() && (digits.back() == 'G' || digits.back() == 'M' || digits.back() == 'K')) {
    unit = digits.back() == 'G' ? 1e9 : digits.back() == 'M' ? 1e6 : 1e3;
    digits.pop_back();
  }
  double value = 0;
  if (!absl::SimpleAtod(digits, &value) || !std::isfinite(value) || value <= 0 || value * unit > 1e15) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a rate; write Gb/s, or 5G, 200M"));
  }
  return value * unit;
}

}  // namespace paceline::tools
