// What the receiving half tells the allocator of a port about one flow, and what comes back. Counts on the wire run
// from the start of the connection; the allocator counts from the moment when the flow was added to it.
//
//   demand_end = the larger of  arrived + lost + bytes of messages known here that are still to come
//                          and  tx_total + backlog as the sender said it
//
// Each side knows something that the other does not know yet: the sender messages not announced, the receiver messages
// that it has just cleared and receives that stand ready.
//
// Thread rule: the endpoint's thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/congestion_control.h"
#include "transport/base/sequence.h"
#include "transport/wire/packet.h"
#include "transport/wire/rate16.h"

namespace paceline {

struct CreditAccount {
  bool active = false;         // known to the port's allocator as `flow`
  bool grant_pending = false;  // the newest grant was not sent yet
  bool grant_twice = false;    // the last one was probably lost: the next is sent twice, by two paths
  uint32_t flow = 0;
  uint64_t base = 0;       // arrived + lost_total when the flow was added
  uint64_t lost_base = 0;  // lost_total then
  uint64_t arrived = 0;    // payload bytes
  uint64_t tx_total = 0;   // newest that the sender said
  uint64_t lost_total = 0;
  uint64_t backlog = 0;
  uint64_t newest_psn = 0;       // of the packet that said so
  uint16_t said_cap = 0;         // as it travels; 0: the sender has stated none
  Rate cap = Rate::Unlimited();  // until it has
  uint64_t credit_end = 0;       // absolute; 0: none granted
  uint64_t credit_told = 0;      // the same, as the sender was told last
  Rate rate;
  static constexpr uint64_t kNothing = ~uint64_t{0};
  uint64_t told_end = kNothing;  // what the allocator was told last
  Rate told_cap;
  ArrivalSample untold;  // what has come since the allocator was told last; no packets: nothing

  void OnSaid(uint64_t psn, uint32_t tx_bits, uint32_t lost_bits, uint32_t backlog_units, uint16_t cap_bits) {
    const uint64_t tx = Unwrap(tx_bits, tx_total);
    if (psn < newest_psn || tx < tx_total) return;  // something newer has overtaken it
    tx_total = tx;
    newest_psn = psn;
    lost_total = Unwrap(lost_bits, lost_total);
    backlog = wire::DecodeBacklog(backlog_units);
    if (cap_bits == said_cap) return;
    said_cap = cap_bits;
    const Rate stated = wire::DecodeRate(cap_bits);
    if (!stated.is_zero()) cap = stated;
  }
  void Start() {
    base = arrived + lost_total;
    lost_base = lost_total;
    told_end = kNothing;
  }
  // As the allocator counts. The sender takes wrong verdicts back, so the loss may shrink again. `base` may hold
  // duplicates, or bytes that were placed before the sender spoke of them: no more is lost than was sent since.
  uint64_t TxTotal() const { return tx_total - std::min(base, tx_total); }
  uint64_t LostTotal() const { return std::min(lost_total - std::min(lost_base, lost_total), TxTotal()); }
  uint64_t DemandEnd(uint64_t expected) const {
    const uint64_t end = std::max(arrived + lost_total + expected, tx_total + backlog);
    return end > base ? end - base : 0;
  }
  // The demand end that asks for no more than has come.
  uint64_t NothingWanted() const { return arrived + lost_total > base ? arrived + lost_total - base : 0; }
};

}  // namespace paceline
