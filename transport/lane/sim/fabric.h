// A simulated fabric: output-queued store-and-forward switches, links with rate and delay, and a NIC (a SimLane) per
// host, driven by one loop of events in picoseconds. The same seed gives the same run on every machine.
//
// A port has a data queue (limit in bytes, the packet being sent included; beyond it drop, or trim to the header when
// trimming is on; ECN marks rise linearly from none at ecn_min to ecn_max_probability at ecn_max, beyond which all are
// marked, decided when a packet leaves the queue by what it leaves behind) and a control queue of the same limit with
// strict priority, for control packets and cut headers. On the wire a data packet is its payload and `header_bytes`, a
// control packet `header_bytes`, whatever their real headers are. Paths: ECMP by hash of source, destination, entropy
// and the run's salt, independent from tier to tier; with adaptive routing the uplink with the least waiting instead,
// so that a path need not keep its order. Some time after a link died the switches' routing withdraws it
// (withdrawals.h).
//
// A packet that asks for in-band telemetry gets a record from every switch port that it leaves. It takes no room on the
// wire.
//
// Instead of queues of fixed length the switches may share a memory each, or be lossless (buffers.h). A link whose
// sender is told to pause carries on with control packets only; the word takes the link's delay, and no fault stops it.
//
// A host's software is a HostDriver: it is polled when a packet arrives, when a full NIC has room again, when its link
// changes, and at the time that it asked for.
//
// Thread rule: one thread builds and runs a fabric and everything in it. The fabric owns lanes and packets; drivers are
// the caller's and must outlive Run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/random.h"
#include "transport/base/time.h"
#include "transport/lane/sim/buffers.h"
#include "transport/lane/sim/counters.h"
#include "transport/lane/sim/event_queue.h"
#include "transport/lane/sim/faults.h"
#include "transport/lane/sim/packet_pool.h"
#include "transport/lane/sim/port.h"
#include "transport/lane/sim/topology.h"
#include "transport/lane/sim/withdrawals.h"

namespace paceline::sim {

class SimLane;

class HostDriver {
 public:
  virtual ~HostDriver() = default;
  // Called when something may have happened at the host. Returns the latest time at which it wants the next call;
  // Time::Never() when only an event can give it work.
  virtual Time Poll(Time now) = 0;
};

struct FabricConfig {
  TopologyConfig topology;
  uint32_t queue_bytes = 178'880;    // per port, data and control each
  BufferConfig buffers;              // of switches, if data is not to be bounded by queue_bytes
  uint32_t ecn_min_bytes = 37'440;   // no marks up to here
  uint32_t ecn_max_bytes = 145'600;  // every packet from here on; 0: no marking at all
  double ecn_max_probability = 1;    // of a mark just below ecn_max_bytes; above 0 and at most 1
  bool trimming = false;
  bool adaptive_routing = false;      // a switch takes the uplink with the shortest queue; ties by hash
  uint32_t mtu_bytes = 4096;          // largest payload
  uint32_t header_bytes = 64;         // nominal size of all headers of a packet
  uint32_t max_header_bytes = 96;     // room for the opaque header before a payload of mtu_bytes
  uint32_t max_control_bytes = 1024;  // room for a packet that is all header
  uint32_t entropies = 256;
  uint32_t nic_queue_packets = 4;  // waiting in a NIC beside the one being sent
  std::vector<Fault> faults;
  // From a link's death or return until the switches' routing has taken it into account; 0: never.
  Picos reroute_delay = 1'000'000 * kPicosPerNano;
  bool deliver_corrupted = false;  // false: a NIC drops corrupted packets for their checksum
  uint64_t seed = 1;
};

class Fabric {
 public:
  // Refuses what cannot be built, naming the key and what it may be.
  static absl::StatusOr<std::unique_ptr<Fabric>> Create(const FabricConfig& config);
  // The same checks without building.
  static absl::Status Check(const FabricConfig& config);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  const FabricConfig& config() const { return config_; }
  const Topology& topology() const { return topology_; }
  uint32_t hosts() const { return config_.topology.hosts; }
  SimLane& lane(uint32_t host, uint32_t nic = 0);
  // Hands a lane to an owner of its own (an engine), once; the fabric still runs it, so the lane must live until the
  // last Run has returned.
  std::unique_ptr<SimLane> TakeLane(uint32_t host, uint32_t nic = 0);

  void SetDriver(uint32_t host, HostDriver* driver) { hosts_[host].driver = driver; }
  // Polls the host at `at` or as soon after it as can be; earlier requests stand.
  void RequestPoll(uint32_t host, Time at);

  // Runs until `deadline`, until Stop is called or until nothing is left to happen. May be called again.
  void Run(Time deadline);
  void Stop() { stopped_ = true; }

  Time now() const { return ToTime(queue_.now()); }
  Picos now_picos() const { return queue_.now(); }
  const FabricCounters& counters() const { return counters_; }
  const Series& series() const { return series_; }
  const Port& port(uint32_t port) const { return ports_[port]; }
  // Of a port's data queue, over the time from 0 to now.
  uint32_t QueueMaxBytes(uint32_t port) const { return std::max(queue_max_[port], ports_[port].peak_bytes); }
  uint32_t QueueQuantileBytes(uint32_t port, double quantile) const;
  uint64_t SentBytes(uint32_t port) const;  // on the wire
  uint32_t first_switch_port() const { return nics_; }
  uint32_t end_port() const { return static_cast<uint32_t>(ports_.size()); }
  // Over all links, how long their senders were paused until now.
  Picos PausedPicos() const;
  bool IsLastHop(uint32_t port) const { return port >= nics_ && ports_[port].to_node < nics_; }
  size_t packets_in_flight() const { return pool_.in_use(); }

  // Through empty queues by the longest way that packets take: full size there, a header back. LongestBaseRtt: of the
  // pair with the most, by the shortest way.
  Duration BaseRtt(uint32_t source_host, uint32_t destination_host) const;
  Duration LongestBaseRtt() const;

 private:
  friend class SimLane;
  enum EventKind : uint32_t {
    kArrive,
    kArriveLate,
    kPortFree,
    kHostTimer,
    kSample,
    kDamage,
    kReroute,
    kDeadline,
    kPause
  };
  struct Host {
    HostDriver* driver = nullptr;
    Picos timer = kNeverPicos;      // of the earliest timer event in the queue
    Picos next_poll = kNeverPicos;  // when the driver wants to be polled
    Picos requested = kNeverPicos;  // by RequestPoll, since the last poll
    Picos slow_by = 0;              // its software acts so much later than it should
  };

  Fabric(const FabricConfig& config, Topology topology, FaultPlan faults, uint64_t route_salt);
  void SetTiming(uint32_t port, double fraction);

  void Dispatch(const Event& event);
  void HandleArrive(uint32_t port, uint32_t packet);
  void HandlePortFree(uint32_t port);
  void HandleHostTimer(uint32_t host, Picos due);
  void HandleSample();
  void HandleDamage();
  void Empty(uint32_t port);
  void Forward(uint32_t port, uint32_t packet);
  // Of the uplinks of `s`: the one with the least waiting, `hashed` where it is none the worse.
  uint32_t ShortestUplink(const SwitchInfo& s, uint32_t destination, uint32_t hashed);
  // False: the fault took the packet, or will bring it later.
  bool PassFaults(uint32_t port, uint32_t packet);
  void Enqueue(uint32_t port, uint32_t packet);
  void AwaitPortFree(uint32_t port);
  bool MarksAtRandom(uint32_t above);
  void WriteTelemetry(uint32_t port, uint32_t packet);
  bool HasRoom(uint32_t port, uint32_t packet, uint32_t queue_bytes) const;
  void Signal(SwitchBuffers::Signal signal, uint32_t link);
  void HandlePause(uint32_t link, bool pause);
  void StartSending(uint32_t port, uint32_t packet);
  // Something happened at the host.
  void NotifyHost(uint32_t host);
  void PollHost(uint32_t host);
  void ArmTimer(uint32_t host, Picos at);
  void AccountQueue(uint32_t port, Picos until);
  void Drop(uint32_t packet, uint64_t& counter) {
    ++counter;
    pool_.Free(packet);
  }

  const FabricConfig config_;
  const Topology topology_;
  const FaultPlan faults_;
  Withdrawals withdrawals_;
  const uint64_t route_salt_;
  const uint32_t full_wire_bytes_;
  const uint32_t nics_;
  EventQueue queue_;
  PacketPool pool_;
  SwitchBuffers buffers_;
  std::vector<Port> ports_;
  std::vector<LinkTiming> timing_;   // by port
  std::vector<LinkDamage> damage_;   // by port; empty without faults
  std::vector<Picos> paused_since_;  // by port; empty unless lossless
  Picos paused_ = 0;                 // of pauses that have ended
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<SimLane>> owned_lanes_;  // those not taken
  std::vector<SimLane*> lanes_;
  Random marking_random_;
  Random fault_random_;
  FabricCounters counters_;
  QueueStatistics queue_statistics_;
  Series series_;
  std::vector<uint32_t> queue_max_;   // by port, up to the current interval
  std::vector<uint64_t> sent_bytes_;  // by port, up to the current interval
  std::vector<uint32_t> sent_wraps_;  // by port: how often the port's own count of them has wrapped
  uint64_t series_delivered_ = 0;     // delivered bytes when the current interval began
  bool sampling_ = false;
  bool stopped_ = false;
  uint32_t run_ = 0;  // calls of Run
};

}  // namespace paceline::sim
