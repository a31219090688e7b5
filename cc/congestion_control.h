// Congestion control behind two small interfaces: a sender side (facts in, allowance out) and a receiver side (demand
// in, grants out). The protocol core owns the objects and tells them facts; they look nothing up, read no clock, have
// no randomness but the seed they are given, do no I/O. So the same object runs on a network card and in a simulation.
//
// Words:
//   flow         one direction of one connection towards one port of the receiver. Numbered per side by the core with
//                small dense numbers that are used again after RemoveFlow.
//   credit       a *cumulative* count of payload bytes: the sender may send while its count of all payload bytes ever
//                transmitted on the flow (first copies and retransmissions, "tx_total") is below `credit_end`. A grant
//                that is lost heals with the next one.
//   demand_end   the cumulative position up to which the sender would like to send: tx_total + backlog that has
//                somewhere to go (a matched receive, an eager message, a write), or what a posted receive announces.
//   window       a bound on bytes in flight (sent and neither acknowledged nor found lost).
// Byte counts are payload bytes; `wire_bytes` where headers are meant. Rates are rates of wire bytes.
//
// Thread rule: all calls from the thread that polls the endpoint.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "transport/base/telemetry.h"
#include "transport/base/time.h"

namespace paceline {

class CreditPool;

inline constexpr uint64_t kNoCreditLimit = std::numeric_limits<uint64_t>::max();

// What an algorithm may know about the port and the network: constants of the endpoint.
struct PortInfo {
  Rate link_rate;                     // of the port; the core puts a stated assumption here when the lane does not know
  Duration base_rtt;                  // to the farthest peer without queues; an assumption until measured
  Duration delay_error;               // time that the hosts themselves may add to a delay: less says nothing of a queue
  uint32_t segment_bytes = 0;         // payload of a full segment
  uint32_t overhead_bytes = 0;        // wire bytes that each data packet has beside its payload
  uint32_t control_packet_bytes = 0;  // wire bytes of an acknowledgement or grant
  uint32_t burst_segments = 1;        // segments of one path that the lane sends best together: the grain of grants
  uint64_t receive_buffer_bytes = 0;  // what the lane can hold before it must drop; 0: no limit known
  uint32_t port_index = 0;            // which local port this is: the senders of one port share its uplink
  uint64_t local_group = 0;  // the group that this port is in, as FlowInfo::remote_group numbers them; 0: not known
  Rate core_rate;            // what the core gives this port from other groups when all take theirs; zero: not known
  uint32_t group_ports = 0;  // ports of the own group, which then share what the core gives it; 0: not known
  CreditPool* credit_pool = nullptr;  // other endpoints hand out credit for the same port; outlives the controllers
  uint32_t credit_pool_member = 0;    // which of them this is
};

// What is known of a flow when it starts.
struct FlowInfo {
  uint64_t remote_group =
      0;              // flows with the same value share the far part of the network (a rack, a pod); 0: not known
  Duration base_rtt;  // of this pair; zero: not known
};

// ---- sender side

struct AckSample {
  Time now;
  uint64_t acked_bytes = 0;   // newly acknowledged by this report
  uint64_t marked_bytes = 0;  // of these, carried by packets with an ECN mark
  uint32_t acked_packets = 0;
  uint32_t marked_packets = 0;
  Duration rtt;                  // of the newest packet, without the receiver's delay; zero: no sample in this report
  uint64_t in_flight_bytes = 0;  // after this report
  bool backlogged = false;       // more is waiting to be sent (the window or rate was the limit)
  // Of the newest packet's way, in its order, for those that want it; empty: nothing new. Valid during the call.
  std::span<const HopTelemetry> hops = {};
};

enum class LossCause : uint8_t {
  kPathGap,  // something sent later on the same path has arrived
  kReorder,  // something sent a reordering window later has arrived (RACK)
  kTrimmed,  // the header arrived without its payload
  kTimeout,  // nothing arrived for a retransmission timeout
  kFenced,   // the receiver refuses what else comes on its path, and it had not arrived (remote placement)
};

struct LossSample {
  Time now;
  uint64_t lost_bytes = 0;
  uint32_t lost_packets = 0;
  LossCause cause = LossCause::kPathGap;
  uint64_t in_flight_bytes = 0;  // after this report
};

struct GrantSample {
  Time now;
  uint64_t credit_end = 0;  // cumulative; smaller than the last one seen means an old grant and changes nothing
  Rate rate;                // explicit rate that the receiver reckons with; zero: none stated
};

// What may be sent now. All of it holds at once, but what is sent by `single_end` heeds neither credit nor pacing.
struct Allowance {
  uint64_t window_bytes = std::numeric_limits<uint64_t>::max();  // in flight at most
  uint64_t credit_end = kNoCreditLimit;                          // tx_total at most
  Rate pacing_rate = Rate::Unlimited();                          // of wire bytes
  uint64_t single_end = 0;  // while tx_total is below, a message of one segment may go, credit or not
  uint64_t held_end = 0;  // the credit that there is, where credit_end holds some of it back for a moment; 0: all goes
};

class SenderController {
 public:
  virtual ~SenderController() = default;

  // What has just left: a packet, or up to PortInfo::burst_segments of one message on one path, which allowance() let
  // go one after the other. Both counts are those after the last of them.
  virtual void OnSent(Time now, uint64_t tx_total, uint64_t in_flight_bytes) {
    (void)now, (void)tx_total, (void)in_flight_bytes;
  }
  virtual void OnAck(const AckSample& sample) = 0;
  virtual void OnLoss(const LossSample& sample) = 0;
  virtual void OnGrant(const GrantSample& sample) { (void)sample; }

  // The backlog (cleared bytes not yet sent) became this; called at least when it changes between zero and not zero,
  // except for messages of one segment that the allowance lets go at once. `tx_total` is the flow's cumulative count at
  // this moment.
  virtual void OnBacklog(Time now, uint64_t backlog_bytes, uint64_t tx_total) {
    (void)now, (void)backlog_bytes, (void)tx_total;
  }

  // Changes only in the calls above and in HandleTimeout.
  virtual Allowance allowance() const = 0;

  // The pair's round trip without queues has been measured, or has changed by more than an eighth; it stands in the
  // place of FlowInfo::base_rtt and PortInfo::base_rtt. Never called where the lane states it.
  virtual void OnBaseRtt(Duration rtt, Time now) { (void)rtt, (void)now; }

  // The rate that this sender can give this flow at most, announced to the receiver in data headers.
  virtual Rate cap() const { return Rate::Unlimited(); }

  // In-band telemetry is to be asked for on this flow's data packets, where the lane has it. Never changes.
  virtual bool wants_telemetry() const { return false; }

  // Own timers (DCQCN's): when HandleTimeout wants to be called, Time::Never() for not at all. May change in any call.
  virtual Time PollTimeout() const { return Time::Never(); }
  virtual void HandleTimeout(Time now) { (void)now; }
};

// ---- receiver side

struct ArrivalSample {
  Time now;
  // Payload that arrived, duplicates included. The core counts nothing for trimmed packets; a caller that counts what
  // was cut has it named again by lost_total.
  uint64_t bytes = 0;
  uint32_t packets = 0;
  uint32_t marked_packets = 0;
  uint32_t trimmed_packets = 0;
  uint64_t tx_total = 0;    // sender's cumulative count, newest seen: bytes it has put on the way
  uint64_t lost_total = 0;  // sender's count of bytes that it found lost (trimmed included), newest seen; goes back
                            // when a verdict turns out to have been wrong
  int64_t relative_delay_nanos =
      0;  // one-way delay of the newest packet plus an unknown constant of the pair of clocks
};

struct Grant {
  uint32_t flow = 0;
  uint64_t credit_end = 0;  // cumulative
  Rate rate;                // explicit rate r_i; zero: none stated
};

// One object per local port: the port's downlink has one owner, which paces all credit for it.
class ReceiverController {
 public:
  virtual ~ReceiverController() = default;

  virtual void AddFlow(uint32_t flow, const FlowInfo& info, Time now) = 0;
  virtual void RemoveFlow(uint32_t flow, Time now) = 0;

  // Newest knowledge of what the sender wants; may shrink (a cancelled receive). `cap` as the sender announced it.
  virtual void OnDemand(uint32_t flow, uint64_t demand_end, Rate cap, Time now) = 0;
  // What came for the flow since the last call: the packets of one pass of the engine taken together, but a probe or a
  // trimmed packet by itself.
  virtual void OnArrival(uint32_t flow, const ArrivalSample& sample) = 0;

  // The flow's round trip without queues, as SenderController::OnBaseRtt.
  virtual void OnBaseRtt(uint32_t flow, Duration rtt, Time now) { (void)flow, (void)rtt, (void)now; }

  // When PollGrants will have something (or wants to look again); Time::Never() when nobody wants anything.
  virtual Time PollTimeout() const = 0;

  // Writes the grants that are due at `now` to `out`, at most one per flow and call; returns how many. Call again when
  // `out` was filled.
  virtual size_t PollGrants(Time now, std::span<Grant> out) = 0;

  // Granted and neither arrived nor known lost, over all flows: what could still land here. For counters and tests.
  virtual uint64_t outstanding_credit_bytes() const = 0;
};

// ---- an algorithm, as one endpoint runs it

class CongestionControl {
 public:
  virtual ~CongestionControl() = default;

  // A controller for one flow that this endpoint sends. It may share state with its siblings through this object, which
  // outlives it.
  virtual std::unique_ptr<SenderController> NewSender(const FlowInfo& flow, const PortInfo& port, Time now) = 0;

  // The receiver side of one local port, or nullptr: the algorithm needs no credit and its senders ignore grants.
  virtual std::unique_ptr<ReceiverController> NewReceiver(const PortInfo& port) {
    (void)port;
    return nullptr;
  }
};

}  // namespace paceline
