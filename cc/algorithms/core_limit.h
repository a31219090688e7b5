// What the core of the network lets through towards one port from one group of senders, found from marks (ECN, or delay
// taken for a mark) and from the rate that was really delivered while there were marks.
//
// SIRD's network loop (Prasopoulos et al., "SIRD: A Sender-Informed, Receiver-Driven Datacenter Transport Protocol",
// NSDI 2025, section 4.2) reduces per sender in proportion to an average of marks; RCCC of Ultra Ethernet does the same
// to a rate. Both feel for the limit; a flow of 16 packets is over before. Here the limit belongs to the group,
// survives its flows, and is taken from measurement: while a queue stands in the core, what arrives is what the core
// lets through. Per window of `window`, with F the share of marked packets and D the delivered wire rate:
//
//   not limited, F >= heavy, D < enter * line    capacity = D; limited from now on
//   limited, F >= heavy    capacity += gain * (D - capacity)
//   stated, F > 0          the same with a gain of 0.1
//   limited, F > target    capacity *= 1 - 0.05 * (F - target)
//   limited, F <= target   if the limit was used (and, where it was stated, few packets waited on their way): capacity
//                          += step * (1 - F / target), after windows without a mark up to 8 times as much
//   the port's own downlink was full             nothing: the marks may be its own
// and in each case limit = capacity * (1 - drain * F).
//
// Aiming at some marks keeps the core busy: with none, what sprays at random leaves an eighth of it idle. A stated
// limit is about right from the start, and aims at none.
//
// A stated limit, and one under which hardly anybody waited for a window, is a guess on the low side. There the search
// is faster and has no steps: capacity grows with time, by e in 5 windows, or in 2.5 where nothing is known, until of
// the last packets too many waited or were marked; then it goes back by what it grew while the news was on its way.
// Ports that began together see the same queue and so end together, with equal shares.
//
// What this port can expect where not all take theirs (`Expect`) keeps shares equal: under some marks, and from below
// also without, capacity moves 0.2 of the way there per window. Heavy marks say that more take than was expected.
//
// So the queue is drained in proportion to the marks, and the rate returns to what was measured as soon as they cease.
//
// Grants to the group are spaced: each takes a slot of its size at the limit.
//
// Rates in wire bytes per second. Thread rule: one owner at a time.
#pragma once

#include <cstdint>
#include <limits>

#include "cc/algorithms/pace_clock.h"
#include "transport/base/time.h"

namespace paceline {

struct CoreLimitParameters {
  double line_rate = 0;
  Duration window;
  double gain = 0.25;
  double drain = 0.3;
  double floor = 0.03;  // of the line rate
  double step = 0.01;   // of the line rate
  double heavy = 0.5;
  double enter = 0.8;  // of the line rate
};

class CoreLimit {
 public:
  // `stated`: what the core gives this port when all ports take theirs, where the operator knows it. The limit starts
  // there, and grows where others leave room; it does not sink below. 0: nothing is known, and there is no limit yet.
  explicit CoreLimit(double stated = 0)
      : stated_(stated),
        limit_(stated > 0 ? stated : std::numeric_limits<double>::infinity()),
        capacity_(limit_),
        searching_(stated > 0) {}

  // What this port can have when not all take theirs, for a limit that is stated, and not below that. Until something
  // is measured the limit is that; afterwards it is drawn there.
  void Expect(double rate);

  // `queued_packets`: those that waited noticeably on their way.
  void OnArrival(const CoreLimitParameters& parameters, Time now, uint64_t wire_bytes, uint32_t packets,
                 uint32_t marked_packets, uint32_t queued_packets, bool downlink_full);

  bool stated() const { return stated_ > 0; }
  bool limited() const { return limit_ != std::numeric_limits<double>::infinity(); }
  double limit() const { return limit_; }

  // When the next slot begins; in the past when nothing was sent for long.
  Time next_slot() const { return clock_.time(); }
  // Takes the next slot for `wire_bytes`. A caller that comes late may catch up by one slot.
  void TakeSlot(Time now, uint64_t wire_bytes);

 private:
  void Search(const CoreLimitParameters& parameters, Time now, double waited);
  void EndSearch();
  void EndWindow(const CoreLimitParameters& parameters, double seconds);

  double stated_, limit_;
  double expected_ = 0;  // 0: nothing
  double capacity_ = 0;  // as measured, while limited
  uint32_t clean_windows_ = 0;
  bool searching_;
  bool measured_ = false;  // a window has ended
  bool in_use_ = true;
  double waiting_ = 0;  // share of the last packets that waited or were marked
  Time search_from_ = Time::Never();
  Time last_arrival_;
  uint32_t packets_ = 0, marked_packets_ = 0, queued_packets_ = 0;
  uint64_t wire_bytes_ = 0;
  bool open_ = false;
  Time window_start_, heard_;
  PaceClock clock_;
};

}  // namespace paceline
