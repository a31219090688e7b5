// Time, durations and rates as types, so that a microsecond is never taken for a byte.
//
// Resolution is one nanosecond, range 292 years: the transport's own clock. (The simulated fabric counts picoseconds
// inside and rounds when it calls the transport.) Nothing here reads a clock: the current time is always an argument.
//
// Thread rule: values, free to copy and use anywhere.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace paceline {

// A signed span of time in nanoseconds.
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration Nanos(int64_t n) { return Duration(n); }
  static constexpr Duration Micros(int64_t n) { return Duration(n * 1000); }
  static constexpr Duration Millis(int64_t n) { return Duration(n * 1'000'000); }
  static constexpr Duration Seconds(int64_t n) { return Duration(n * 1'000'000'000); }
  static constexpr Duration Infinite() { return Duration(std::numeric_limits<int64_t>::max()); }

  constexpr int64_t nanos() const { return nanos_; }
  constexpr double micros() const { return static_cast<double>(nanos_) / 1e3; }
  constexpr double seconds() const { return static_cast<double>(nanos_) / 1e9; }
  constexpr bool is_infinite() const { return nanos_ == std::numeric_limits<int64_t>::max(); }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator-() const { return Duration(-nanos_); }
  constexpr Duration& operator+=(Duration d) {
    nanos_ += d.nanos_;
    return *this;
  }
  constexpr Duration& operator-=(Duration d) {
    nanos_ -= d.nanos_;
    return *this;
  }
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration(a.nanos_ + b.nanos_); }
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration(a.nanos_ - b.nanos_); }
  friend constexpr Duration operator*(Duration a, int64_t k) { return Duration(a.nanos_ * k); }
  friend constexpr Duration operator/(Duration a, int64_t k) { return Duration(a.nanos_ / k); }
  // Scales by a real factor; the result is rounded towards zero.
  constexpr Duration Scaled(double k) const { return Duration(static_cast<int64_t>(static_cast<double>(nanos_) * k)); }

 private:
  explicit constexpr Duration(int64_t n) : nanos_(n) {}
  int64_t nanos_ = 0;
};

// A point on the transport's clock: nanoseconds since an epoch that the owner of the clock chose.
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time FromNanos(int64_t n) { return Time(n); }
  static constexpr Time Never() { return Time(std::numeric_limits<int64_t>::max()); }

  constexpr int64_t nanos() const { return nanos_; }
  constexpr bool is_never() const { return nanos_ == std::numeric_limits<int64_t>::max(); }

  constexpr auto operator<=>(const Time&) const = default;
  friend constexpr Time operator+(Time t, Duration d) {
    return d.is_infinite() || t.is_never() ? Never() : Time(t.nanos_ + d.nanos());
  }
  friend constexpr Time operator-(Time t, Duration d) { return Time(t.nanos_ - d.nanos()); }
  friend constexpr Duration operator-(Time a, Time b) { return Duration::Nanos(a.nanos_ - b.nanos_); }

 private:
  explicit constexpr Time(int64_t n) : nanos_(n) {}
  int64_t nanos_ = 0;
};

// A data rate. Zero means "none" (nothing may be sent); Unlimited() means "not limited by a rate".
class Rate {
 public:
  constexpr Rate() = default;
  static constexpr Rate BitsPerSecond(double b) { return Rate(b / 8); }
  static constexpr Rate BytesPerSecond(double b) { return Rate(b); }
  static constexpr Rate Gbps(double g) { return Rate(g * 1e9 / 8); }
  static constexpr Rate Unlimited() { return Rate(std::numeric_limits<double>::infinity()); }

  constexpr double bytes_per_second() const { return bytes_per_second_; }
  constexpr double gbps() const { return bytes_per_second_ * 8 / 1e9; }
  constexpr bool is_unlimited() const { return bytes_per_second_ == std::numeric_limits<double>::infinity(); }
  constexpr bool is_zero() const { return bytes_per_second_ <= 0; }

  // Time that `bytes` take at this rate, in nanoseconds with its fraction. Zero when unlimited; infinite at rate zero.
  constexpr double NanosFor(int64_t bytes) const {
    if (is_unlimited()) return 0;
    if (is_zero()) return std::numeric_limits<double>::infinity();
    return static_cast<double>(bytes) * 1e9 / bytes_per_second_;
  }
  // The same as a Duration, rounded up; Duration::Infinite() when it does not fit.
  constexpr Duration TimeFor(int64_t bytes) const {
    const double nanos = NanosFor(bytes);
    if (nanos >= 9.2e18) return Duration::Infinite();
    const auto whole = static_cast<int64_t>(nanos);
    return Duration::Nanos(whole + (static_cast<double>(whole) < nanos ? 1 : 0));
  }
  // Bytes that fit into `d` at this rate, rounded down.
  constexpr int64_t BytesIn(Duration d) const {
    const double bytes = bytes_per_second_ * d.seconds();
    return bytes >= 9.2e18 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(bytes);
  }

  constexpr auto operator<=>(const Rate&) const = default;
  friend constexpr Rate operator*(Rate r, double k) { return Rate(r.bytes_per_second_ * k); }
  friend constexpr Rate operator/(Rate r, double k) { return Rate(r.bytes_per_second_ / k); }
  friend constexpr Rate operator+(Rate a, Rate b) { return Rate(a.bytes_per_second_ + b.bytes_per_second_); }
  friend constexpr Rate operator-(Rate a, Rate b) { return Rate(a.bytes_per_second_ - b.bytes_per_second_); }

 private:
  explicit constexpr Rate(double b) : bytes_per_second_(b) {}
  double bytes_per_second_ = 0;
};

}  // namespace paceline
