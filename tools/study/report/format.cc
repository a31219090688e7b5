#include "tools/study/report/format.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace paceline::tools {
namespace {

std::string Fixed(double value, int decimals) {
  std::array<char, 400> text;  // the largest double has 309 digits before the point
  const int length = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return std::string(text.data(), static_cast<size_t>(length));
}

// Puts a comma between groups of three digits before the point.
std::string WithThousands(std::string number) {
  const size_t first = number.starts_with('-') ? 1 : 0;
  const size_t point = number.find('.');
  size_t at = point == std::string::npos ? number.size() : point;
  while (at > first + 3) {
    at -= 3;
    number.insert(at, 1, ',');
  }
  return number;
}

bool IsMultiple(double bytes, double unit) { return bytes >= unit && std::fmod(bytes, unit) == 0; }

}  // namespace

std::string FormatCount(double value) {
  if (!std::isfinite(value)) return "\u2013";
  const bool whole = value == std::floor(value) || std::fabs(value) >= 100;
  return WithThousands(Fixed(value, whole ? 0 : 1));
}

std::string FormatNumber(double value) {
  if (!std::isfinite(value)) return "\u2013";
  const double size = std::fabs(value);
  if (size == 0) return "0";
  int decimals = 0;
  if (size < 100) {
    decimals = 2;
  } else if (size < 1000) {
    decimals = 1;
  }
  return WithThousands(Fixed(value, decimals));
}

std::string FormatShort(double value) {
  std::string text = FormatNumber(value);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string FormatRatio(double value) { return std::isfinite(value) ? WithThousands(Fixed(value, 3)) : "\u2013"; }

std::string FormatBytes(double bytes) {
  if (!std::isfinite(bytes)) return "\u2013";
  constexpr double kKiB = 1024;
  if (IsMultiple(bytes, kKiB * kKiB * kKiB)) return FormatCount(bytes / (kKiB * kKiB * kKiB)) + " GiB";
  if (IsMultiple(bytes, 1e9)) return FormatCount(bytes / 1e9) + " GB";
  if (IsMultiple(bytes, kKiB * kKiB)) return FormatCount(bytes / (kKiB * kKiB)) + " MiB";
  if (IsMultiple(bytes, 1e6)) return FormatCount(bytes / 1e6) + " MB";
  if (IsMultiple(bytes, kKiB) && bytes >= 8 * kKiB) return FormatCount(bytes / kKiB) + " KiB";
  if (IsMultiple(bytes, 1e3)) return FormatCount(bytes / 1e3) + " KB";
  if (bytes < 10000) return FormatCount(bytes) + (bytes == 1 ? " byte" : " bytes");
  if (bytes < 1e6) return Fixed(bytes / 1e3, 1) + " KB";
  return bytes < 1e9 ? FormatShort(bytes / 1e6) + " MB" : FormatShort(bytes / 1e9) + " GB";
}

std::string FormatMicros(double us) {
  if (!std::isfinite(us)) return "\u2013";
  if (us >= 1e6) return FormatShort(us / 1e6) + " s";
  return us >= 1e4 ? FormatShort(us / 1e3) + " ms" : FormatShort(us) + " \u00B5s";
}

std::string FormatPlural(double count, const std::string& one, const std::string& many) {
  return FormatCount(count) + " " + (count == 1 ? one : many);
}

double RoundSignificant(double value, int digits) {
  if (!std::isfinite(value) || value == 0) return value;
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return std::strtod(text.data(), nullptr);
}

}  // namespace paceline::tools
