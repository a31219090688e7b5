// Whether polls follow so closely on one another that the time of a poll tells when something arrived as well as the
// kernel's stamp does, which costs both ends of a short message a quarter of a microsecond.
//
// Thread rule: a value.
#pragma once

#include "transport/base/time.h"

namespace paceline {

class PollRhythm {
 public:
  // There is a poll at `now`. True: those of the last hundredths of a second were close together, but for a tenth of
  // the time at most, and there was no pause since.
  bool IsDense(Time now) {
    const Duration gap = now - last_;
    last_ = now;
    if (gap > kClose) apart_ = apart_ + gap;
    if (gap > kPause) {
      dense_ = false;
    } else if (now - since_ < kWindow) {
      return dense_;
    } else {
      dense_ = apart_ * 10 <= now - since_;
    }
    since_ = now;
    apart_ = Duration();
    return dense_;
  }

 private:
  // More than a poll takes that finds nothing or a short message, and less than one that finds a burst.
  static constexpr Duration kClose = Duration::Micros(10);
  static constexpr Duration kPause = Duration::Millis(1);
  static constexpr Duration kWindow = Duration::Millis(10);  // changing one's mind costs some microseconds

  Time last_;
  Time since_;
  Duration apart_;  // of the time since then: between polls that were not close together
  bool dense_ = false;
};

}  // namespace paceline
