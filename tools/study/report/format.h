// Numbers as a person reads them: thousands separated, as many digits as matter, units where they help.
//
// Who calls it: the report only; pure functions, any thread. KB and MB are 10^3 and 10^6 bytes, KiB and MiB 2^10, 2^20.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::tools {

// "16,256"; below a hundred, what is not a whole number keeps one decimal ("12.4").
std::string FormatCount(double value);

// Four digits that matter, thousands separated: "0.34", "12.35", "123.4", "2,631".
std::string FormatNumber(double value);

// The same without zeros at the end, for running text: "1", "12.3".
std::string FormatShort(double value);

// Always three decimals: "1.003".
std::string FormatRatio(double value);

// "64 KiB", "1 MB", "178.9 KB", "4,160 bytes": the largest unit that shows the size exactly, else rounded.
std::string FormatBytes(double bytes);

// "1 µs", "14.03 µs", "2,631 µs", "12.4 ms".
std::string FormatMicros(double us);

// A count with its noun: FormatPlural(3, "host", "hosts") is "3 hosts".
std::string FormatPlural(double count, const std::string& one, const std::string& many);

// At most `digits` significant digits, so that numbers stay short in the page.
double RoundSignificant(double value, int digits);

}  // namespace paceline::tools
