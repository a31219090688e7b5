// A network in memory that does exactly what a test says: every packet passes a hook that may drop it, copy it, hold it
// back, change its bytes, mark it or cut its payload. It has its own clock, no thread and no randomness of its own.
//
// A path is (from, to, entropy). Packets of one path arrive in the order in which they were sent, however long each is
// held back, unless the hook says `overtake` for one of them. Ports are numbered from 0; a port's address is its
// number.
//
// Units: nanoseconds of virtual time; bytes as sent by the lane, without any envelope.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/virtual_network.h"
#include "transport/base/time.h"
#include "transport/lane/lane.h"

namespace paceline::support {

// One segment on its way.
struct NetworkPacket {
  uint64_t index = 0;  // how many were sent in this network before it
  uint32_t from = 0;
  uint32_t to = 0;
  SegmentKind kind = SegmentKind::kPacket;
  bool ecn_capable = false;
  bool control = false;
  uint16_t entropy = 0;
  uint32_t header_bytes = 0;
  uint32_t payload_bytes = 0;
  std::vector<uint8_t> bytes;                              // header and payload; of a phantom payload nothing
  uint32_t phantom_bytes = 0;                              // payload without contents
  std::function<void(std::vector<uint8_t>&)> add_payload;  // of a lane that reads later: called when it arrives
  bool congestion_experienced = false;
  bool trimmed = false;
  uint32_t connection = 0;  // writes
  uint32_t immediate = 0;
  uint64_t remote_address = 0;
  uint64_t remote_key = 0;
  uint32_t way = 0;     // writes: how often the path had been given up for another
  uint64_t opened = 0;  // writes: how many packets had been sent in this network when that way was opened
  Time sent_at;

  // Of all of it, also of what is not there yet or never.
  size_t size() const { return bytes.size() + phantom_bytes + (add_payload ? payload_bytes : 0); }

  // Cuts the payload, as a trimming switch does.
  void Trim() {
    bytes.resize(header_bytes);
    phantom_bytes = 0;
    add_payload = nullptr;
    trimmed = true;
  }
};

// What the hook decides about one packet.
struct Fate {
  bool drop = false;
  uint32_t copies = 1;   // how many arrive, `copy_spacing` apart
  Duration extra_delay;  // beside the network's latency
  Duration copy_spacing = Duration::Micros(1);
  bool overtake = false;  // may arrive before something sent earlier on its path
};

class ScriptedNetwork final : public VirtualNetwork {
 public:
  struct Options {
    Duration latency = Duration::Micros(5);  // one way
    Rate link_rate = Rate::Gbps(100);        // of each port, sending
    Duration path_skew;                      // entropy e takes up to this much longer than entropy 0, spread evenly
    Duration port_backlog = Duration::Micros(10);  // a port takes more while less than this waits in it
    Duration poll_interval;                        // hosts are not polled more often than this
  };
  using Hook = std::function<void(NetworkPacket&, Fate&)>;
  // Who gets what arrives at a port.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void Deliver(NetworkPacket packet) = 0;
  };

  ScriptedNetwork() : ScriptedNetwork(Options()) {}
  explicit ScriptedNetwork(const Options& options) : options_(options) {}

  // `receiver` is borrowed and must call RemovePort before it goes.
  uint32_t AddPort(Receiver* receiver);
  void RemovePort(uint32_t port) { ports_[port].receiver = nullptr; }
  // A port that is down loses what it sends and what arrives for it.
  void SetPortUp(uint32_t port, bool up);
  bool port_up(uint32_t port) const { return ports_[port].up; }
  uint32_t port_changes(uint32_t port) const { return ports_[port].changes; }

  void SetHook(Hook hook) { hook_ = std::move(hook); }
  const Options& options() const { return options_; }

  // May this port send more now? When not, Run polls the hosts again as soon as it may.
  bool PortHasRoom(uint32_t port);
  void Send(NetworkPacket packet);
  // Puts something into the network that no port has sent: forged or replayed packets. Passes no hook.
  void Inject(NetworkPacket packet, Duration delay = Duration());

  // From now on a copy of every packet as it was sent is kept, before the hook sees it.
  void StartCapture() { capturing_ = true; }
  const std::vector<NetworkPacket>& captured() const { return captured_; }

  uint64_t packets_sent() const { return sent_; }
  uint64_t packets_dropped() const { return dropped_; }
  // Payload bytes of dropped or trimmed packets.
  uint64_t payload_bytes_lost() const { return payload_lost_; }

  // Rules broken by the code under test, noted by lanes (a segment for a peer that is not open, a write that lands in
  // memory that was given back, ...). A test ends with none.
  void NoteViolation(std::string what);
  const std::vector<std::string>& violations() const { return violations_; }

  Time now() const override { return now_; }
  void AttachHost(Polled* host) override { hosts_.push_back(host); }
  void DetachHost(Polled* host) { std::erase(hosts_, host); }
  void Touch(Polled*) override {}  // all hosts are polled when Run starts
  bool Run(Time deadline, const std::function<bool()>& done) override;

 private:
  struct Port {
    Receiver* receiver = nullptr;
    bool up = true;
    uint32_t changes = 0;
    Time free_at;
    bool wanted_room = false;
  };
  struct Arrival {
    Time at;
    uint64_t order = 0;
    std::shared_ptr<NetworkPacket> packet;
    bool operator<(const Arrival& other) const { return std::tie(other.at, other.order) < std::tie(at, order); }
  };
  void Schedule(Time at, NetworkPacket packet);
  // Lets everything arrive that is due by `to`.
  void AdvanceTo(Time to);
  Time NextEvent() const;
  Duration SkewOf(uint16_t entropy) const;

  Options options_;
  Hook hook_;
  Time now_;
  std::vector<Polled*> hosts_;
  std::vector<Port> ports_;
  std::priority_queue<Arrival> queue_;
  std::map<std::tuple<uint32_t, uint32_t, uint16_t, uint32_t>, Time> last_arrival_;  // from, to, entropy, way
  uint64_t order_ = 0;
  uint64_t sent_ = 0;
  uint64_t dropped_ = 0;
  uint64_t payload_lost_ = 0;
  bool capturing_ = false;
  std::vector<NetworkPacket> captured_;
  std::vector<std::string> violations_;
};

}  // namespace paceline::support
