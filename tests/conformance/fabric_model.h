// A small closed loop for congestion controllers: hosts on one big switch, each with an uplink and a downlink at the
// same rate, a drop-tail queue with ECN in front of every downlink, and optionally one narrower link that everything
// crosses first. Losses are found by an oracle one round trip after the drop; acknowledgements, grants and requests
// take one way's delay and no bandwidth. It exists to test controllers on their own, without the protocol core and the
// simulated fabric.
//
// It takes the part of the core: it obeys window, credit and pacing, sends a request when it has a backlog and no
// credit (again while nothing comes), and calls the timers when they are due.
//
// Everything is counted in the controllers' own units. Deterministic from `seed`. Thread rule: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "cc/algorithms/pace_clock.h"
#include "cc/congestion_control.h"
#include "transport/base/random.h"

namespace paceline {

struct FabricModelConfig {
  size_t hosts = 2;
  Rate rate = Rate::Gbps(100);
  Duration one_way = Duration::Nanos(6000);
  uint32_t segment = 4096, overhead = 64;
  uint64_t queue_bytes = 178'880, ecn_min_bytes = 37'440, ecn_max_bytes = 145'600;
  Rate core_rate;                 // zero: no narrower link
  bool core_rate_stated = false;  // the ports know their share of it
  double grant_loss = 0;          // share of grants that get lost
  double data_loss = 0;           // share of data packets that get lost
  Duration blackout_from = Duration::Infinite(), blackout_until = Duration::Infinite();  // all data is lost
  uint64_t seed = 1;
};

class FabricModel {
 public:
  using Factory = std::function<std::unique_ptr<CongestionControl>()>;

  FabricModel(const FabricModelConfig& config, const Factory& new_congestion_control);

  // `bytes` from one host to another, from `start` on. `posted`: the receiver knows one round trip before.
  void AddFlow(size_t source, size_t destination, uint64_t bytes, Time start, bool posted);
  // False when something is unfinished at `deadline`.
  bool Run(Time deadline);

  Duration base_rtt() const { return base_rtt_; }
  Time finished(size_t flow) const { return flows_[flow].finished; }
  Time last_finished() const;
  uint64_t data_packets() const { return data_packets_; }
  uint64_t drops() const { return drops_; }  // for want of queue
  uint64_t downlink_queue_max() const { return downlink_queue_max_; }
  const ReceiverController* receiver(size_t host) const { return hosts_[host].receiver.get(); }
  uint64_t calls_digest() const { return digest_; }  // of all allowances and grants, to compare runs

 private:
  struct Packet {
    size_t flow = 0;
    uint64_t bytes = 0, tx_total = 0, lost_total = 0, backlog = 0;
    Rate cap;
    Time sent;
    bool marked = false;
    uint32_t hops = 0;
    std::array<HopTelemetry, 2> hop;  // of the core and the downlink
  };
  struct Link {
    Rate rate;
    PaceClock busy;
    uint64_t queued = 0;      // wire bytes
    uint32_t sent_bytes = 0;  // for telemetry
    uint32_t number = 0;
    double scale = 1;  // of queue limit and ECN thresholds: the core stands for several links side by side
  };
  struct Flow {
    size_t source = 0, destination = 0;
    uint64_t left = 0;  // not sent, or lost
    uint64_t to_arrive = 0;
    uint64_t tx_total = 0, lost_total = 0, in_flight = 0, told_end = 0;
    PaceClock pacer;
    Time stuck_at = Time::Never();
    Time finished = Time::Never();
    std::unique_ptr<SenderController> controller;
  };
  struct Host {
    std::unique_ptr<CongestionControl> congestion_control;
    std::unique_ptr<ReceiverController> receiver;
    std::vector<size_t> flows;  // that it sends
    size_t next_flow = 0;
    Link uplink, downlink;
    Time sender_wake = Time::Never(), receiver_wake = Time::Never();
  };
  struct Event {
    Time time;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return time > other.time || (time == other.time && order > other.order);
    }
  };

  void At(Time time, std::function<void()> run) { events_.push({time, next_order_++, std::move(run)}); }
  void WakeAt(Time& pending, Time wake, std::function<void()> run);
  void Start(size_t flow, uint64_t bytes);
  void Serve(size_t host);
  Time FlowReady(const Flow& flow) const;
  void SendSegment(size_t id);
  void Request(size_t id);
  void Enqueue(Link& link, const Packet& packet, bool last_hop);
  void Arrive(const Packet& packet);
  void Lose(const Packet& packet);
  void PollReceiver(size_t host);
  void Digest(uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3; }

  const FabricModelConfig config_;
  Duration base_rtt_;
  PortInfo port_;
  Random random_;
  Time now_;
  std::vector<Host> hosts_;
  std::vector<Flow> flows_;
  Link core_;
  std::priority_queue<Event> events_;
  uint64_t next_order_ = 0;
  size_t unfinished_ = 0;
  uint64_t data_packets_ = 0, drops_ = 0, downlink_queue_max_ = 0, digest_ = 0xcbf29ce484222325;
};

}  // namespace paceline
