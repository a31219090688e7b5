#include "transport/lane/impair/impairment.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace paceline {
namespace {

constexpr char kKeys[] = "loss, dup, reorder, corrupt, delay, reorder_delay, seed";

absl::StatusOr<double> ParseProbability(const std::string& key, const std::string& text) {
  absl::string_view digits = text;
  const bool percent = absl::ConsumeSuffix(&digits, "%");
  double value = 0;
  if (absl::SimpleAtod(digits, &value)) {
    if (percent) value /= 100;
    if (std::isfinite(value) && value >= 0 && value <= 1) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(key, "=", text, ": not a probability; write 0.01 or 1%, between 0 and 1"));
}

absl::StatusOr<Duration> ParseDelay(const std::string& key, const std::string& text) {
  absl::string_view digits = text;
  double scale = 1e3;
  if (absl::ConsumeSuffix(&digits, "us")) {
    scale = 1e3;
  } else if (absl::ConsumeSuffix(&digits, "ms")) {
    scale = 1e6;
  } else if (absl::ConsumeSuffix(&digits, "ns")) {
    scale = 1;
  }
  double value = 0;
  if (absl::SimpleAtod(digits, &value) && std::isfinite(value) && value >= 0 && value * scale <= 10e9) {
    return Duration::Nanos(static_cast<int64_t>(value * scale));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(key, "=", text, ": not a delay; write 50us, 2ms or a number of microseconds, at most 10 s"));
}

}  // namespace

absl::StatusOr<Impairment> ParseImpairment(const std::string& text) {
  Impairment result;
  const std::vector<std::string> parts = absl::StrSplit(text, ',', absl::SkipWhitespace());
  for (const std::string& part : parts) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("\"", part, "\": write key=value; keys are ", kKeys));
    }
    const std::string& key = pair[0];
    const std::string& value = pair[1];
    double* probability = key == "loss"      ? &result.loss
                          : key == "dup"     ? &result.duplicate
                          : key == "reorder" ? &result.reorder
                          : key == "corrupt" ? &result.corrupt
                                             : nullptr;
    Duration* delay = key == "delay" ? &result.delay : key == "reorder_delay" ? &result.reorder_delay : nullptr;
    if (probability != nullptr) {
      const auto parsed = ParseProbability(key, value);
      if (!parsed.ok()) return parsed.status();
      *probability = *parsed;
    } else if (delay != nullptr) {
      const auto parsed = ParseDelay(key, value);
      if (!parsed.ok()) return parsed.status();
      *delay = *parsed;
    } else if (key == "seed") {
      if (!absl::SimpleAtoi(value, &result.seed)) {
        return absl::InvalidArgumentError(absl::StrCat("seed=", value, ": not a whole number"));
      }
    } else {
      return absl::InvalidArgumentError(absl::StrCat("\"", key, "\": no such impairment; keys are ", kKeys));
    }
  }
  return result;
}

}  // namespace paceline
